// terrace drain, terrace shutdown

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class shutdown_command final : public command {
 public:
  explicit shutdown_command(bool when_idle) : when_idle_(when_idle) {}

  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, when_idle_ ? "terrace drain" : "terrace shutdown", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto clients = daemon->shut_down(when_idle_, daemon_.until());
    if (!clients)
      return request_failed(*daemon, when_idle_ ? "draining the daemon" : "ending the daemon",
                            clients.error());
    if (daemon_.json)
      print_json(to, {{"clients", *clients}});
    else
      fmt::print(to.out, "the daemon ends {}{} clients\n",
                 when_idle_ ? "when its clients have left: " : "and answers what is in flight: ",
                 format_count(*clients));
    return exit_code::ok;
  }

 private:
  bool when_idle_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_drain_command() { return std::make_unique<shutdown_command>(true); }
std::unique_ptr<command> make_shutdown_command() { return std::make_unique<shutdown_command>(false); }

} // namespace terrace::cli
