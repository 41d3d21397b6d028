// Hits improve when clients report how their requests end.
#include "cli/simulate/tier_cache.hpp"
#include "cli/simulate_run.hpp"
#include "cli/trace_generator.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

/// Chats and agents, with room for a fiftieth of their chunks.
uint64_t hits_of_kmg(trace t, void (*forget)(trace_request&)) {
  for (trace_request& request : t.requests)
    forget(request);
  auto made = to_workload(t, trace_block_tokens);
  EXPECT_TRUE(made.has_value());
  simulate::tracker_options options;
  options.policies = {"kmg"};
  options.seed = 1;
  options.object_bytes = 1;
  options.token_ns = 20'000'000;
  simulate::cache_shape shape{made->distinct_chunks() / 50, 1, 64, 1024};
  simulate::tier_cache cache(*made, options, shape);
  for (const simulate::request& next : made->requests())
    cache.serve(next);
  return cache.counts().hits;
}

TEST(Hints, EachIsWorthHits) {
  uint64_t none = 0, closed = 0, reason = 0, all = 0;
  for (uint64_t seed : {1, 2, 3, 4}) {
    trace_options options;
    options.seed = seed;
    options.requests = 6'000;
    options.session_rate = 0.6;
    options.think_seconds = 90;
    options.system_prompts = 20;
    options.agents = 0.3;
    options.hints = 1;
    trace told = *generate_trace(options);
    none += hits_of_kmg(told, [](trace_request& r) {
      r.reason = finish_reason::unknown;
      r.session_closed = false;
      r.think_ms.reset();
    });
    closed += hits_of_kmg(told, [](trace_request& r) {
      r.reason = finish_reason::unknown;
      r.think_ms.reset();
    });
    reason += hits_of_kmg(told, [](trace_request& r) {
      r.session_closed = false;
      r.think_ms.reset();
    });
    all += hits_of_kmg(told, [](trace_request&) {});
  }
  // Other facts about a request already suggest that a turn was the last one, so this hint alone is worth
  // nearly one per cent of the hits. The reason why an answer ended is worth five, and all hints together
  // seventeen.
  EXPECT_GT(closed, none + none / 200);
  EXPECT_GT(reason, none + none / 30);
  EXPECT_GT(all, none + none / 10);
  EXPECT_GT(all, closed);
  EXPECT_GT(all, reason);
}

} // namespace
} // namespace terrace::cli
