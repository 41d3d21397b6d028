#include "actors/resp/value_transfer.hpp"

#include <gtest/gtest.h>

namespace terrace::resp {
namespace {

TEST(ValueSpace, IsValidAndReserved) {
  EXPECT_TRUE(value_space().validate(true));
  EXPECT_TRUE(is_value_space(value_space()));
  space_spec other = value_space();
  other.layout = "paged";
  EXPECT_FALSE(is_value_space(other));
}

TEST(ValueSpace, ItsFingerprintIsOnDisksAndStays) {
  EXPECT_EQ(to_hex(value_space().fingerprint()),
            "616652aff31b5460d0f0cebb2eebbe11e5d9e4ec72ea6a2dfa436f5f21f6518d");
}

TEST(ValueSpace, AKeyOfAnyLengthIsNamedByItsHash) {
  sha256 with;
  EXPECT_EQ(to_hex(name_of(with, "abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(name_of(with, std::string(10'000, 'a')), name_of(with, std::string(10'001, 'a')));
}

} // namespace
} // namespace terrace::resp
