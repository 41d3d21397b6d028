#include "index/extra_keys.hpp"
#include "tests/index/hash_vectors.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

using tag_list = std::vector<std::string>;

digest tagged(const tag_list& tags, digest d = {}) {
  apply_tags(tags, digest::max_size, {&d, 1});
  return d;
}

TEST(Tags, AgreeWithAnotherImplementation) {
  auto lines = vector_lines("tags");
  ASSERT_EQ(lines.size(), 4u);
  for (auto& line : lines) {
    tag_list tags;
    for (auto& hex : split(line.fields["tags"], ','))
      tags.push_back(text_from_hex(hex));
    digest d = digest_from_hex(line.fields["digest"]);
    apply_tags(tags, std::stoul(line.fields["width"]), {&d, 1});
    EXPECT_EQ(d, digest_from_hex(line.fields["tagged"])) << line.text;
  }
}

TEST(Tags, AreASet) {
  EXPECT_EQ(tagged({"a", "b"}), tagged({"b", "a", "b"}));
  EXPECT_NE(tagged({"a", "b"}), tagged({"ab"}));
  EXPECT_NE(tagged({"a"}), tagged({"a", "b"}));
}

TEST(Tags, ChangeNothingWhenThereAreNone) { EXPECT_EQ(tagged({}), digest{}); }

TEST(Tags, AreRefusedWhenTooManyEmptyOrTooLong) {
  for (auto& tags :
       {tag_list(tags_max + 1, "t"), tag_list{""}, tag_list{std::string(tag_bytes_max + 1, 't')}}) {
    auto valid = validate_tags(tags);
    ASSERT_FALSE(valid);
    EXPECT_EQ(valid.error().code, errc::bad_request);
  }
  EXPECT_TRUE(validate_tags(tag_list(tags_max, "t")));
}

} // namespace
} // namespace terrace::test
