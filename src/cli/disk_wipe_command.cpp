// terrace disk wipe

#include "cli/command.hpp"
#include "cli/confirmation.hpp"
#include "cli/disk_report.hpp"
#include "cli/units.hpp"
#include "storage/offline_volume.hpp"
#include "storage/superblock_copies.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

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
        fmt::print(to.out, "{}: {}; the next daemon starts with an empty volume\n", path,
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
    std::string what =
        block ? fmt::format("path {} of {} of volume {} of group {}", block->path_index, block->path_count,
                            to_hex(block->volume), block->owner.group.empty() ? "-" : block->owner.group)
              : block.error().text;
    return fmt::format("{} ({}: {}) will be wiped", path, format_bytes(bytes), what);
  }

  std::vector<std::string> paths_;
  bool yes_ = false;
  bool force_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_wipe_command() { return std::make_unique<disk_wipe_command>(); }

} // namespace terrace::cli
