// terrace evict

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

class evict_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--tier", tier_, "Remove from this tier only")
        ->check(CLI::IsMember({"gpu", "host", "disk"}));
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace evict");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::prompt_request request{space, prompt_.what(), 0, {}};
    if (!tier_.empty()) {
      request.tiers = 1U << static_cast<unsigned>(*tier_named(tier_)); // validated
    }
    auto done = daemon.evict(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "evicting the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"objects", done->objects}, {"bytes", done->bytes}});
    else
      fmt::print(to.out, "{}",
                 format_facts({{"evicted", format_count(done->objects) + " objects, counted once per tier"},
                               {"freed", format_bytes(done->bytes)}}));
    return exit_code::ok;
  }

 private:
  std::string tier_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_evict_command() { return std::make_unique<evict_command>(); }

} // namespace terrace::cli
