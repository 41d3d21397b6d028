
#include "memory/arena.hpp"
#include "memory/segmented_arena.hpp"

#include <gtest/gtest.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace terrace {
namespace {

constexpr uint64_t mib = 1 << 20;

TEST(NumaNodes, ListsAreReadAsTheKernelWritesThem) {
  EXPECT_EQ(parse_node_list("0"), (std::vector<uint32_t>{0}));
  EXPECT_EQ(parse_node_list("0-3,8"), (std::vector<uint32_t>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_node_list("0,2-2\n"), (std::vector<uint32_t>{0, 2}));
  EXPECT_TRUE(parse_node_list("").empty());
  EXPECT_TRUE(parse_node_list("none").empty());
  EXPECT_EQ(parse_node_list("1020-4000000000").size(), 4u) << "no kernel has more than 1024 nodes";
}

TEST(NumaNodes, EveryMachineHasOne) { EXPECT_FALSE(numa_nodes().empty()); }

/// Returns an arena on this machine's first node, or why that is not possible here.
result<arena> bound() { return arena::create({.bytes = mib, .numa_node = numa_nodes().front()}); }

TEST(NumaArena, TakesItsPagesFromTheNodeItIsBoundTo) {
  auto made = bound();
  if (!made && (made.error().code == errc::unsupported || made.error().code == errc::denied))
    GTEST_SKIP() << made.error().text;
  ASSERT_TRUE(made) << made.error().text;
  ASSERT_TRUE(made->prefault(mib).value());
  uint32_t node = numa_nodes().front();
  int policy = -1;
  unsigned long mask[16] = {};
  ASSERT_EQ(::syscall(SYS_get_mempolicy, &policy, mask, 1024, made->data(), MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, MPOL_BIND);
  EXPECT_EQ(mask[node / 64], 1UL << (node % 64));
  int where = -1;
  ASSERT_EQ(::syscall(SYS_get_mempolicy, &where, nullptr, 0, made->data() + 4096, MPOL_F_NODE | MPOL_F_ADDR),
            0);
  EXPECT_EQ(where, static_cast<int>(node));
}

TEST(NumaArena, IsRefusedForANodeThatDoesNotExist) {
  auto nodes = numa_nodes();
  uint32_t absent = *std::max_element(nodes.begin(), nodes.end()) + 1;
  for (uint32_t node : {absent, 1023u, 4'000'000'000u}) {
    auto made = arena::create({.bytes = mib, .numa_node = node});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, errc::bad_request);
    EXPECT_NE(made.error().text.find("numa_node is " + std::to_string(node)), std::string::npos);
    EXPECT_NE(made.error().text.find(std::to_string(nodes.front())), std::string::npos) << made.error().text;
  }
}

TEST(NumaArena, EverySegmentIsBound) {
  auto nodes = numa_nodes();
  uint32_t absent = *std::max_element(nodes.begin(), nodes.end()) + 1;
  auto made = segmented_arena::create({.bytes = 2 * mib, .segment_bytes = mib, .numa_node = absent});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::bad_request);
}

} // namespace
} // namespace terrace
