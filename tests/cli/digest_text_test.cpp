#include "cli/digest_text.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DigestText, DigestsAreReadInEitherCase) {
  auto list = parse_digests("d830de3d42c00f25,\n D830DE3D42C00F26");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->width, 8);
  EXPECT_EQ(list->count(), 2U);
  EXPECT_EQ(list->bytes[15], 0x26);
}

TEST(DigestText, DigestsAreShownAsWideAsTheyWereSent) {
  digest whole;
  whole.bytes.fill(0xab);
  whole.bytes.back() = 0; // every 256th digest ends with a zero
  EXPECT_EQ(width_of(whole), 32U);
  EXPECT_EQ(digest_text(digest::from(std::span(whole.bytes).first(16))), "abababababababababababababababab");
  EXPECT_EQ(width_of(digest::from(std::span(whole.bytes).first(20))), 20U);
  EXPECT_EQ(width_of(digest{}), 8U);
}

TEST(DigestText, OtherDigestsAreRefused) {
  EXPECT_THAT(parse_digests("").error().text, HasSubstr("expected 1 to 65536 digests, found 0"));
  EXPECT_THAT(parse_digests("abcd").error().text, HasSubstr("digests of 16 to 64 hexadecimal digits"));
  EXPECT_THAT(parse_digests("d830de3d42c00f2").error().text, HasSubstr("pairs of hexadecimal digits"));
  EXPECT_THAT(parse_digests("d830de3d42c00f2g").error().text, HasSubstr("pairs of hexadecimal digits"));
  EXPECT_THAT(parse_digests("d830de3d42c00f25 d830de3d42c00f25aa").error().text, HasSubstr("of one length"));
}

TEST(DigestText, TokensAreReadAsWordsAndAsJson) {
  EXPECT_THAT(parse_tokens("1 2,3\n4294967295").value(), ElementsAre(1, 2, 3, 4294967295U));
  EXPECT_THAT(parse_tokens("[1, 2, 3]").value(), ElementsAre(1, 2, 3));
}

TEST(DigestText, OtherTokensAreRefused) {
  for (const char* text : {"-1", "4294967296", "1.5", "one", "1x"})
    EXPECT_THAT(parse_tokens(text).error().text, HasSubstr("expected token ids")) << text;
  EXPECT_THAT(parse_tokens(" ").error().text, HasSubstr("found 0"));
}

TEST(DigestText, AnAtSignNamesAFile) {
  temporary_file file("1 2 3");
  EXPECT_EQ(text_or_file("@" + file.path()).value(), "1 2 3");
  EXPECT_EQ(text_or_file("1 2").value(), "1 2");
  EXPECT_THAT(text_or_file("@/does/not/exist").error().text,
              HasSubstr("/does/not/exist: expected a readable file"));
}

} // namespace
} // namespace terrace::cli
