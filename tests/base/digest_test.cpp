#include "base/digest.hpp"
#include "base/object_key.hpp"

#include <gtest/gtest.h>

#include <array>

namespace terrace {
namespace {

TEST(Digest, ShorterOnesArePaddedWithZerosAndLongerOnesCut) {
  std::array<uint8_t, 40> raw;
  raw.fill(0xab);
  auto eight = digest::from({raw.data(), 8});
  EXPECT_EQ(to_hex(eight), "abababababababab" + std::string(48, '0'));
  EXPECT_EQ(to_hex(eight, 8), "abababababababab");
  EXPECT_EQ(to_hex(digest::from(raw)).size(), 64u);
}

TEST(EntryKey, DiffersWithEachPartOfTheObjectKey) {
  object_key key{.space = space_id{1}, .pool = 2, .rank = 3, .chunk = {}};
  auto base = to_entry_key(key);
  for (auto change : {+[](object_key& k) { k.space = space_id{2}; }, +[](object_key& k) { k.pool = 3; },
                      +[](object_key& k) { k.rank = 2; }, +[](object_key& k) { k.chunk.bytes[0] = 1; },
                      +[](object_key& k) { k.chunk.bytes[31] = 1; }}) {
    auto other = key;
    change(other);
    EXPECT_NE(to_entry_key(other), base);
  }
  EXPECT_EQ(to_entry_key(key), base);
}

TEST(EntryKey, ASaltChangesEveryName) {
  object_key one{.space = space_id{1}, .chunk = {}};
  object_key other{.space = space_id{2}, .chunk = {}};
  auto unsalted = to_entry_key(one);
  salt_entry_keys({5, 6});
  EXPECT_NE(to_entry_key(one), unsalted);
  EXPECT_NE(to_entry_key(one), to_entry_key(other));
  salt_entry_keys({});
  EXPECT_EQ(to_entry_key(one), unsalted);
}

TEST(EntryKey, TwinsThatCancelOutTheKnownConstantsDifferUnderASalt) {
  auto twin = [](uint64_t second) {
    object_key key{.space = space_id{1}, .chunk = {}};
    uint64_t words[2] = {0xa0761d6478bd642fULL, second};
    std::memcpy(key.chunk.bytes.data(), words, sizeof words);
    return key;
  };
  EXPECT_EQ(to_entry_key(twin(1)), to_entry_key(twin(2)));
  salt_entry_keys({0x123456789abcdefULL, 77});
  EXPECT_NE(to_entry_key(twin(1)), to_entry_key(twin(2)));
  salt_entry_keys({});
}

} // namespace
} // namespace terrace
