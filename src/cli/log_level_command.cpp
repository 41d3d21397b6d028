// terrace log-level

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class log_level_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("level", level_, "trace, debug, info, warning or error")->required();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace log-level", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto before = daemon->set_log_level(level_, daemon_.until());
    if (!before)
      return request_failed(*daemon, "setting the log level", before.error());
    if (daemon_.json)
      print_json(to, {{"level", level_}, {"before", *before}});
    else
      fmt::print(to.out, "the log level is now {}; it was {}\n", level_, *before);
    return exit_code::ok;
  }

 private:
  std::string level_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_log_level_command() { return std::make_unique<log_level_command>(); }

} // namespace terrace::cli
