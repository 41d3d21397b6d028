// terrace clear

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/space_options.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class clear_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--all", all_, "Clear everything of the socket's trust group, in memory and on disk");
    space_.declare(app, false);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    if (all_ == space_.given())
      return bad_usage("expected either --all, or the fields of one space (see terrace clear --help)");
    auto daemon = connect(daemon_, "terrace clear");
    if (!daemon)
      return tl::unexpected(daemon.error());
    std::optional<client::space> space;
    if (!all_) {
      auto spec = space_.read();
      if (!spec)
        return tl::unexpected(spec.error());
      auto opened = daemon->open_space(*spec, daemon_.until());
      if (!opened)
        return request_failed(*daemon, "opening the space", opened.error());
      space = *opened;
    }
    auto cleared = daemon->clear(space ? &*space : nullptr, daemon_.until());
    if (!cleared)
      return request_failed(*daemon, "clearing", cleared.error());
    if (daemon_.json)
      print_json(to, json{{"objects", cleared->objects}, {"bytes", cleared->bytes}});
    else
      fmt::print(
          to.out, "{}",
          format_facts({{"cleared", format_count(cleared->objects) + " objects, counted once per tier"},
                        {"freed", format_bytes(cleared->bytes)}}));
    return exit_code::ok;
  }

 private:
  bool all_ = false;
  space_options space_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_clear_command() { return std::make_unique<clear_command>(); }

} // namespace terrace::cli
