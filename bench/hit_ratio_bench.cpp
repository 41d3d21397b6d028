// The hits of each eviction policy on a trace, compared with Belady's bound, and the speed of the simulation.
#include "bench/benchmark.hpp"

#include "cli/simulate/bounds.hpp"
#include "cli/simulate_run.hpp"
#include "cli/trace_generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace terrace::bench {

namespace {

constexpr std::array<double, 6> percents{1, 2, 5, 10, 20, 40};
constexpr uint64_t seeds = 5;
constexpr double accesses_per_second_min = 1e6;
constexpr std::string_view judged_policy = "kmg";

/// Mooncake's public conversation trace. An offline study reports these hit ratios in % for kmg, from a
/// simulator that knew the lengths of answers in advance; the floor here is half a point lower.
constexpr uint64_t conversation_requests = 12'031, conversation_tokens = 144'793'823;
constexpr std::array<double, 6> conversation_kmg{9.8, 13.9, 22.0, 29.5, 34.8, 37.0};
constexpr double slack = 0.5;

constexpr uint64_t token_ns = 20'000'000; ///< policies learn an answer's length when it is complete

cli::trace trace_of(const settings& options) {
  auto give = [](auto&& loaded) {
    if (!loaded)
      give_up("hit_ratio: " + loaded.error().text);
    return std::move(*loaded);
  };
  if (!options.trace.empty())
    return give(cli::load_trace(options.trace));
  cli::trace_options conversations;
  conversations.requests = 12'000;
  conversations.turns = 4;
  conversations.think_seconds = 90;
  conversations.user_tokens = 1500;
  conversations.branch = 0.2;
  conversations.system_prompts = 40;
  conversations.system_prompt_tokens = 6000;
  return give(cli::generate_trace(conversations));
}

struct sized_plan {
  cli::simulate_plan plan;
  std::array<double, percents.size()> belady{}; ///< in percent of the input
};

double percent_of_input(const simulate::workload& work, double chunks) {
  return chunks * work.chunk_tokens() / static_cast<double>(work.input_tokens()) * 100;
}

sized_plan plan_for(const simulate::workload& work) {
  simulate::object_sizes objects{.payload_bytes = 32 << 10, .physical_bytes = 36 << 10};
  simulate::belady_bound best(work);
  sized_plan made;
  made.plan.seeds = seeds;
  made.plan.token_ns = token_ns;
  for (size_t i = 0; i < percents.size(); ++i) {
    auto chunks = std::llround(percents[i] / 100 * static_cast<double>(work.distinct_chunks()));
    uint64_t arena = simulate::arena_for(std::max<uint64_t>(1, static_cast<uint64_t>(chunks)), objects);
    made.plan.shapes.push_back(simulate::shape_of(arena, objects));
    made.belady[i] =
        percent_of_input(work, static_cast<double>(best.hits(made.plan.shapes.back().capacity_chunks)));
  }
  return made;
}

figure ratio_figure(const std::string& policy, double percent, double value, double best,
                    std::optional<double> floor) {
  figure f{.name = "hit_ratio " + policy + " " + std::to_string(static_cast<int>(percent)) + " %",
           .unit = "% of tokens",
           .value = value,
           .limit = best,
           .rounds = static_cast<int>(seeds),
           .direction = better::higher,
           .absolute = floor.has_value(),
           .bounded = floor.has_value()};
  if (floor) {
    f.floor = *floor - slack;
    f.aim = *floor;
  }
  return f;
}

/// Measures the hits that clients' hints on the ends of their requests are worth: chats and agents, with and
/// without hints.
void hint_figures(const reporter& report) {
  cli::trace_options chats_and_agents;
  chats_and_agents.requests = 12'000;
  chats_and_agents.session_rate = 0.6;
  chats_and_agents.think_seconds = 90;
  chats_and_agents.system_prompts = 20;
  chats_and_agents.agents = 0.3;
  chats_and_agents.hints = 1;
  for (bool told : {false, true}) {
    auto requests = cli::generate_trace(chats_and_agents);
    for (cli::trace_request& request : requests->requests)
      if (!told) {
        request.reason = finish_reason::unknown;
        request.session_closed = false;
        request.think_ms.reset();
      }
    auto work = cli::to_workload(*requests, cli::trace_block_tokens);
    auto [plan, limits] = plan_for(*work);
    plan.policies = {std::string(judged_policy)};
    cli::interruption never;
    auto cells = cli::run_cells(*work, plan, 1, never, [](uint64_t) {});
    for (size_t i = 0; i < percents.size(); ++i)
      report(ratio_figure(std::string(judged_policy) + (told ? " with hints" : " without hints"), percents[i],
                          percent_of_input(*work, cells[i].mean(&simulate::cache_counts::hits)), limits[i],
                          std::nullopt));
  }
}

} // namespace

void hit_ratio(const settings& options, const reporter& report) {
  cli::trace requests = trace_of(options);
  auto work = cli::to_workload(requests, cli::trace_block_tokens);
  if (!work)
    give_up("hit_ratio: " + work.error().text);
  bool conversation =
      work->requests().size() == conversation_requests && work->input_tokens() == conversation_tokens;
  auto [plan, limits] = plan_for(*work);
  plan.policies.assign(eviction_policy_names().begin(), eviction_policy_names().end());
  cli::interruption never;
  auto cells = cli::run_cells(*work, plan, 1, never, [](uint64_t) {});
  for (size_t policy = 0; policy < plan.policies.size(); ++policy) {
    const std::string& name = plan.policies[policy];
    double seconds = 0, served = 0;
    for (size_t i = 0; i < percents.size(); ++i) {
      const cli::simulated_cell& cell = cells[policy * percents.size() + i];
      seconds += cell.seconds;
      served += static_cast<double>(cell.served);
      std::optional<double> floor;
      if (conversation && name == judged_policy)
        floor = conversation_kmg[i];
      report(ratio_figure(name, percents[i],
                          percent_of_input(*work, cell.mean(&simulate::cache_counts::hits)), limits[i],
                          floor));
    }
    report({.name = "simulate_rate " + name,
            .unit = "M accesses/s",
            .value = served / seconds / 1e6,
            .floor = accesses_per_second_min / 1e6,
            .aim = 2 * accesses_per_second_min / 1e6,
            .rounds = 1,
            .direction = better::higher,
            .absolute = true});
  }
  if (options.trace.empty())
    hint_figures(report);
}

} // namespace terrace::bench
