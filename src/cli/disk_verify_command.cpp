// terrace disk verify
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/disk_report.hpp"
#include "cli/disk_scrub.hpp"
#include "cli/units.hpp"
#include "storage/file_lock.hpp"
#include "storage/offline_volume.hpp"
#include "storage/superblock.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class disk_verify_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of several paths")
        ->required();
    app.add_option("--jobs", jobs_, "Number of objects read in parallel")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--list", list_, "List at most this many damaged objects; 0: all")->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    interruption stop;
    std::vector<json> values;
    exit_code code = exit_code::ok;
    for (const std::string& path : paths_) {
      auto opened = open_and_inspect(path);
      if (!opened)
        return tl::unexpected(opened.error());
      scrub_result scrubbed = scrub(opened->volume.device(), opened->is, jobs_, stop, to);
      if (json_)
        values.push_back(to_json(path, opened->is, scrubbed, list_));
      else
        to.print("{}", format_scrub(path, opened->is, scrubbed, list_));
      if (scrubbed.bad() != 0 || opened->is.problems() != 0)
        code = exit_code::damaged;
      else if (scrubbed.interrupted && code == exit_code::ok)
        code = exit_code::failed;
    }
    if (json_)
      print_json_of_paths(to, std::move(values));
    return code;
  }

 private:
  std::vector<std::string> paths_;
  size_t jobs_ = 4;
  size_t list_ = 100;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_verify_command() { return std::make_unique<disk_verify_command>(); }

// terrace disk inspect

namespace {

class disk_inspect_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of all its paths, in order")
        ->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    std::vector<inspected_volume> volumes;
    for (const std::string& path : paths_) {
      auto opened = open_and_inspect(path);
      if (!opened)
        return tl::unexpected(opened.error());
      volumes.push_back(std::move(*opened));
    }
    std::vector<json> values;
    for (size_t i = 0; i < volumes.size(); ++i)
      if (json_)
        values.push_back(to_json(paths_[i], volumes[i].is));
      else
        to.print("{}{}", i == 0 ? "" : "\n", format_inspection(paths_[i], volumes[i].is, machine_identity()));
    if (json_)
      print_json_of_paths(to, std::move(values));
    else if (std::string wrong = describe_mismatch(paths_, volumes); volumes.size() > 1 && !wrong.empty())
      to.print("\n  these files are not one volume: {}\n", wrong);
    return exit_code::ok;
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_inspect_command() { return std::make_unique<disk_inspect_command>(); }

// terrace disk wipe

namespace {

class disk_wipe_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of several paths")
        ->required();
    app.add_flag("--yes", yes_, "Do not ask for confirmation");
    app.add_flag("--force", force_, "Also wipe a file that is not a Terrace volume");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    std::vector<json> values;
    for (const std::string& path : paths_) {
      auto wiped = wipe(to, path);
      if (!wiped)
        return tl::unexpected(wiped.error());
      if (json_)
        values.push_back({{"path", path}, {"wiped", *wiped}});
      else
        to.print("{}: {}; the next daemon starts with an empty volume\n", path,
                 *wiped ? "wiped" : "it contained no volume");
    }
    if (json_)
      print_json_of_paths(to, std::move(values));
    return exit_code::ok;
  }

 private:
  /// Returns true if there was a volume.
  outcome<bool> wipe(console& to, const std::string& path) {
    auto volume = offline_volume::open(path, volume_access::write);
    if (!volume)
      return disk_failure(path, volume.error());
    auto size = volume->device().size();
    auto copies = read_superblocks(volume->device());
    if (!size || !copies)
      return disk_failure(path, size ? copies.error() : size.error());
    const auto& block = copies->newest;
    if (!block && block.error().code == errc::not_found)
      return false;
    if (!block && block.error().code == errc::denied && !force_)
      return bad_usage(path + ": not a Terrace volume; nothing was changed. Use --force to wipe it anyway");
    if (auto sure = confirm(to, describe(path, *size, block), yes_); !sure)
      return tl::unexpected(sure.error());
    if (auto done = erase_superblocks(volume->device(), block ? block->sequence : 1); !done)
      return disk_failure(path, done.error());
    return true;
  }

  static std::string describe(const std::string& path, uint64_t bytes, const result<superblock>& block) {
    std::string text =
        block ? fmt::format("path {} of {} of volume {} of group {}", block->path_index, block->path_count,
                            to_hex(block->volume), block->owner.group.empty() ? "-" : block->owner.group)
              : block.error().text;
    return fmt::format("{} ({}: {}) will be wiped", path, format_bytes(bytes), text);
  }

  std::vector<std::string> paths_;
  bool yes_ = false;
  bool force_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_wipe_command() { return std::make_unique<disk_wipe_command>(); }

} // namespace terrace::cli
