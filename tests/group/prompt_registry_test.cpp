#include "group/prompt_registry.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

constexpr uint64_t logits_bytes = 1'000, entry_bytes = sizeof(prompt_entry) + logits_bytes;

class PromptRegistry : public ::testing::Test {
 protected:
  prompt_entry_ptr entry(uint8_t number, uint64_t bytes = logits_bytes, size_t space = 0) {
    auto made = std::make_shared<prompt_entry>();
    made->end.space = in_[space];
    made->end.tail_tokens = 3;
    made->end.key.bytes[0] = number;
    made->logits = std::vector<uint8_t>(bytes, number);
    return made;
  }
  result<void> add(prompt_entry_ptr what) {
    auto tail = tails_.refer(what->end.space, what->end.key, tail_referrer::prompt);
    return book_.add(std::move(what), std::move(tail));
  }
  bool has(uint8_t number, size_t space = 0) {
    return book_.find(in_[space]->id, entry(number)->end.key) != nullptr;
  }
  static space_spec named(const char* model) {
    auto spec = small_space();
    spec.model = model;
    return spec;
  }

  space_registry spaces_{{.spaces_max = 2}};
  space_ptr in_[2] = {spaces_.open(named("a")).value(), spaces_.open(named("b")).value()};
  tail_registry tails_;
  prompt_registry book_{{.prompts_max = 3, .bytes_max = 4 * entry_bytes}};
};

TEST_F(PromptRegistry, KeepsTheMostRecentlyUsedOnes) {
  for (uint8_t number : {1, 2, 3})
    ASSERT_TRUE(add(entry(number)));
  EXPECT_TRUE(has(1));
  ASSERT_TRUE(add(entry(4)));
  EXPECT_FALSE(has(2)) << "the least recently used one";
  EXPECT_TRUE(has(1) && has(3) && has(4));
  EXPECT_EQ(book_.evicted(), 1U);
  EXPECT_EQ(book_.size(), 3U);
  EXPECT_EQ(book_.bytes(), 3 * entry_bytes);
  EXPECT_EQ(tails_.references(tail_referrer::prompt), 3U);
  EXPECT_EQ(tails_.next_unreferred().key.bytes[0], 2);
  EXPECT_EQ(book_.list().front()->end.key.bytes[0], 1);
}

TEST_F(PromptRegistry, HasABoundOfBytes) {
  for (uint8_t number : {1, 2})
    ASSERT_TRUE(add(entry(number)));
  ASSERT_TRUE(add(entry(3, 3 * entry_bytes - sizeof(prompt_entry))));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2) && has(3));
  auto large = add(entry(4, 4 * entry_bytes));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, errc::no_space);
  EXPECT_NE(large.error().text.find("connection.group_bytes"), std::string::npos) << large.error().text;
  EXPECT_TRUE(has(2) && has(3)) << "nothing gives way to it";
  prompt_registry none{{.prompts_max = 0}};
  EXPECT_EQ(none.add(entry(1), {}).error().code, errc::no_space);
}

TEST_F(PromptRegistry, AnEntryReplacesThatOfTheSamePrompt) {
  ASSERT_TRUE(add(entry(1)));
  ASSERT_TRUE(add(entry(1, 10)));
  EXPECT_EQ(book_.size(), 1U);
  EXPECT_EQ(book_.find(in_[0]->id, entry(1)->end.key)->logits.size(), 10U);
  EXPECT_EQ(tails_.references(tail_referrer::prompt), 1U);
  EXPECT_EQ(book_.evicted(), 0U);
}

TEST_F(PromptRegistry, ForgetsThoseOfASpace) {
  ASSERT_TRUE(add(entry(1)));
  ASSERT_TRUE(add(entry(1, logits_bytes, 1)));
  EXPECT_EQ(book_.forget(in_[0]->id), 1U);
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(1, 1));
  EXPECT_EQ(book_.forget(space_id{}), 1U);
  EXPECT_EQ(book_.bytes(), 0U);
  EXPECT_EQ(tails_.size(), 0U);
}

} // namespace
} // namespace terrace::test
