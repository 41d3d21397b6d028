// terrace disk inspect

#include "cli/command.hpp"
#include "cli/disk_report.hpp"
#include "storage/machine_identity.hpp"
#include "storage/offline_store.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class disk_inspect_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", path_, "The file of a disk tier that no daemon has open")->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto store = offline_store::open(path_, store_access::read);
    if (!store)
      return disk_failure(path_, store.error());
    auto is = inspect(store->device());
    if (!is)
      return disk_failure(path_, is.error());
    if (json_)
      print_json(to, to_json(path_, *is));
    else
      fmt::print(to.out, "{}", format_inspection(path_, *is, machine_identity()));
    return exit_code::ok;
  }

 private:
  std::string path_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_inspect_command() { return std::make_unique<disk_inspect_command>(); }

} // namespace terrace::cli
