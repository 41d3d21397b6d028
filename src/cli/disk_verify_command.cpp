// terrace disk verify

#include "cli/command.hpp"
#include "cli/disk_report.hpp"
#include "cli/disk_scrub.hpp"
#include "storage/offline_store.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class disk_verify_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", path_, "The file of a disk tier that no daemon has open")->required();
    app.add_option("--jobs", jobs_, "Objects that are read at a time")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--list", list_, "Name at most so many objects that are not intact; 0: all")
        ->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto store = offline_store::open(path_, store_access::read);
    if (!store)
      return disk_failure(path_, store.error());
    auto is = inspect(store->device());
    if (!is)
      return disk_failure(path_, is.error());
    interruption stop;
    scrub_result scrubbed = scrub(store->device(), *is, jobs_, stop, to);
    if (json_)
      print_json(to, to_json(path_, *is, scrubbed, list_));
    else
      fmt::print(to.out, "{}", format_scrub(path_, *is, scrubbed, list_));
    if (scrubbed.bad() != 0 || is->problems() != 0)
      return exit_code::damaged;
    return scrubbed.interrupted ? exit_code::failed : exit_code::ok;
  }

 private:
  std::string path_;
  size_t jobs_ = 4;
  size_t list_ = 100;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_verify_command() { return std::make_unique<disk_verify_command>(); }

} // namespace terrace::cli
