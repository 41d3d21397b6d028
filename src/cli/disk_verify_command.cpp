// terrace disk verify

#include "cli/command.hpp"
#include "cli/disk_report.hpp"
#include "cli/disk_scrub.hpp"

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
        fmt::print(to.out, "{}", format_scrub(path, opened->is, scrubbed, list_));
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

} // namespace terrace::cli
