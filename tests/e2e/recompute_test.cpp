// The daemon leaves chunks that a client computes faster than the disk reads them to the client, if the
// client declares its speed.
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <csignal>

namespace terrace::e2e {
namespace recompute_test {

constexpr uint32_t very_fast = UINT32_MAX; ///< a chunk in 4 ns
constexpr uint32_t very_slow = 1;          ///< a chunk in 16 s

constexpr uint32_t chunks = 24;
constexpr uint32_t part = 15; ///< read from a tier before its speed is known: objects in 16 MiB

client::space_spec space_at(uint32_t prefill_tokens_per_s) {
  auto spec = test_space();
  spec.prefill_tokens_per_s = prefill_tokens_per_s;
  return spec;
}

/// 24 chunks, only on disk, which was not read since the daemon started.
class Recompute : public testing::Test {
 protected:
  explicit Recompute(const daemon_options& options = {}) : daemon_(with_disk(options)) {
    EXPECT_TRUE(daemon_.await_log("joined"));
    EXPECT_EQ(tester(daemon_.socket()).store(chain), chunks);
    EXPECT_EQ(daemon_.terminate(), 0);
    daemon_.start();
    EXPECT_TRUE(daemon_.await_log("24 objects found"));
  }
  static daemon_options with_disk(daemon_options options) {
    options.host_bytes = 64 * mebibyte;
    options.disk_bytes = 96 * mebibyte;
    return options;
  }
  tester client_at(uint32_t prefill_tokens_per_s) {
    return tester(daemon_.socket(), "client", chunks * object_bytes, space_at(prefill_tokens_per_s));
  }
  /// Reads the disk, so that host memory has the first chunks.
  void read_first(uint32_t count) {
    tester reader(daemon_.socket());
    EXPECT_EQ(reader.load_and_check(std::vector<digest>(chain.begin(), chain.begin() + count)), count);
    EXPECT_GT(reader.tier("disk").read_bytes_per_s, 0U);
  }

  daemon_under_test daemon_;
  std::vector<digest> chain = chain_of(1, chunks);
};

TEST_F(Recompute, OfADiskThatWasNotReadYetAFastClientIsOfferedALittle) {
  auto fast = client_at(very_fast);
  EXPECT_EQ(fast.tier("disk").read_bytes_per_s, 0U);
  auto found = fast.lookup(chain);
  EXPECT_EQ(found.found_chunks, part);
  EXPECT_EQ(found.recompute_chunks, chunks - part);
  EXPECT_EQ(found.found_tokens, part * space_chunk_tokens);
  EXPECT_EQ(found.usable_tokens, part * space_chunk_tokens);
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(part, tier_kind::disk));
  EXPECT_FALSE(found.missing);
}

TEST_F(Recompute, OnceTheDiskIsMeasuredAFastClientIsOfferedHostMemoryAlone) {
  read_first(3);
  auto fast = client_at(very_fast);
  tester reader(daemon_.socket());
  // A disk that was not read for some time is tried. So each lookup comes after a read; the last chunks are
  // read first.
  bool alone = false;
  for (uint32_t i = chunks; i-- > 4 && !alone;) {
    auto loaded = reader->load(reader.load_of(chain, {i, 1}), patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    auto found = fast.lookup(chain);
    EXPECT_LE(found.found_chunks, 3 + part);
    EXPECT_EQ(found.found_chunks + found.recompute_chunks, chunks);
    alone = found.found_chunks == 3;
    if (alone) {
      EXPECT_EQ(found.tiers, std::vector<tier_kind>(3, tier_kind::host));
    }
  }
  EXPECT_TRUE(alone);
}

TEST_F(Recompute, ASlowClientAndOneThatDeclaresNothingAreOfferedAll) {
  auto undeclared = client_at(0), slow = client_at(very_slow);
  auto found = undeclared.lookup(chain);
  EXPECT_EQ(found.found_chunks, chunks);
  EXPECT_EQ(found.recompute_chunks, 0U);
  read_first(3);
  found = slow.lookup(chain);
  EXPECT_EQ(found.found_chunks, chunks);
  EXPECT_EQ(found.recompute_chunks, 0U);
  EXPECT_EQ(slow.load_and_check(chain), chunks);
}

TEST_F(Recompute, ARequestMayDeclareAnotherSpeed) {
  auto undeclared = client_at(0), fast = client_at(very_fast);
  auto request = undeclared.lookup_of(chain);
  request.options.prefill_tokens_per_s = very_fast;
  auto found = undeclared->lookup(request, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->recompute_chunks, chunks - part);
  request = fast.lookup_of(chain);
  request.options.prefill_tokens_per_s = 0;
  found = fast->lookup(request, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->recompute_chunks, 0U);
  EXPECT_EQ(found->found_chunks, chunks);
}

TEST_F(Recompute, ALeaseHoldsOnlyWhatIsOffered) {
  auto fast = client_at(very_fast);
  auto found = fast.lookup(chain, true);
  EXPECT_EQ(found.found_chunks, part);
  EXPECT_EQ(found.recompute_chunks, chunks - part);
  EXPECT_EQ(fast.tier("disk").leased_objects, part);
  auto places = fast->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), part);
  for (size_t i = 0; i < part; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
}

TEST_F(Recompute, WhoeverWaitsForALookupIsToldToo) {
  auto fast = client_at(very_fast);
  tester other(daemon_.socket());
  lookup_id name;
  name.bytes.fill(7);
  auto request = fast.lookup_of(chain);
  request.id = name;
  ASSERT_TRUE(fast->lookup(request, patiently()));
  auto told = other->await_lookup(name, patiently());
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->found_chunks, part);
  EXPECT_EQ(told->recompute_chunks, chunks - part);
}

TEST_F(Recompute, APrefetchBringsOnlyWhatIsOffered) {
  auto fast = client_at(very_fast);
  auto done = fast->prefetch(
      {.in = fast.space(), .what = client::prefix::of_digests(chain), .rule = client::stop_rule::wait},
      patiently());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->found_chunks, part);
  EXPECT_EQ(done->expected_chunks, part);
  EXPECT_EQ(done->delivered_chunks, part);
  EXPECT_EQ(done->recompute_chunks, chunks - part);
  EXPECT_EQ(done->end, client::prefetch_end::complete);
  EXPECT_EQ(fast.lookup(chain, false, on_host).found_chunks, part);
}

TEST_F(Recompute, ALoadOfAPrefixDeliversOnlyWhatIsOffered) {
  auto fast = client_at(very_fast);
  auto loaded = fast->load(fast.load_of(chain), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->requested_chunks, chunks);
  EXPECT_EQ(loaded->delivered_chunks, part);
  EXPECT_EQ(loaded->recompute_chunks, chunks - part);
  EXPECT_FALSE(loaded->missing);
  for (size_t i = 0; i < part; ++i)
    EXPECT_TRUE(has_content(chain[i], fast.piece(i)));
  EXPECT_EQ(fast.tier("disk").bytes_read, part * object_bytes);
}

TEST_F(Recompute, APrefetchAndALoadMayBeLeftToTheClientAsAWhole) {
  auto fast = client_at(very_fast);
  tester reader(daemon_.socket());
  // As above: nothing is tried right after the disk was read.
  auto left = [&](auto&& offered) {
    for (uint32_t i = 0; i < chunks; ++i) {
      EXPECT_TRUE(reader->admin().evict(
          {.in = reader.space(), .what = client::prefix::of_digests(chain), .tiers = on_host}, patiently()));
      EXPECT_TRUE(reader->load(reader.load_of(chain, {chunks - 1, 1}), patiently()));
      if (offered() == 0)
        return true;
    }
    return false;
  };
  EXPECT_TRUE(left([&] {
    auto done = fast->prefetch(
        {.in = fast.space(), .what = client::prefix::of_digests(chain), .rule = client::stop_rule::wait},
        patiently());
    EXPECT_TRUE(done) << done.error().text;
    EXPECT_EQ(done->delivered_chunks + done->recompute_chunks, chunks);
    EXPECT_EQ(done->end, client::prefetch_end::complete);
    return done->delivered_chunks;
  }));
  EXPECT_TRUE(left([&] {
    auto loaded = fast->load(fast.load_of(chain), patiently());
    EXPECT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks + loaded->recompute_chunks, chunks);
    EXPECT_FALSE(loaded->missing);
    return loaded->delivered_chunks;
  }));
}

TEST_F(Recompute, ALoadOfAnotherPartDeliversAllOfIt) {
  auto fast = client_at(very_fast);
  auto loaded = fast->load(fast.load_of(chain, {1, chunks - 1}), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, chunks - 1);
  EXPECT_EQ(loaded->recompute_chunks, 0U);
}

TEST_F(Recompute, HangUpTurnsItOff) {
  daemon_.configure(with_disk({.disk = "cost_model = false\n"}));
  daemon_.signal(SIGHUP);
  ASSERT_TRUE(daemon_.await_log("disk.cost_model: true -> false, in force now"));
  auto found = client_at(very_fast).lookup(chain);
  EXPECT_EQ(found.found_chunks, chunks);
  EXPECT_EQ(found.recompute_chunks, 0U);
}

struct RecomputeOff : Recompute {
  RecomputeOff() : Recompute({.disk = "cost_model = false\n"}) {}
};

TEST_F(RecomputeOff, AFastClientIsOfferedAll) {
  auto fast = client_at(very_fast);
  EXPECT_EQ(fast.lookup(chain).found_chunks, chunks);
  read_first(3);
  EXPECT_EQ(fast.lookup(chain).recompute_chunks, 0U);
  EXPECT_EQ(fast.load_and_check(chain), chunks);
}

struct RecomputeCounted : Recompute {
  RecomputeCounted() : Recompute({.metrics = "127.0.0.1:" + std::to_string(port())}) {}
  static uint16_t port() {
    static const uint16_t chosen = test::free_port();
    return chosen;
  }
};

TEST_F(RecomputeCounted, RequestsAndTokensAreCounted) {
  auto fast = client_at(very_fast);
  EXPECT_EQ(fast.lookup(chain).recompute_chunks, chunks - part);
  EXPECT_EQ(client_at(0).lookup(chain).recompute_chunks, 0U);
  auto text = test::scrape(port());
  EXPECT_NE(text.find("terrace_recompute_requests_total{group=\"default\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("terrace_recompute_tokens_total{group=\"default\"} " +
                      std::to_string((chunks - part) * space_chunk_tokens) + "\n"),
            std::string::npos);
  EXPECT_NE(text.find("terrace_tier_read_bytes_per_second{group=\"default\",tier=\"disk\"} 0\n"),
            std::string::npos);
  read_first(3);
  text = test::scrape(port());
  EXPECT_EQ(text.find("terrace_tier_read_bytes_per_second{group=\"default\",tier=\"disk\"} 0\n"),
            std::string::npos);
  EXPECT_NE(text.find("terrace_tier_queued_read_bytes{group=\"default\",tier=\"disk\"} 0\n"),
            std::string::npos);
}

/// The samples of what loads have saved: computing, and the loads themselves.
struct saved_seconds {
  double computing = 0, loads = 0;
};

struct ComputingSaved : RecomputeCounted {
  static saved_seconds now() {
    auto text = test::scrape(port());
    auto sample = [&](const std::string& name) {
      const std::string line = "\n" + name + "{group=\"default\"} ";
      auto at = text.find(line);
      return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
    };
    return {sample("terrace_computing_saved_seconds_total"),
            sample("terrace_computing_saved_load_seconds_total")};
  }
  static constexpr double tokens = chunks * space_chunk_tokens;
};

TEST_F(ComputingSaved, OfAClientThatDeclaresItsSpeed) {
  EXPECT_EQ(now().computing, 0);
  EXPECT_EQ(client_at(0).load_and_check(chain), chunks); // nothing is known of this one
  EXPECT_EQ(now().computing, 0);
  EXPECT_EQ(now().loads, 0);
  auto slow = client_at(4); // tokens per second
  EXPECT_EQ(slow.load_and_check(chain), chunks);
  EXPECT_DOUBLE_EQ(now().computing, tokens / 4);
  EXPECT_GT(now().loads, 0);
  auto longer = chain;
  longer.push_back(chain_of(2, 1)[0]); // which nobody has stored
  auto found = slow.lookup(longer, true);
  client::load_request leased = slow.load_of(chain, {4, 8});
  leased.what = {};
  leased.lease = found.held.id();
  auto loaded = slow->load(leased, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_DOUBLE_EQ(now().computing, (tokens + 8 * space_chunk_tokens) / 4);
}

TEST_F(ComputingSaved, OfARequestThatDeclaresAnotherSpeed) {
  auto undeclared = client_at(0);
  EXPECT_EQ(undeclared.load_and_check(chain), chunks); // now in host memory, so that nothing is left to it
  auto request = undeclared.load_of(chain);
  request.options.prefill_tokens_per_s = 2;
  ASSERT_TRUE(undeclared->load(request, patiently()));
  EXPECT_DOUBLE_EQ(now().computing, tokens / 2);
}

TEST_F(ComputingSaved, OfWhatIsReadInPlace) {
  EXPECT_EQ(client_at(0).load_and_check(chain), chunks);
  auto slow = client_at(1);
  auto found = slow.lookup(chain, true);
  ASSERT_TRUE(slow->read_lease(found.held.id(), {4, 8}, patiently()));
  EXPECT_DOUBLE_EQ(now().computing, 8 * space_chunk_tokens);
}

TEST_F(ComputingSaved, RanksAndPoolsArePartsOfTheWhole) {
  auto spec = space_at(1);
  spec.world_size = 2;
  std::vector<digest> both = chain_of(3, 4);
  for (uint16_t rank : {uint16_t{0}, uint16_t{1}}) {
    spec.rank = rank;
    tester one(daemon_.socket(), "rank", 4 * object_bytes, spec);
    one.store(both);
  }
  double expected = 0;
  for (uint16_t rank : {uint16_t{0}, uint16_t{1}}) {
    spec.rank = rank;
    tester one(daemon_.socket(), "rank", 4 * object_bytes, spec);
    EXPECT_EQ(one.load_and_check(both), 4U);
    expected += 4.0 * space_chunk_tokens / 2;
    EXPECT_DOUBLE_EQ(now().computing, expected);
  }
}

} // namespace recompute_test
} // namespace terrace::e2e
