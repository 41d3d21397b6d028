#include "index/prefix_hasher.hpp"
#include "tests/index/hash_vectors.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace terrace::test {
namespace {

hash_algorithm algorithm_named(const std::string& name) {
  for (auto a : {hash_algorithm::sha256_cbor, hash_algorithm::sha256, hash_algorithm::xxh3_128})
    if (to_string(a) == name)
      return a;
  throw std::runtime_error("unknown algorithm " + name);
}

/// Returns the digests of whole hash blocks for the settings of the line.
std::vector<std::string> hash_line(vector_line& line, const space_spec& spec, token_hasher& hasher) {
  auto& f = line.fields;
  extra_keys extra{text_from_hex(f["lora"]), {}, text_from_hex(f["salt"])};
  for (auto& item : split(f["items"], ';')) {
    auto at = item.find('@'), plus = item.find('+');
    extra.items.push_back({text_from_hex(item.substr(0, at)),
                           static_cast<uint32_t>(std::stoul(item.substr(at + 1, plus - at - 1))),
                           static_cast<uint32_t>(std::stoul(item.substr(plus + 1)))});
  }
  EXPECT_TRUE(extra.validate());
  auto rule = split(f["tokens"], ':');
  std::vector<uint32_t> tokens(std::stoul(rule[0]));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] =
        static_cast<uint32_t>((std::stoull(rule[1]) + i * std::stoull(rule[2])) % std::stoull(rule[3]));
  prefix_hasher::position begin{std::nullopt, std::stoull(f["first"])};
  if (!f["parent"].empty())
    begin.parent = digest_from_hex(f["parent"]);
  chunk_shape shape{spec.hash_block_tokens, spec.hash_block_tokens};
  std::vector<std::string> digests;
  for (auto& d : hash_chunks(hasher, shape, begin, tokens, extra)) {
    digests.push_back(to_hex(d, hasher.width()));
    EXPECT_EQ(d, digest_from_hex(digests.back())) << "the rest of a digest is zeros";
  }
  return digests;
}

TEST(HashVectors, AgreeWithAnotherImplementation) {
  auto lines = vector_lines("chain");
  ASSERT_GE(lines.size(), 50u);
  for (auto& line : lines) {
    SCOPED_TRACE(line.text);
    space_spec spec{.algorithm = algorithm_named(line.words.at(1)),
                    .seed = text_from_hex(line.fields["seed"])};
    spec.chunk_tokens = spec.hash_block_tokens = static_cast<uint32_t>(std::stoul(line.fields["block"]));
    auto hasher = make_token_hasher(spec);
    EXPECT_EQ(hash_line(line, spec, *hasher), split(line.fields["digests"], ','));
  }
}

TEST(HashVectors, OfVllmHold) {
  auto hasher = make_token_hasher({.algorithm = hash_algorithm::sha256_cbor, .seed = "0"});
  EXPECT_EQ(to_hex(hasher->root().value()),
            "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e");
  std::vector<uint32_t> tokens(32);
  std::iota(tokens.begin(), tokens.end(), 0);
  auto plain = hash_chunks(*hasher, {16, 16}, {}, tokens, {});
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(to_hex(plain[0]), "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c");
  EXPECT_EQ(to_hex(plain[1]), "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac");
  extra_keys salted{.salt = "tenant-a"};
  EXPECT_EQ(to_hex(hash_chunks(*hasher, {16, 16}, {}, tokens, salted)[0]),
            "a31aa6d7bd52d1db44c2e2c50ce6687164f2a198c45e6f9c6f5025e7d8dff1f7");
}

} // namespace
} // namespace terrace::test
