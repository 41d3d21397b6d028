// terrace status

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/status_report.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class status_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace status", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto status = daemon->status(daemon_.until());
    if (!status)
      return request_failed(*daemon, "asking for the status", status.error());
    if (daemon_.json)
      print_json(to, to_json(*status));
    else
      fmt::print(to.out, "{}", format_status(*status));
    return exit_code::ok;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_status_command() { return std::make_unique<status_command>(); }

} // namespace terrace::cli
