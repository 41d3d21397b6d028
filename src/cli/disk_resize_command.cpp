// terrace disk resize

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/disk_report.hpp"
#include "cli/units.hpp"
#include "storage/offline_volume.hpp"
#include "storage/volume_resize.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

json sum_json(const object_sum& sum) {
  return {
      {"objects", sum.objects}, {"payload_bytes", sum.payload_bytes}, {"physical_bytes", sum.physical_bytes}};
}

std::string describe(const object_sum& sum) {
  return fmt::format("{}, {}", format_counted(sum.objects, "object"), readable_bytes(sum.payload_bytes));
}

class disk_resize_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", path_, "The file of a disk tier that no daemon has open")->required();
    app.add_option("BYTES", bytes_, "New capacity, such as 500GiB")->required();
    app.add_option(
           "--objects", objects_,
           "Number of objects for which the index has room; others are lost at a restart. Default: as in a "
           "new volume, one per 8 KiB up to 1,048,576, or one per 48 KiB if that is more")
        ->check(CLI::PositiveNumber);
    app.add_flag("--drop", drop_, "Drop the oldest objects if not all fit");
    app.add_flag("--dry-run", dry_run_, "Only show what would happen");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto bytes = parse_bytes(bytes_);
    if (!bytes)
      return bad_usage("BYTES: " + bytes.error().text);
    auto volume = offline_volume::open(path_, dry_run_ ? volume_access::read : volume_access::write);
    if (!volume)
      return disk_failure(path_, volume.error());
    auto plan = plan_resize(volume->device(), *bytes, objects_);
    if (!plan)
      return disk_failure(path_, plan.error());
    bool no_room = plan->dropped.objects != 0 && !drop_;
    if (!dry_run_) {
      progress bar(to, "moving bytes", plan->moved.physical_bytes);
      plan = resize_volume(volume->device(), {.capacity_bytes = *bytes,
                                              .objects = objects_,
                                              .drop = drop_,
                                              .moved = [&](uint64_t n) { bar.advance(n); }});
    }
    if (!plan && no_room)
      return failed(path_ + ": " + plan.error().text + " (--drop)");
    if (!plan)
      return disk_failure(path_, plan.error());
    if (json_)
      print_json(to, describe_as_json(*plan));
    else
      print(to, *plan);
    return exit_code::ok;
  }

 private:
  void print(console& to, const resize_report& r) const {
    to.print("{}: {} instead of {}{}\n", path_, readable_bytes(r.after.capacity_bytes),
             readable_bytes(r.before.capacity_bytes), dry_run_ ? " would be possible" : "");
    to.print("  kept        {}\n", describe(r.kept));
    to.print("  moved       {}\n", describe(r.moved));
    to.print("  dropped     {}\n", describe(r.dropped));
    if (r.unreadable.objects != 0)
      to.print("  unreadable  {}\n", describe(r.unreadable));
    if (!dry_run_)
      to.print("{} the capacity in the daemon's configuration to {} before it opens the volume.\n",
               r.after.path_count == 1 ? "Set" : "Resize its other paths alike, and set",
               r.after.capacity_bytes * r.after.path_count);
  }

  json describe_as_json(const resize_report& r) const {
    return {{"path", path_},
            {"dry_run", dry_run_},
            {"capacity_bytes_before", r.before.capacity_bytes},
            {"capacity_bytes", r.after.capacity_bytes},
            {"kept", sum_json(r.kept)},
            {"moved", sum_json(r.moved)},
            {"dropped", sum_json(r.dropped)},
            {"unreadable", sum_json(r.unreadable)}};
  }

  std::string path_;
  std::string bytes_;
  uint64_t objects_ = 0;
  bool drop_ = false;
  bool dry_run_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_resize_command() { return std::make_unique<disk_resize_command>(); }

} // namespace terrace::cli
