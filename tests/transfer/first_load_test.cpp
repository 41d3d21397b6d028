// Copies into memory of a client of which nothing exists yet.
#include "memory/client_mapping.hpp"
#include "tests/tier/objects.hpp"
#include "tests/transfer/copy_requests.hpp"
#include "transfer/copy_ops.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

using namespace terrace;
using namespace terrace::test;

namespace first_load_test {

constexpr uint64_t mebibyte = 1 << 20;

std::vector<std::byte*> asked_for; ///< large pages

large_page_answer noted(std::byte* unit) {
  asked_for.push_back(unit);
  return large_page_answer::made;
}

/// Memory of a client of which nothing exists or is mapped.
struct FirstLoads : ::testing::Test {
  static constexpr uint64_t bytes = 32 * mebibyte;

  FirstLoads() { asked_for.clear(); }
  void SetUp() override {
    if (reinterpret_cast<uintptr_t>(region->data()) % large_page_bytes != 0)
      GTEST_SKIP() << "the region does not begin at a large page";
  }

  outside_memory outside() const {
    return {.data = region->data(),
            .fd = region->fd(),
            .bytes = bytes,
            .owner = region,
            .ahead = region->ahead()};
  }
  copy_answer load(const std::vector<placed_object>& objects) {
    return move_bytes(request(copy_direction::out_of_arena, outside(), objects), mebibyte);
  }
  std::vector<uint64_t> units() const {
    std::vector<uint64_t> numbers;
    for (std::byte* unit : asked_for)
      numbers.push_back(static_cast<uint64_t>(unit - region->data()) / large_page_bytes);
    return numbers;
  }
  uint64_t exists() const {
    struct stat status {};
    EXPECT_EQ(::fstat(region->fd(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  std::shared_ptr<region_populator> populator =
      std::make_shared<region_populator>(std::function<void()>(), noted);
  std::shared_ptr<const client_region> region = [this] {
    unique_fd made(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(made.get(), bytes), 0);
    EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return client_region::open(std::move(made), bytes, {{}, nullptr, populator}).value();
  }();
  std::vector<std::byte> arena = [] {
    std::vector<std::byte> made(16 * mebibyte);
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = counted(i);
    return made;
  }();
};

TEST_F(FirstLoads, AskForTheLargePagesThatTheyWriteAsAWhole) {
  const uint64_t loaded = 6 * mebibyte + 777;
  for (uint64_t offset : {uint64_t{0}, 9 * mebibyte + 5, 24 * mebibyte - 1}) {
    EXPECT_EQ(load({{arena.data(), {{offset, loaded}}}}).bytes, loaded);
    EXPECT_EQ(std::memcmp(region->data() + offset, arena.data(), loaded), 0);
  }
  EXPECT_EQ(units(), (std::vector<uint64_t>{0, 1, 2, 5, 6, 12, 13, 14}));
}

TEST_F(FirstLoads, OfTheKernelsPagesWriteTheSameBytesAndMakeNothingElse) {
  populator = std::make_shared<region_populator>();
  region = client_region::open(unique_fd(::dup(region->fd())), bytes, {{}, nullptr, populator}).value();
  const uint64_t offset = 5 * mebibyte + 5, loaded = 9 * mebibyte + 777;
  EXPECT_EQ(load({{arena.data(), {{offset, loaded}}}}).bytes, loaded);
  EXPECT_EQ(std::memcmp(region->data() + offset, arena.data(), loaded), 0);
  const uint64_t pages = (offset + loaded + 4095) / 4096 - offset / 4096;
  EXPECT_EQ(exists(), pages * 4096);
}

TEST_F(FirstLoads, LookBeyondAPieceWhetherALargePageIsWhole) {
  const uint64_t half = mebibyte;
  // Two objects side by side; the same with a gap; the end of the request; in the other order.
  load({{arena.data(), {{0, half}}}, {arena.data(), {{half, half}}}});
  load({{arena.data(), {{4 * half, half}}}, {arena.data(), {{5 * half + 1, half}}}});
  load({{arena.data(), {{8 * half, 2 * half - 1}}}});
  load({{arena.data(), {{13 * half, half}}}, {arena.data(), {{12 * half, half}}}});
  EXPECT_EQ(units(), (std::vector<uint64_t>{0}));
  load({{arena.data(), {{8 * half, 2 * half}}}}); // what was written in part before exists in part
  EXPECT_EQ(units(), (std::vector<uint64_t>{0}));
}

TEST_F(FirstLoads, DoNotLookAtMoreThanALimitOfPieces) {
  std::vector<placed_object> objects;
  for (uint64_t i = 0; i < 512; ++i)
    objects.push_back({arena.data() + i * 4096, {{i * 4096, 4096}}});
  EXPECT_EQ(load(objects).bytes, 2 * mebibyte);
  EXPECT_TRUE(asked_for.empty());
  EXPECT_EQ(std::memcmp(region->data(), arena.data(), 2 * mebibyte), 0);
}

TEST_F(FirstLoads, AreTheFirstOnes) {
  for (int i = 0; i < 3; ++i)
    load({{arena.data(), {{0, 4 * mebibyte}}}});
  EXPECT_EQ(units(), (std::vector<uint64_t>{0, 1}));
}

/// One large page at most between two looks at who else waits, and all of them are paid.
TEST_F(FirstLoads, PayForWhatIsMappedAndMapOneLargePageASlice) {
  const uint64_t loaded = 16 * mebibyte;
  byte_copy copy(request(copy_direction::out_of_arena, outside(), {{arena.data(), {{0, loaded}}}}),
                 8 * mebibyte);
  const uint64_t at_first = copy.left();
  EXPECT_GE(at_first, loaded);
  uint64_t slices = 1, made = 0;
  for (; !copy.go_on(mebibyte); ++slices) {
    EXPECT_LE(asked_for.size() - made, 1U);
    made = asked_for.size();
  }
  EXPECT_EQ(asked_for.size(), loaded / large_page_bytes);
  EXPECT_GE(slices, 2 * loaded / mebibyte);
  EXPECT_LE(slices, 2 * loaded / mebibyte + 2);
  EXPECT_EQ(copy.left(), 0U);
  EXPECT_EQ(copy.take_answer().bytes, loaded);
}

TEST_F(FirstLoads, ThatHaveEndedMapNothing) {
  auto what = request(copy_direction::out_of_arena, outside(), {{arena.data(), {{0, 4 * mebibyte}}}});
  what.context = ended(errc::cancelled);
  EXPECT_EQ(move_bytes(what, mebibyte).failure.code, errc::cancelled);
  EXPECT_TRUE(asked_for.empty());
}

/// But no pass need map what they read.
TEST_F(FirstLoads, AreNotStores) {
  auto answer = move_bytes(
      request(copy_direction::into_arena, outside(), {{arena.data(), {{mebibyte, 4 * mebibyte}}}}), mebibyte);
  EXPECT_EQ(answer.bytes, 4 * mebibyte);
  EXPECT_TRUE(asked_for.empty());
  EXPECT_TRUE(region->ahead()->is_new(0));
  EXPECT_FALSE(region->ahead()->is_new(2 * mebibyte));
  EXPECT_TRUE(region->ahead()->is_new(4 * mebibyte));
}

TEST_F(FirstLoads, ThroughADescriptorMapNothing) {
  auto memory = outside();
  memory.data = nullptr;
  auto answer = move_bytes(
      request(copy_direction::out_of_arena, memory, {{arena.data(), {{0, 4 * mebibyte}}}}), mebibyte);
  EXPECT_EQ(answer.bytes, 4 * mebibyte);
  EXPECT_TRUE(asked_for.empty());
}

} // namespace first_load_test
