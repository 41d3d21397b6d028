// Kinds of extra keys are not mistaken for each other, even where the digest of a prompt's first block names an object.
#include "index/prefix_hasher.hpp"
#include "index/prefix_resolver.hpp"
#include "tests/index/hash_vectors.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace terrace::test {
namespace {

constexpr hash_algorithm all_algorithms[] = {hash_algorithm::sha256_cbor, hash_algorithm::sha256,
                                             hash_algorithm::xxh3_128};

const std::pair<const char*, extra_keys> all_kinds[] = {
    {"none", {}},
    {"lora", {.lora = "support"}},
    {"salt", {.salt = "support"}},
    {"lora and salt", {.lora = "support", .salt = "support"}},
    {"lora and another salt", {.lora = "support", .salt = "x"}},
    {"another lora and salt", {.lora = "x", .salt = "support"}},
    {"item", {.items = {{"support", 0, 16}}}},
    {"later item", {.items = {{"support", 8, 8}}}},
    {"two items", {.items = {{"support", 0, 4}, {"support", 4, 4}}}},
    {"lora and item", {.lora = "support", .items = {{"support", 0, 16}}}},
    {"item and salt", {.items = {{"support", 0, 16}}, .salt = "support"}},
};

class FirstBlock : public ::testing::TestWithParam<hash_algorithm> {
 protected:
  void use(uint32_t chunk_tokens, uint32_t hash_block_tokens) {
    spec_ = small_space();
    spec_.algorithm = GetParam();
    spec_.chunk_tokens = chunk_tokens;
    spec_.hash_block_tokens = hash_block_tokens;
    hasher_ = make_token_hasher(spec_);
  }
  chunk_prefix resolved(prefix_input input) {
    auto resolver = prefix_resolver::make(spec_, *hasher_, std::move(input)).value();
    while (!resolver.step(1'000).value()) {
    }
    return resolver.take();
  }
  /// Expects that no two kinds have a key in common, at any place.
  void expect_apart(size_t tokens, bool tail) {
    std::map<digest, const char*> seen;
    for (const auto& [kind, extra] : all_kinds)
      for (const digest& key :
           resolved({.tokens = std::span(tokens_).first(tokens), .extra = extra, .tail = tail}).chunks) {
        auto [other, fresh] = seen.emplace(key, kind);
        EXPECT_TRUE(fresh) << "'" << kind << "' has a key of '" << other->second << "'";
      }
  }

  space_spec spec_;
  std::unique_ptr<token_hasher> hasher_;
  std::vector<uint32_t> tokens_ = [] {
    std::vector<uint32_t> made(64);
    std::iota(made.begin(), made.end(), 5U);
    return made;
  }();
};

INSTANTIATE_TEST_SUITE_P(Algorithms, FirstBlock, ::testing::ValuesIn(all_algorithms),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(FirstBlock, TellsKindsOfExtraKeysApartIfAChunkIsOneBlock) {
  use(16, 16);
  expect_apart(16, false);
}

TEST_P(FirstBlock, TellsThemApartInATail) {
  use(64, 16);
  expect_apart(10, true);
}

TEST_P(FirstBlock, AChunkOfSeveralBlocksTellsThemApart) {
  use(32, 16);
  expect_apart(32, false);
}

/// Clients that send tokens and clients that send digests share the first chunk if the latter say what the
/// digests do not.
class FirstBlockOfVllm : public FirstBlock {};

INSTANTIATE_TEST_SUITE_P(Algorithms, FirstBlockOfVllm, ::testing::Values(hash_algorithm::sha256_cbor));

TEST_P(FirstBlockOfVllm, IsNamedByDigestsAsByTokens) {
  use(16, 16);
  for (const auto& [kind, extra] : all_kinds) {
    auto chain = hash_chunks(*hasher_, {16, 16}, {}, tokens_, extra);
    std::vector<uint8_t> flat;
    for (const digest& one : chain)
      flat.insert(flat.end(), one.bytes.begin(), one.bytes.end());
    auto keys = resolved({.tokens = tokens_, .extra = extra}).chunks;
    EXPECT_EQ(std::vector(keys.begin() + 1, keys.end()), std::vector(chain.begin() + 1, chain.end())) << kind;
    bool named = !extra.lora.empty() || !extra.salt.empty();
    EXPECT_EQ(keys[0] == chain[0], !named) << kind;
    extra_keys told{.lora = extra.lora, .salt = extra.salt};
    EXPECT_EQ(resolved({.digests = flat, .extra = told}).chunks, keys) << kind;
    auto later = std::span(flat).subspan(digest::max_size);
    EXPECT_EQ(resolved({.parent_tokens = 16, .digests = later, .extra = told}).chunks,
              std::vector(keys.begin() + 1, keys.end()))
        << kind;
    // A parent is a digest of the chain, not the key of the chunk to which it belongs.
    auto rest = resolved({.tokens = std::span(tokens_).subspan(16),
                          .parent = chain[0].bytes,
                          .parent_tokens = 16,
                          .extra = extra});
    EXPECT_EQ(rest.chunks, std::vector(keys.begin() + 1, keys.end())) << kind;
    EXPECT_EQ(rest.parent, keys[0]) << kind;
  }
}

TEST_P(FirstBlock, DigestsThatTellKindsApartComeWithoutThem) {
  auto refused = [&](uint32_t chunk_tokens, uint32_t hash_block_tokens, extra_keys extra) {
    use(chunk_tokens, hash_block_tokens);
    std::vector<uint8_t> flat(32, 9);
    auto made = prefix_resolver::make(spec_, *hasher_, {.digests = flat, .extra = std::move(extra)});
    return !made && made.error().code == errc::bad_request;
  };
  bool vllm = GetParam() == hash_algorithm::sha256_cbor;
  EXPECT_EQ(refused(16, 16, {.lora = "l"}), !vllm);
  EXPECT_EQ(refused(16, 16, {.salt = "s"}), !vllm);
  EXPECT_TRUE(refused(16, 16, {.items = {{"i", 0, 4}}}));
  EXPECT_TRUE(refused(32, 16, {.lora = "l"}));
  EXPECT_TRUE(refused(16, 16, {.lora = std::string(extra_keys::text_bytes_max + 1, 'l')}));
}

TEST(FirstBlockKey, AgreesWithAnotherImplementation) {
  auto lines = vector_lines("first_block");
  ASSERT_EQ(lines.size(), 4U);
  for (auto& line : lines) {
    auto& f = line.fields;
    extra_keys extra{.lora = text_from_hex(f["lora"]), .salt = text_from_hex(f["salt"])};
    EXPECT_EQ(
        first_block_key(digest_from_hex(f["digest"]), extra, extra_key_form::vllm, std::stoul(f["width"])),
        digest_from_hex(f["key"]));
    EXPECT_EQ(first_block_key(digest_from_hex(f["digest"]), extra, extra_key_form::by_kind, 32),
              digest_from_hex(f["digest"]));
  }
}

} // namespace
} // namespace terrace::test
