// What a server tells of its memory.
#include "remote/store_reports.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

TEST(StoreMemory, IsReadLineByLine) {
  auto found =
      parse_memory("txt:# Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\nmaxmemory:2097152\r\n"
                   "maxmemory_policy:allkeys-lru\r\n");
  EXPECT_EQ(found.used_bytes, 1'048'576U);
  EXPECT_EQ(found.max_bytes, 2'097'152U);
  EXPECT_EQ(found.policy, "allkeys-lru");
  EXPECT_EQ(memory_warning(found), "");
}

TEST(StoreMemory, OtherTextsTellNothing) {
  for (const char* text :
       {"", "\n", ":", "maxmemory", "used_memory:much\nmaxmemory:\n", "a:b\n\n\nmaxmemory"}) {
    auto found = parse_memory(text);
    EXPECT_EQ(found.used_bytes, 0U) << text;
    EXPECT_EQ(found.max_bytes, 0U) << text;
    EXPECT_EQ(found.policy, "") << text;
  }
}

TEST(StoreMemory, OfTheNodesOfAClusterIsAddedUp) {
  const store_memory one{.used_bytes = 1, .max_bytes = 10, .policy = "noeviction"};
  const store_memory other{.used_bytes = 2, .max_bytes = 20, .policy = "allkeys-lru"};
  const auto both = sum_of(one, other);
  EXPECT_EQ(both.used_bytes, 3U);
  EXPECT_EQ(both.max_bytes, 30U);
  EXPECT_EQ(both.policy, "noeviction, allkeys-lru");
  EXPECT_EQ(sum_of(both, one).policy, both.policy) << "each once";
  EXPECT_EQ(sum_of(both, {.used_bytes = 1}).max_bytes, 0U) << "one node without a bound has none";
}

TEST(StoreMemory, AWarningSaysWhatToSet) {
  EXPECT_NE(memory_warning({.used_bytes = 1, .max_bytes = 0, .policy = "noeviction"}).find("set maxmemory,"),
            std::string::npos);
  EXPECT_NE(memory_warning({.used_bytes = 1, .max_bytes = 9, .policy = "noeviction"}).find("allkeys-lru"),
            std::string::npos);
  EXPECT_EQ(memory_warning({.used_bytes = 1, .max_bytes = 9, .policy = "volatile-lru"}), "");
}

TEST(StoreAnswers, ThatAreLaterThanLookupsWaitAreWarnedOf) {
  using namespace std::chrono_literals;
  EXPECT_EQ(budget_warning(64, 400us, 2ms), "");
  EXPECT_EQ(budget_warning(64, 2ms, 2ms), "");
  EXPECT_EQ(budget_warning(3, 5ms, 2ms), "") << "the first answers may be slow";
  EXPECT_EQ(budget_warning(64, 5200us, 2ms), "a lookup waits 2 ms for what the store has (lookup_budget), "
                                             "and its answers take 6 ms: most first lookups of a "
                                             "prompt find nothing there; set lookup_budget to at least 11ms");
  const auto long_ones = budget_warning(64, 800ms, 50ms);
  EXPECT_TRUE(long_ones.ends_with("set lookup_budget to at least 1000ms"))
      << "it may not be longer: " << long_ones;
  const auto longest = budget_warning(64, 1500ms, 1s);
  EXPECT_TRUE(longest.ends_with("use a store that is nearer")) << longest;
}

} // namespace
} // namespace terrace::remote
