// terrace disk inspect

#include "cli/command.hpp"
#include "cli/disk_report.hpp"
#include "storage/machine_identity.hpp"

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
    auto opened = open_and_inspect(path_);
    if (!opened)
      return tl::unexpected(opened.error());
    if (json_)
      print_json(to, to_json(path_, opened->is));
    else
      fmt::print(to.out, "{}", format_inspection(path_, opened->is, machine_identity()));
    return exit_code::ok;
  }

 private:
  std::string path_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_inspect_command() { return std::make_unique<disk_inspect_command>(); }

} // namespace terrace::cli
