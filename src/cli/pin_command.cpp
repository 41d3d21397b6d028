// terrace pin, terrace unpin

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/prompt_options.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class pin_command final : public command {
 public:
  explicit pin_command(bool ends) : ends_(ends) {}

  void declare(CLI::App& app) override {
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, ends_ ? "terrace unpin" : "terrace pin");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::prompt_request request{space, prompt_.what(), 0, {}};
    return ends_ ? unpin(daemon, request, to) : pin(daemon, request, to);
  }

 private:
  outcome<exit_code> pin(client::connection& daemon, const client::prompt_request& request, console& to) {
    auto done = daemon.pin(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "pinning the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"requested_chunks", done->requested_chunks},
                      {"pinned_chunks", done->pinned_chunks},
                      {"tokens", done->tokens},
                      {"bytes", done->bytes},
                      {"lease", done->pinned_chunks == 0 ? "" : id_text(done->lease.bytes)}});
    else if (done->pinned_chunks == 0)
      fmt::print(to.out, "nothing of the prompt is cached, so nothing is pinned\n");
    else
      fmt::print(to.out, "{} of {} chunks are pinned: {} tokens, {}\n", format_count(done->pinned_chunks),
                 format_count(done->requested_chunks), format_count(done->tokens), format_bytes(done->bytes));
    return exit_code::ok;
  }

  outcome<exit_code> unpin(client::connection& daemon, const client::prompt_request& request, console& to) {
    auto done = daemon.unpin(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "unpinning the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"pins", done->pins}, {"bytes", done->bytes}});
    else if (done->pins == 0)
      fmt::print(to.out, "the prompt was not pinned\n");
    else
      fmt::print(to.out, "the prompt is unpinned: {} can be evicted\n", format_bytes(done->bytes));
    return exit_code::ok;
  }

  bool ends_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_pin_command() { return std::make_unique<pin_command>(false); }
std::unique_ptr<command> make_unpin_command() { return std::make_unique<pin_command>(true); }

} // namespace terrace::cli
