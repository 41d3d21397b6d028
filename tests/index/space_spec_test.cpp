#include "index/space_spec.hpp"
#include "tests/index/hash_vectors.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace terrace::test {
namespace {

space_spec changed(const std::function<void(space_spec&)>& change) {
  auto spec = small_space();
  change(spec);
  return spec;
}

TEST(SpaceSpec, AcceptsAPlainOne) { EXPECT_TRUE(small_space().validate(true)); }

TEST(SpaceSpec, RefusesWrongFieldsByName) {
  const std::pair<const char*, std::function<void(space_spec&)>> wrong[] = {
      {"model", [](auto& s) { s.model.clear(); }},
      {"revision", [](auto& s) { s.revision = std::string(5'000, 'x'); }},
      {"dtype", [](auto& s) { s.dtype.clear(); }},
      {"layout", [](auto& s) { s.layout.clear(); }},
      {"seed", [](auto& s) { s.seed = std::string(5'000, 'x'); }},
      {"salt", [](auto& s) { s.salt = std::string(5'000, 'x'); }},
      {"chunk_tokens", [](auto& s) { s.chunk_tokens = 0; }},
      {"chunk_tokens", [](auto& s) { s.chunk_tokens = 1 << 20; }},
      {"hash_block_tokens", [](auto& s) { s.hash_block_tokens = 0; }},
      {"hash_block_tokens", [](auto& s) { s.hash_block_tokens = 24; }},
      {"world_size", [](auto& s) { s.world_size = 0; }},
      {"world_size", [](auto& s) { s.world_size = 1'025; }},
      {"algorithm", [](auto& s) { s.algorithm = static_cast<hash_algorithm>(3); }},
      {"pools", [](auto& s) { s.pools.clear(); }},
      {"pools", [](auto& s) { s.pools.resize(129); }},
      {"name", [](auto& s) { s.pools[0].name.clear(); }},
      {"second pool", [](auto& s) { s.pools.push_back(s.pools[0]); }},
      {"object_bytes of pool 'kv'", [](auto& s) { s.pools[0].object_bytes = 0; }},
      {"object_bytes of pool 'kv'", [](auto& s) { s.pools[0].object_bytes = (1ULL << 30) + 1; }},
      {"hit_rule of pool 'kv'", [](auto& s) { s.pools[0].rule = static_cast<hit_rule>(2); }},
      {"shape of pool 'kv'", [](auto& s) { s.pools[0].tensors = {{.dtype = "nibble", .hidden = 1}}; }},
      {"object_bytes of pool 'kv'", [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .hidden = 1}}; }},
      {"trailing of pool 'kv'",
       [](auto& s) {
         s.pools[0] = {"kv", 1, hit_rule::trailing_chunks, 0};
       }},
  };
  for (auto& [field, change] : wrong) {
    auto valid = changed(change).validate(false);
    ASSERT_FALSE(valid) << field;
    EXPECT_EQ(valid.error().code, errc::bad_request);
    EXPECT_NE(valid.error().text.find(field), std::string::npos) << valid.error().text;
    EXPECT_NE(valid.error().text.find("expected"), std::string::npos) << valid.error().text;
  }
}

TEST(SpaceSpec, RefusesXxh3WhereTenantsAreIsolated) {
  auto spec = changed([](auto& s) { s.algorithm = hash_algorithm::xxh3_128; });
  EXPECT_TRUE(spec.validate(false));
  ASSERT_FALSE(spec.validate(true));
  EXPECT_EQ(spec.validate(true).error().code, errc::denied);
}

TEST(Fingerprint, DiffersWithEveryField) {
  auto two_pools = [](space_spec& s) { s.pools.push_back({"mamba", 64, hit_rule::trailing_chunks, 1}); };
  const std::function<void(space_spec&)> changes[] = {
      [](auto&) {},
      [](auto& s) { s.model += "n"; },
      [](auto& s) { s.revision += "m"; },
      [](auto& s) { s.dtype += "float16"; },
      [](auto& s) { s.layout += "KV_T2D"; },
      [](auto& s) { s.chunk_tokens = 128; },
      [](auto& s) { s.hash_block_tokens = 32; },
      [](auto& s) { s.world_size = 2; },
      [](auto& s) { s.salt += "x"; },
      [](auto& s) { s.seed += "x"; },
      [](auto& s) { s.algorithm = hash_algorithm::sha256; },
      [](auto& s) { s.pools[0].name += "w"; },
      [](auto& s) { s.pools[0].object_bytes += 1; },
      [](auto& s) { s.pools[0].replicated = true; },
      two_pools,
      [&](auto& s) { two_pools(s), s.pools[1].trailing = 2; },
      [&](auto& s) { two_pools(s), s.pools[1].rule = hit_rule::all_chunks; },
      [&](auto& s) { two_pools(s), std::swap(s.pools[0], s.pools[1]); },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .hidden = 1}}; },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .hidden = 2}}; },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "uint8", .hidden = 1}}; },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .hidden = 1, .first_layer = 1}}; },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .kv_size = 1, .hidden = 1}}; },
      [](auto& s) { s.pools[0].tensors = {{.format = tensor_format::kv_t2d, .dtype = "int8", .hidden = 1}}; },
      [](auto& s) { s.pools[0].tensors = {{.dtype = "int8", .layers = 2, .hidden = 1}}; },
      [](auto& s) { s.pools[0].tensors.resize(2); },
      [&](auto& s) { two_pools(s), s.pools[0].tensors.resize(1); },
      [&](auto& s) { two_pools(s), s.pools[1].tensors.resize(1); },
      [](auto& s) { std::swap(s.model, s.revision); }, // each text follows its length
  };
  std::set<digest> all;
  for (auto& change : changes)
    EXPECT_TRUE(all.insert(changed(change).fingerprint()).second);
}

TEST(Fingerprint, DifferencesAreSaidInWordsWithoutSecrets) {
  space_spec here{
      .model = "m", .dtype = "bf16", .layout = "NHD", .pools = {{.name = "kv", .object_bytes = 4096}}};
  EXPECT_EQ(differences(here, here), "");
  auto there = here;
  there.dtype = "fp8";
  there.revision = "r2\n";
  there.world_size = 2;
  there.pools[0].object_bytes = 8192;
  there.salt = "tenant";
  there.seed = "0";
  EXPECT_EQ(differences(here, there),
            "revision is r2\\x0a there and empty here; dtype is fp8 there and bf16 here; world_size is 2 "
            "there and 1 here; the pools differ; the salt differs; the seed differs");
}

TEST(Fingerprint, HasItsGoldenValue) { // a change here voids every file on disk: it takes a new version
  space_spec spec{
      .model = "m/Llama",
      .revision = "r1",
      .dtype = "bfloat16",
      .layout = "KV_2LTD",
      .chunk_tokens = 256,
      .hash_block_tokens = 16,
      .world_size = 4,
      .pools = {{.name = "kv", .object_bytes = 1 << 20}, {"mamba", 4096, hit_rule::trailing_chunks, 2, true}},
      .salt = "tenant",
      .algorithm = hash_algorithm::sha256,
      .seed = "0"};
  ASSERT_EQ(vector_lines("fingerprint").size(), 1u);
  EXPECT_EQ(to_hex(spec.fingerprint()), vector_lines("fingerprint")[0].words.at(1));
}

} // namespace
} // namespace terrace::test
