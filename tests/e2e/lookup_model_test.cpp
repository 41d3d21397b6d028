// Compares lookups with a model that is obviously right: it knows where each object is, and looks at one
// after the other.
//
// Random stores, loads, evictions to the disk, clears and reconnections in two spaces; after each of them
// every possible question is asked.
#include "pool_client.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

namespace terrace::e2e {
namespace {

constexpr size_t prompts = 5;
constexpr uint32_t most_chunks = 7;

/// An object, by space, digest, pool and rank; and the mask of the tiers that have it.
using object_name = std::tuple<size_t, std::string, uint8_t, uint32_t>;

struct expected_prefix {
  uint32_t found = 0;
  uint64_t usable_tokens = 0;
  std::vector<tier_kind> tiers;
};

/// The place of everything.
class lookup_model {
 public:
  explicit lookup_model(std::vector<client::space_spec> spaces) : spaces_(std::move(spaces)) {}

  uint32_t tiers_of(size_t space, const digest& chunk, uint8_t pool, uint32_t rank) const {
    auto at = objects_.find(name(space, chunk, pool, rank));
    return at == objects_.end() ? 0 : at->second;
  }
  void add(size_t space, const digest& chunk, uint8_t pool, uint32_t rank, uint32_t tiers) {
    objects_[name(space, chunk, pool, rank)] |= tiers;
  }
  /// Copies everything that is in one tier to the other one.
  void copy(uint32_t from, uint32_t to) {
    for (auto& [name, tiers] : objects_)
      if ((tiers & from) != 0)
        tiers |= to;
  }
  void leave(uint32_t tier) {
    for (auto at = objects_.begin(); at != objects_.end();) {
      at->second &= ~tier;
      at = at->second == 0 ? objects_.erase(at) : std::next(at);
    }
  }
  void clear(size_t space) {
    std::erase_if(objects_, [space](const auto& one) { return std::get<0>(one.first) == space; });
  }
  uint64_t objects_in(uint32_t tier) const {
    return static_cast<uint64_t>(
        std::ranges::count_if(objects_, [tier](const auto& one) { return (one.second & tier) != 0; }));
  }

  /// L1, L3, L4 and L12, word by word.
  expected_prefix lookup(size_t space, const std::vector<digest>& chain, uint64_t prompt_tokens,
                         uint32_t tiers) const {
    expected_prefix expected;
    for (uint32_t n = 1; n <= chain.size(); ++n)
      if (holds(space, chain, n, tiers))
        expected.found = n;
    for (uint32_t chunk = 0; chunk < expected.found; ++chunk)
      expected.tiers.push_back(slowest(space, chain, expected.found, chunk, tiers));
    expected.usable_tokens = usable(space, chain, prompt_tokens, tiers, expected.found);
    return expected;
  }

 private:
  static object_name name(size_t space, const digest& chunk, uint8_t pool, uint32_t rank) {
    return {space, std::string(chunk.bytes.begin(), chunk.bytes.end()), pool, rank};
  }
  uint32_t ranks(size_t space, const client::pool_spec& pool) const {
    return pool.replicated ? 1 : spaces_[space].world_size;
  }
  static bool needed(const client::pool_spec& pool, uint32_t n, uint32_t chunk) {
    return chunk < n && (pool.rule == client::hit_rule::all_chunks || chunk + pool.trailing >= n);
  }
  bool holds(size_t space, const std::vector<digest>& chain, uint32_t n, uint32_t tiers) const {
    const auto& pools = spaces_[space].pools;
    for (uint8_t pool = 0; pool < pools.size(); ++pool)
      for (uint32_t chunk = 0; chunk < n; ++chunk)
        for (uint32_t rank = 0; rank < ranks(space, pools[pool]); ++rank)
          if (needed(pools[pool], n, chunk) && (tiers_of(space, chain[chunk], pool, rank) & tiers) == 0)
            return false;
    return true;
  }
  tier_kind slowest(size_t space, const std::vector<digest>& chain, uint32_t n, uint32_t chunk,
                    uint32_t tiers) const {
    tier_kind slowest = tier_kind::host;
    const auto& pools = spaces_[space].pools;
    for (uint8_t pool = 0; pool < pools.size(); ++pool)
      for (uint32_t rank = 0; rank < ranks(space, pools[pool]); ++rank)
        if (needed(pools[pool], n, chunk) &&
            (tiers_of(space, chain[chunk], pool, rank) & tiers & on_host) == 0)
          slowest = tier_kind::disk;
    return slowest;
  }
  /// At least the last token is computed anew. A window cannot be cut by one token, so for it the next
  /// shorter length counts.
  uint64_t usable(size_t space, const std::vector<digest>& chain, uint64_t prompt_tokens, uint32_t tiers,
                  uint32_t found) const {
    const auto& spec = spaces_[space];
    if (uint64_t{found} * spec.chunk_tokens < prompt_tokens)
      return uint64_t{found} * spec.chunk_tokens;
    if (std::ranges::all_of(spec.pools, [](const auto& p) { return p.rule == client::hit_rule::all_chunks; }))
      return found == 0 ? 0 : prompt_tokens - 1;
    for (uint32_t n = found; n-- > 1;)
      if (holds(space, chain, n, tiers))
        return uint64_t{n} * spec.chunk_tokens;
    return 0;
  }

  std::vector<client::space_spec> spaces_;
  std::map<object_name, uint32_t> objects_;
};

/// Attention on two ranks, a window of the last two chunks, and a latent that all ranks share.
client::space_spec shared_space(uint32_t rank) {
  auto spec = test_space();
  spec.world_size = 2;
  spec.rank = rank;
  spec.pools = {
      {.name = "kv", .object_bytes = 64 << 10},
      {.name = "window", .object_bytes = 32 << 10, .rule = client::hit_rule::trailing_chunks, .trailing = 2},
      {.name = "latent", .object_bytes = 16 << 10, .replicated = true}};
  return spec;
}

client::space_spec plain_space() {
  auto spec = test_space();
  spec.model = "plain";
  spec.pools = {{.name = "kv", .object_bytes = 96 << 10}};
  return spec;
}

/// Its objects are smaller than all others.
client::space_spec small_space() {
  auto spec = test_space();
  spec.model = "small";
  spec.pools = {{.name = "kv", .object_bytes = 4 << 10}};
  return spec;
}

/// Returns prompts of any length that share their beginnings.
std::vector<std::vector<uint32_t>> random_prompts(std::mt19937& random) {
  std::vector<std::vector<uint32_t>> all;
  for (size_t i = 0; i < prompts; ++i) {
    std::vector<uint32_t> tokens;
    if (i > 0) {
      const auto& other = all[random() % i];
      tokens.assign(other.begin(), other.begin() + static_cast<ptrdiff_t>(random() % other.size()));
    }
    size_t length = space_chunk_tokens * (1 + random() % most_chunks) + random() % space_chunk_tokens;
    while (tokens.size() < length)
      tokens.push_back(static_cast<uint32_t>(random() % 50'000));
    tokens.resize(length);
    all.push_back(std::move(tokens));
  }
  return all;
}

/// A seed, and the time at which stored objects reach the disk.
struct model_run {
  uint32_t seed;
  bool write_back = false;
};

class LookupModel : public ::testing::TestWithParam<model_run> {
 protected:
  struct member {
    size_t space;
    client::space_spec spec;
    std::unique_ptr<pool_client> by;
  };

  void SetUp() override {
    ASSERT_TRUE(daemon_.await_log("joined"));
    for (size_t i = 0; i < members_.size(); ++i)
      connect(members_[i]);
    for (const auto& prompt : prompts_)
      for (size_t space = 0; space < 2; ++space)
        chains_[space].push_back(hashed(*members_[space == 0 ? 0 : 2].by, prompt));
  }

  void connect(member& one) {
    one.by.reset();
    one.by = std::make_unique<pool_client>(daemon_.socket(), one.spec);
  }

  static std::vector<digest> hashed(pool_client& by, const std::vector<uint32_t>& prompt) {
    auto request = (*by).lookup_of({});
    request.what = client::prefix::of_tokens(prompt);
    request.digests = true;
    auto answer = by->lookup(request, patiently());
    EXPECT_TRUE(answer) << answer.error().text;
    return answer ? answer->digests : std::vector<digest>{};
  }

  member& any_member() { return members_[random_() % members_.size()]; }
  std::vector<uint8_t> any_pools(const member& of) {
    std::vector<uint8_t> wanted;
    for (uint8_t pool = 0; pool < of.spec.pools.size(); ++pool)
      if (random_() % 4 != 0)
        wanted.push_back(pool);
    if (wanted.empty())
      wanted.push_back(static_cast<uint8_t>(random_() % of.spec.pools.size()));
    return wanted;
  }
  client::chunk_range any_range(const std::vector<digest>& chain) {
    auto first = static_cast<uint32_t>(random_() % chain.size());
    return {first, 1 + static_cast<uint32_t>(random_() % (chain.size() - first))};
  }
  static uint32_t stored_as(const member& of, uint8_t pool) {
    return of.spec.pools[pool].replicated ? 0 : of.spec.rank;
  }

  void store() {
    member& one = any_member();
    const auto& chain = chains_[one.space][random_() % prompts];
    auto range = any_range(chain);
    auto wanted = any_pools(one);
    auto stored = one.by->store(chain, range, wanted);
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks + stored->present_chunks, range.count);
    for (uint32_t c = range.first; c < range.first + range.count; ++c)
      for (uint8_t pool : wanted)
        model_.add(one.space, chain[c], pool, stored_as(one, pool), reached_by_stores());
    await_writes();
  }

  static uint32_t reached_by_stores() { return GetParam().write_back ? on_host : on_host | on_disk; }

  /// Waits until everything that should be on the disk is there.
  void await_writes() {
    EXPECT_TRUE(eventually([&] { return observer_.tier("disk").objects == model_.objects_in(on_disk); }))
        << "disk: " << observer_.tier("disk").objects << ", expected " << model_.objects_in(on_disk);
  }

  void load() {
    member& one = any_member();
    const auto& chain = chains_[one.space][random_() % prompts];
    auto range = any_range(chain);
    auto wanted = any_pools(one);
    uint32_t expected = 0;
    auto present = [&](uint32_t chunk) {
      return std::ranges::all_of(wanted, [&](uint8_t pool) {
        return model_.tiers_of(one.space, chain[chunk], pool, stored_as(one, pool)) != 0;
      });
    };
    while (expected < range.count && present(range.first + expected))
      ++expected;
    EXPECT_EQ(one.by->load_and_check(chain, range, wanted), expected);
    for (uint32_t c = range.first; c < range.first + expected; ++c)
      for (uint8_t pool : wanted)
        model_.add(one.space, chain[c], pool, stored_as(one, pool), on_host);
  }

  /// Makes all objects of host memory leave for those of another space, which then end as well.
  void evict() {
    fill_host();
    ASSERT_TRUE((*filler_)->admin().clear(&(*filler_).space(), patiently()));
    model_.copy(on_host, on_disk);
    model_.leave(on_host);
    await_writes();
  }

  /// Fills host memory with leases on objects smaller than all others, so that nothing else remains.
  void fill_host() {
    std::vector<client::lease> held;
    uint64_t seed = 1'000'000 * ++evicted_;
    for (uint32_t chunks : {64U, 8U, 1U})
      for (;;) {
        auto chain = chain_of(++seed, chunks);
        auto stored = filler_.store(chain, {0, chunks}, {0});
        if (!stored) {
          EXPECT_EQ(stored.error().code, errc::no_space) << stored.error().text;
          break;
        }
        auto found = (*filler_).lookup(chain, true, on_host);
        if (!found.held)
          break; // leases leave some memory for loads, which has what was stored last
        held.push_back(std::move(found.held));
      }
  }

  void clear() {
    member& one = any_member();
    auto cleared = (*one.by)->admin().clear(&(**one.by).space(), patiently());
    ASSERT_TRUE(cleared) << cleared.error().text;
    model_.clear(one.space);
  }

  void check_all() {
    for (member& one : members_)
      for (size_t prompt = 0; prompt < prompts; ++prompt)
        for (uint32_t tiers : {0U, on_host, on_disk})
          check(one, prompt, tiers, random_() % 2 == 0, random_() % 4 == 0);
    EXPECT_EQ(leased_objects(observer_, 0), 0U);
  }

  void check(member& by, size_t prompt, uint32_t tiers, bool tokens, bool lease) {
    const auto& chain = chains_[by.space][prompt];
    auto request = (**by.by).lookup_of(chain, lease, tiers);
    if (tokens)
      request.what = client::prefix::of_tokens(prompts_[prompt]);
    // Digests only name whole chunks.
    uint64_t end = tokens ? prompts_[prompt].size() : chain.size() * space_chunk_tokens;
    uint32_t mask = tiers == 0 ? on_host | on_disk : tiers;
    auto expected = model_.lookup(by.space, chain, end, mask);
    auto found = (*by.by)->lookup(request, patiently());
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->requested_chunks, chain.size());
    EXPECT_EQ(found->found_chunks, expected.found);
    EXPECT_EQ(found->found_tokens, uint64_t{expected.found} * space_chunk_tokens);
    EXPECT_EQ(found->usable_tokens, expected.usable_tokens);
    EXPECT_EQ(found->tiers, expected.tiers);
    EXPECT_EQ(static_cast<bool>(found->held), lease && expected.found > 0);
    EXPECT_EQ(found->missing.has_value(), expected.found < chain.size());
    if (found->missing) {
      const auto& absent = *found->missing;
      ASSERT_LT(absent.chunk, chain.size());
      EXPECT_EQ(
          model_.tiers_of(by.space, chain[absent.chunk], static_cast<uint8_t>(absent.pool), absent.rank) &
              mask,
          0U)
          << "it is there";
    }
  }

  static constexpr uint64_t host_bytes = 24 * mebibyte;
  std::mt19937 random_{GetParam().seed};
  std::vector<std::vector<uint32_t>> prompts_ = random_prompts(random_);
  daemon_under_test daemon_{
      daemon_options{.host_bytes = host_bytes,
                     .host = "policy = \"lru\"\n",
                     .disk_bytes = 512 * mebibyte,
                     .disk = GetParam().write_back ? "demotion = \"write_back\"\n" : ""}};
  std::array<member, 3> members_{
      {{0, shared_space(0), {}}, {0, shared_space(1), {}}, {1, plain_space(), {}}}};
  pool_client filler_{daemon_.socket(), small_space(), "filler"};
  tester observer_{daemon_.socket(), "observer"};
  std::vector<std::vector<digest>> chains_[2];
  lookup_model model_{{shared_space(0), plain_space()}};
  uint64_t evicted_ = 0;
};

TEST_P(LookupModel, EveryAnswerIsTheModels) {
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    switch (random_() % 12) {
      case 0: evict(); break;
      case 1: random_() % 3 == 0 ? clear() : evict(); break;
      case 2: connect(any_member()); break;
      case 3:
      case 4:
      case 5: load(); break;
      default: store();
    }
    check_all();
  }
}

std::string name_of_run(const ::testing::TestParamInfo<model_run>& one) {
  return std::to_string(one.param.seed) + (one.param.write_back ? "WriteBack" : "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, LookupModel,
                         ::testing::Values(model_run{1}, model_run{2}, model_run{3}, model_run{4},
                                           model_run{12}, model_run{40}, model_run{97}, model_run{1, true},
                                           model_run{3, true}, model_run{12, true}),
                         name_of_run);

} // namespace
} // namespace terrace::e2e
