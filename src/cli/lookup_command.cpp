// terrace lookup

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/object_client.hpp"
#include "cli/prompt_options.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <chrono>

namespace terrace::cli {

namespace {

struct tier_run {
  size_t first;
  size_t count;
  tier_kind tier;
};

std::vector<tier_run> runs_of(const std::vector<tier_kind>& tiers) {
  std::vector<tier_run> runs;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (runs.empty() || runs.back().tier != tiers[i])
      runs.push_back({i, 0, tiers[i]});
    ++runs.back().count;
  }
  return runs;
}

class lookup_command final : public command {
 public:
  void declare(CLI::App& app) override {
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace lookup");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::lookup_request request;
    request.in = space;
    request.what = prompt_.what();
    auto begin = std::chrono::steady_clock::now();
    auto found = daemon.lookup(request, daemon_.until());
    auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin);
    if (!found)
      return request_failed(daemon, "lookup", found.error());
    if (daemon_.json)
      print_json(to, describe(*found, space, took));
    else
      print(*found, space, took, to);
    return exit_code::ok;
  }

 private:
  static json describe(const client::lookup_result& found, const client::space& space,
                       std::chrono::nanoseconds took) {
    json runs = json::array();
    for (const tier_run& run : runs_of(found.tiers))
      runs.push_back({{"first_chunk", run.first}, {"chunks", run.count}, {"tier", to_string(run.tier)}});
    return {{"space", to_hex(space.fingerprint)},
            {"requested_chunks", found.requested_chunks},
            {"found_chunks", found.found_chunks},
            {"found_tokens", found.found_tokens},
            {"usable_tokens", found.usable_tokens},
            {"recompute_chunks", found.recompute_chunks},
            {"tiers", runs},
            {"latency_ns", took.count()}};
  }

  static void print(const client::lookup_result& found, const client::space& space,
                    std::chrono::nanoseconds took, console& to) {
    to.print("{}", format_facts(
                       {{"found",
                         fmt::format("{} of {} chunks, {} tokens", format_count(found.found_chunks),
                                     format_count(found.requested_chunks), format_count(found.found_tokens))},
                        {"usable", format_count(found.usable_tokens) + " tokens"},
                        {"space", to_hex(space.fingerprint)},
                        {"took", format_duration(static_cast<double>(took.count()))}}));
    if (found.tiers.empty())
      return;
    table runs({{"chunks", align::left}, {"tier", align::left}});
    for (const tier_run& run : runs_of(found.tiers))
      runs.add({run.count == 1 ? std::to_string(run.first)
                               : fmt::format("{}-{}", run.first, run.first + run.count - 1),
                to_string(run.tier)});
    to.print("\n{}", runs.to_string());
  }

  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_lookup_command() { return std::make_unique<lookup_command>(); }

} // namespace terrace::cli
