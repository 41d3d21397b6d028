// terrace move

#include "base/tier_properties.hpp"
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/prompt_options.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class move_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--to", to_, "The tier that gets the prompt's chunks")
        ->check(CLI::IsMember({"gpu", "host", "disk"}))
        ->required();
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace move");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    auto done = daemon.move({space, prompt_.what(), 0, {}}, *tier_named(to_), daemon_.until());
    if (!done)
      return request_failed(daemon, "moving the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"to", to_},
                      {"requested_chunks", done->requested_chunks},
                      {"moved", share(done->moved)},
                      {"present", share(done->present)},
                      {"missing", share(done->missing)},
                      {"held", share(done->held)},
                      {"failed", share(done->failed)}});
    else
      fmt::print(to.out, "{}",
                 format_facts({{"requested", format_count(done->requested_chunks) + " chunks"},
                               {"moved", text(done->moved)},
                               {"already there", text(done->present)},
                               {"not found", text(done->missing)},
                               {"held", text(done->held)},
                               {"failed", text(done->failed)}}));
    return exit_code::ok;
  }

 private:
  static json share(const client::move_share& one) { return {{"chunks", one.chunks}, {"bytes", one.bytes}}; }
  static std::string text(const client::move_share& one) {
    return format_count(one.chunks) + " chunks, " + format_bytes(one.bytes);
  }

  std::string to_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_move_command() { return std::make_unique<move_command>(); }

} // namespace terrace::cli
