// Long copies are done by several copiers.
#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

/// 4 MiB of chunks.
constexpr uint64_t many = 512;

struct CopiesInParts : group_fixture {
  CopiesInParts() { start({.host_objects = 600, .gated_copier = true, .copiers = 4}); }
  /// The copier does what it has been asked for.
  void copy(size_t copier) {
    caf::anon_send(gates[copier], open_gate{});
    settle();
  }
  void copy_all() {
    for (size_t i = 0; i < gates.size(); ++i)
      copy(i);
  }
  /// The quarters of the region that have been written to.
  std::vector<bool> delivered_quarters() const {
    std::vector<bool> quarters;
    for (uint64_t first = 0; first < many; first += many / 4) {
      bool all = true;
      for (uint64_t n = first; n < first + many / 4; ++n)
        all = all && delivered(n);
      quarters.push_back(all);
    }
    return quarters;
  }
};

using quarters = std::vector<bool>;

} // namespace

TEST_F(CopiesInParts, AreDoneByAllCopiersAtTheSameTime) {
  auto stored = begin_store(0, many);
  settle();
  for (size_t i : {3, 1, 0}) {
    copy(i);
    EXPECT_FALSE(*stored) << i;
    EXPECT_EQ(present(group->host, 0, many), 0u) << "a part is not visible";
  }
  copy(2);
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->failure.code, errc::ok) << (*stored)->failure.text;
  EXPECT_EQ((*stored)->stored_chunks, many);
  EXPECT_EQ((*stored)->bytes, many * payload);

  auto loaded = begin_load(0, many);
  settle();
  EXPECT_EQ(delivered_quarters(), (quarters{false, false, false, false}));
  copy(1);
  EXPECT_EQ(delivered_quarters(), (quarters{false, true, false, false}));
  copy(0);
  copy(3);
  EXPECT_FALSE(*loaded);
  copy(2);
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->chunks, many);
  EXPECT_EQ((*loaded)->bytes, many * payload);
  EXPECT_EQ(delivered_quarters(), (quarters{true, true, true, true}));
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(CopiesInParts, AShortOneIsDoneByOne) {
  auto stored = begin_store(0, 8);
  settle();
  copy(0);
  ASSERT_TRUE(*stored);
  auto loaded = begin_load(0, 8);
  settle();
  copy(1);
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->chunks, 8u);
}

TEST_F(CopiesInParts, ACancelledOneEndsWithItsLastPartAndHoldsNothing) {
  auto of = context();
  auto stored = begin_store(0, many, of);
  settle();
  copy(0);
  of->ended = errc::cancelled;
  copy(1);
  copy(2);
  EXPECT_FALSE(*stored) << "a copier may be writing there";
  EXPECT_EQ(host_used(), many * physical);
  copy(3);
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->failure.code, errc::cancelled);
  EXPECT_EQ(host_used(), 0u);
  EXPECT_EQ(present(group->host, 0, many), 0u);
}

TEST_F(CopiesInParts, WithoutOneOfTheCopiersTheStoreFails) {
  auto stored = begin_store(0, many);
  settle();
  copy(0);
  copy(1);
  stop(gates[2]);
  settle();
  EXPECT_FALSE(*stored);
  copy(3);
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->failure.code, errc::internal);
  EXPECT_EQ(host_used(), 0u);
}
