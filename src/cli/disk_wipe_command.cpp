// terrace disk wipe

#include "cli/command.hpp"
#include "cli/confirmation.hpp"
#include "cli/disk_report.hpp"
#include "cli/units.hpp"
#include "storage/offline_store.hpp"
#include "storage/superblock_copies.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class disk_wipe_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", path_, "The file of a disk tier that no daemon has open")->required();
    app.add_flag("--yes", yes_, "Do not ask");
    app.add_flag("--force", force_, "Also a file that is no Terrace store");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto store = offline_store::open(path_, store_access::write);
    if (!store)
      return disk_failure(path_, store.error());
    auto size = store->device().size();
    auto copies = read_superblocks(store->device());
    if (!size || !copies)
      return disk_failure(path_, size ? copies.error() : size.error());
    const auto& block = copies->newest;
    bool empty = !block && block.error().code == errc::not_found;
    if (!empty) {
      if (!block && block.error().code == errc::denied && !force_)
        return bad_usage(path_ +
                         ": this is no Terrace store; nothing was changed. --force wipes it all the same");
      if (auto sure = confirm(to, describe(*size, block), yes_); !sure)
        return tl::unexpected(sure.error());
      if (auto done = erase_superblocks(store->device(), block ? block->sequence : 1); !done)
        return disk_failure(path_, done.error());
    }
    if (json_)
      print_json(to, {{"path", path_}, {"wiped", !empty}});
    else
      fmt::print(to.out, "{}: {}; the daemon that opens it next starts with an empty store\n", path_,
                 empty ? "there was no store in it" : "wiped");
    return exit_code::ok;
  }

 private:
  std::string describe(uint64_t bytes, const result<superblock>& block) const {
    std::string what = block ? fmt::format("store {} of group {}", to_hex(block->store),
                                           block->owner.group.empty() ? "-" : block->owner.group)
                             : block.error().text;
    return fmt::format("{} ({}: {}) will hold nothing any more", path_, format_bytes(bytes), what);
  }

  std::string path_;
  bool yes_ = false;
  bool force_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_wipe_command() { return std::make_unique<disk_wipe_command>(); }

} // namespace terrace::cli
