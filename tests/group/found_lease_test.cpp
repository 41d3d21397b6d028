#include "group/leased_part.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

using namespace terrace;

namespace {

space_ptr space() {
  auto spec = terrace::test::small_space();
  return std::make_shared<const opened_space>(opened_space{space_id{9}, spec, spec.fingerprint()});
}

chunk_prefix prefix_of(size_t chunks) {
  chunk_prefix made;
  for (size_t n = 0; n < chunks; ++n) {
    digest one{};
    one.bytes[0] = static_cast<uint8_t>(n + 1);
    made.chunks.push_back(one);
  }
  made.parent = digest{};
  made.first_token = 512;
  return made;
}

lookup_answer found(uint32_t chunks) {
  lookup_answer made;
  made.plan.requested_chunks = 5;
  made.plan.found_chunks = chunks;
  made.plan.chunk_tiers = std::vector<tier_kind>(chunks, tier_kind::host);
  made.plan.object_tiers = made.plan.chunk_tiers;
  made.held.push_back({tier_kind::host, nullptr});
  return made;
}

/// Sums counters by name and tier.
struct sums final : metrics::sample_sink {
  void counter(std::string_view name, std::string_view, const metrics::labels& labels,
               double value) override {
    std::string key(name);
    for (const auto& [label, text] : labels)
      key += " " + text;
    of[key] = value;
  }
  void gauge(std::string_view, std::string_view, const metrics::labels&, double) override {}
  void histogram(std::string_view, std::string_view, const metrics::labels&,
                 const metrics::histogram_snapshot&) override {}
  std::map<std::string, double> of;
};

const lease_id id{{1, 2, 3}};
const std::chrono::steady_clock::time_point now{std::chrono::seconds(7)};

} // namespace

TEST(FoundLease, IsOnTheFoundChunks) {
  auto in = space();
  auto prefix = prefix_of(5);
  auto taken = lease_on(found(3), prefix, in, id, connection_id{4}, now);
  EXPECT_EQ(taken->id, id);
  EXPECT_EQ(taken->owner, connection_id{4});
  EXPECT_EQ(taken->space, in);
  EXPECT_EQ(taken->chunks, (std::vector<digest>(prefix.chunks.begin(), prefix.chunks.begin() + 3)));
  EXPECT_EQ(taken->before, prefix.parent);
  EXPECT_EQ(taken->first_token, 512u);
  EXPECT_EQ(taken->held.size(), 1u);
  EXPECT_EQ(taken->taken, now);
  EXPECT_EQ(taken->taken_for, reference_kind::lease) << "of a client";
  auto saved = lease_on(found(3), prefix, in, id, {}, now, reference_kind::session);
  EXPECT_EQ(saved->taken_for, reference_kind::session);
}

TEST(FoundLease, OthersAreToldOfItWithoutHoldingIt) {
  auto in = space();
  auto taken = lease_on(found(2), prefix_of(5), in, id, connection_id{4}, now);
  auto outcome = outcome_of(found(2), in->spec, taken);
  EXPECT_TRUE(outcome.leased);
  EXPECT_EQ(outcome.held.lock(), taken);
  EXPECT_EQ(outcome.chunk_tokens, in->spec.chunk_tokens);
  EXPECT_EQ(outcome.plan.found_chunks, 2u);
  EXPECT_TRUE(outcome.plan.object_tiers.empty());
  taken.reset();
  EXPECT_TRUE(outcome.held.expired());
  EXPECT_FALSE(outcome_of(found(2), in->spec, nullptr).leased);
}

TEST(FoundLease, WhatCameFromAStoreCountsThere) {
  metrics::space_table table(1);
  auto probe = table.probe("default", "model");
  auto in = space();
  auto brought = found(3);
  brought.brought[static_cast<size_t>(tier_kind::remote)] = 1;
  brought.brought[static_cast<size_t>(tier_kind::remote2)] = 1;
  count_hits(*probe, in->spec, brought);
  sums sink;
  probe->collect({}, sink);
  EXPECT_EQ(sink.of["terrace_space_hit_tokens_total remote"], 1.0 * in->spec.chunk_tokens);
  EXPECT_EQ(sink.of["terrace_space_hit_tokens_total remote2"], 1.0 * in->spec.chunk_tokens);
  EXPECT_EQ(sink.of["terrace_space_hit_tokens_total host"], 1.0 * in->spec.chunk_tokens);
}

TEST(FoundLease, ItsTokensAreCountedByTier) {
  metrics::space_table table(1);
  auto probe = table.probe("default", "model");
  auto in = space();
  count_hits(*probe, in->spec, found(3));
  sums sink;
  probe->collect({}, sink);
  EXPECT_EQ(sink.of["terrace_space_asked_tokens_total"], 5.0 * in->spec.chunk_tokens);
  EXPECT_EQ(sink.of["terrace_space_hit_tokens_total host"], 3.0 * in->spec.chunk_tokens);
  EXPECT_EQ(sink.of["terrace_space_hit_tokens_total disk"], 0.0);
}
