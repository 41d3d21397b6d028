// The names of objects: what daemons of one realm agree on, and what nobody else can derive.
#include "remote/realm.hpp"

#include "index/sha256.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

realm realm_with(std::string_view key, std::string_view prefix = "") {
  return realm::make(prefix, bytes_of(key)).value();
}

const std::string key_a(32, 'a'), key_b(32, 'b');

space_fingerprint fingerprint(uint8_t seed) {
  space_fingerprint all;
  all.fill(seed);
  return all;
}

remote_identity sample() {
  remote_identity object{
      .space = realm_with(key_a).space_of(fingerprint(1)), .epoch = 0x1234, .pool = 2, .rank = 7};
  object.chunk.bytes.fill(0xab);
  return object;
}

// RFC 4231, test cases 1, 2 and 6.
TEST(Hmac, GivesThePublishedValues) {
  EXPECT_EQ(to_hex(hmac_sha256(bytes_of(std::string(20, '\x0b')), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(bytes_of(std::string(131, '\xaa')),
                               bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Other daemons read these keys: if this test fails, change `t1`, not the test.
TEST(Realm, HasItsGoldenKeys) {
  auto with = realm_with(key_a, "kv/");
  std::string digits;
  for (int i = 0; i < 32; ++i)
    digits += "ab";
  EXPECT_EQ(with.key_of(sample()),
            "kv/t1/39a587b92f206886c4b9b82e70216f49/0000000000001234/2.7/{" + digits + "}");
  EXPECT_EQ(with.key_of(sample(), 3), with.key_of(sample()) + "/p3");
  EXPECT_EQ(with.epoch_key_of(sample().space), "kv/t1/epoch/39a587b92f206886c4b9b82e70216f49");
}

TEST(Realm, HasATokenOfItsOwn) {
  auto one = realm_with(key_a, "kv/"), other = realm_with(key_b, "kv/");
  EXPECT_EQ(one.epoch_key_of_all(), realm_with(key_a, "kv/").epoch_key_of_all());
  EXPECT_NE(one.epoch_key_of_all(), other.epoch_key_of_all());
  EXPECT_NE(one.epoch_key_of_all(), one.epoch_key_of(sample().space));
  EXPECT_TRUE(one.epoch_key_of_all().starts_with("kv/t1/epoch/"));
  EXPECT_EQ(one.with_key(bytes_of(key_b)).key_of(sample()), other.key_of(sample()));
  EXPECT_EQ(one.with_key(bytes_of(key_b)).epoch_key_of_all(), other.epoch_key_of_all());
}

TEST(Realm, ShortDigestsMakeShortKeys) {
  auto object = sample();
  object.digest_width = 8;
  EXPECT_TRUE(realm_with(key_a).key_of(object).ends_with("/{abababababababab}"));
}

TEST(Realm, SpacesAreApartByKeyAndByFingerprint) {
  auto a = realm_with(key_a), b = realm_with(key_b);
  EXPECT_EQ(a.space_of(fingerprint(1)), realm_with(key_a, "other").space_of(fingerprint(1)));
  EXPECT_NE(a.space_of(fingerprint(1)), a.space_of(fingerprint(2)));
  EXPECT_NE(a.space_of(fingerprint(1)), b.space_of(fingerprint(1)));
}

TEST(Realm, EveryFieldOfAnObjectIsInItsKey) {
  auto with = realm_with(key_a);
  void (*changes[])(remote_identity&) = {
      [](remote_identity& id) { id.space[15] ^= 1; },
      [](remote_identity& id) { ++id.epoch; },
      [](remote_identity& id) { ++id.pool; },
      [](remote_identity& id) { ++id.rank; },
      [](remote_identity& id) { id.chunk.bytes[31] ^= 1; },
      [](remote_identity& id) { id.digest_width = 31; },
  };
  for (auto change : changes) {
    auto other = sample();
    change(other);
    EXPECT_NE(with.key_of(other), with.key_of(sample()));
  }
}

TEST(Realm, AKeyOfAnotherLengthIsRefused) {
  for (size_t bytes : {0u, 31u, 1025u}) {
    auto made = realm::make("", bytes_of(std::string(bytes, 'k')));
    ASSERT_FALSE(made) << bytes;
    EXPECT_EQ(made.error().code, errc::bad_request);
    EXPECT_NE(made.error().text.find("not of " + std::to_string(bytes)), std::string::npos)
        << made.error().text;
  }
}

TEST(Realm, APrefixIsPlainAndShort) {
  EXPECT_TRUE(realm::make("Team-1/kv_cache.prod/", bytes_of(key_a)));
  EXPECT_TRUE(realm::make(std::string(64, 'p'), bytes_of(key_a)));
  // A '{' would send all keys to one node of a cluster.
  for (const std::string& prefix : {std::string("a b"), std::string("{kv}"), std::string("k*"),
                                    std::string("k\n"), std::string(65, 'p')}) {
    auto made = realm::make(prefix, bytes_of(key_a));
    ASSERT_FALSE(made) << prefix;
    EXPECT_EQ(made.error().code, errc::bad_request);
    EXPECT_EQ(made.error().text.find(key_a), std::string::npos) << "the key is a secret";
  }
}

TEST(Epoch, ComesBackFromItsText) {
  for (uint64_t epoch : {uint64_t{1}, uint64_t{0xfedcba9876543210}, UINT64_MAX})
    EXPECT_EQ(parse_epoch(epoch_text(epoch)), epoch);
}

TEST(Epoch, AnythingElseIsALostToken) {
  for (const char* text : {"", "1", "0000000000000000", "000000000000000g", "00000000000000A1",
                           "00000000000000001", "-000000000000001", " 000000000000001"}) {
    auto parsed = parse_epoch(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, errc::internal);
  }
}

} // namespace
} // namespace terrace::remote
