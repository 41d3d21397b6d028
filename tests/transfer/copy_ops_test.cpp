#include "transfer/copy_ops.hpp"

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "memory/client_mapping.hpp"
#include "storage/index_record.hpp"
#include "storage/object_header.hpp"
#include "storage/payload_checksum.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

using namespace terrace;
using namespace terrace::test;

namespace {

/// A region of a client, with its bytes counted up.
struct region {
  explicit region(size_t bytes) : fd(::memfd_create("region", MFD_CLOEXEC)), size(bytes) {
    std::string content;
    for (size_t i = 0; i < bytes; ++i)
      content.push_back(static_cast<char>(i % 251));
    EXPECT_EQ(::pwrite(fd.get(), content.data(), bytes, 0), static_cast<ssize_t>(bytes));
    memory = std::move(*mapping::map(fd.get(), bytes, true));
  }
  outside_memory mapped() { return {memory.data(), fd.get(), size, nullptr}; }
  outside_memory unmapped() { return {nullptr, fd.get(), size, nullptr}; }
  uint64_t file_bytes() {
    struct stat status {};
    ::fstat(fd.get(), &status);
    return static_cast<uint64_t>(status.st_size);
  }
  std::byte at(size_t offset) { return memory.data()[offset]; }

  unique_fd fd;
  size_t size;
  mapping memory;
};

std::byte counted(size_t offset) { return static_cast<std::byte>(offset % 251); }

/// An object at `inside`, whose bytes are in these runs of the region.
struct placed_object {
  std::byte* inside;
  std::vector<region_run> runs;
};

copy_request request(copy_direction direction, outside_memory outside,
                     const std::vector<placed_object>& objects) {
  copy_request made;
  made.direction = direction;
  made.outside = std::move(outside);
  std::vector<region_run> runs;
  std::vector<uint32_t> per_object;
  std::vector<uint64_t> sizes;
  for (const placed_object& object : objects) {
    made.objects.push_back({object.inside, made.objects.size()});
    runs.insert(runs.end(), object.runs.begin(), object.runs.end());
    per_object.push_back(static_cast<uint32_t>(object.runs.size()));
    sizes.push_back(0);
    for (const region_run& run : object.runs)
      sizes.back() += run.bytes * run.count;
  }
  made.runs = std::make_shared<const scatter_gather>(
      scatter_gather::make(runs, per_object, sizes, made.outside.bytes).value());
  return made;
}

struct ByteMoves : ::testing::TestWithParam<bool> {
  region outside{10000};
  std::vector<std::byte> arena = std::vector<std::byte>(10000);
  outside_memory memory() { return GetParam() ? outside.mapped() : outside.unmapped(); }
};

} // namespace

TEST_P(ByteMoves, PiecesGoIntoTheArenaInTheirOrder) {
  auto answer = move_bytes(
      request(copy_direction::into_arena, memory(), {{arena.data(), {{5000, 700}, {0, 100, 100, 3}}}}), 256);
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.bytes, 1000u);
  for (size_t i = 0; i < 700; ++i)
    ASSERT_EQ(arena[i], counted(5000 + i)) << i;
  for (size_t i = 0; i < 300; ++i)
    ASSERT_EQ(arena[700 + i], counted(i)) << i;
  EXPECT_EQ(arena[1000], std::byte{0});
}

TEST_P(ByteMoves, PiecesGoOutOfTheArenaAndNowhereElse) {
  std::memset(arena.data(), 0xee, arena.size());
  auto answer =
      move_bytes(request(copy_direction::out_of_arena, memory(), {{arena.data(), {{4000, 1000}}}}), 256);
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.bytes, 1000u);
  for (size_t i = 0; i < outside.size; ++i)
    ASSERT_EQ(outside.at(i), i >= 4000 && i < 5000 ? std::byte{0xee} : counted(i)) << i;
}

TEST_P(ByteMoves, ChecksumsAreThoseOfEachObjectAsItLiesInTheArena) {
  auto what = request(copy_direction::into_arena, memory(),
                      {{arena.data(), {{5000, 700}, {0, 3, 9, 100}}}, {arena.data() + 2000, {{64, 1}}}});
  what.checksums = true;
  auto answer = move_bytes(what, 256);
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.checksums, (std::vector{payload_checksum({arena.data(), 1000}),
                                           payload_checksum({arena.data() + 2000, 1})}));
}

TEST_P(ByteMoves, NoChecksumIsToldOfAnObjectThatWasNotCopiedWhole) {
  auto what = request(copy_direction::into_arena, memory(),
                      {{arena.data(), {{0, 100}}}, {arena.data() + 100, {{0, 100}, {1, 100}}}});
  what.checksums = true;
  what.context = ended(errc::cancelled);
  auto answer = move_bytes(what, 256);
  EXPECT_EQ(answer.failure.code, errc::cancelled);
  EXPECT_TRUE(answer.checksums.empty());
}

TEST_P(ByteMoves, ARequestThatHasEndedMovesNothing) {
  auto what = request(copy_direction::into_arena, memory(), {{arena.data(), {{1, 100}}}});
  what.context = ended(errc::deadline);
  auto answer = move_bytes(what, 256);
  EXPECT_EQ(answer.failure.code, errc::deadline);
  EXPECT_EQ(answer.bytes, 0u);
  EXPECT_EQ(arena[0], std::byte{0});
}

INSTANTIATE_TEST_SUITE_P(Regions, ByteMoves, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "Mapped" : "ThroughTheirDescriptor"; });

TEST(ByteMovesOfAFile, ATruncatedFileIsGoneAndKeepsItsLengthOnALoad) {
  region outside(10000);
  std::vector<std::byte> arena(10000, std::byte{1});
  ASSERT_EQ(::ftruncate(outside.fd.get(), 4096), 0);
  auto answer = move_bytes(request(copy_direction::out_of_arena, outside.unmapped(),
                                   {{arena.data(), {{0, 4096}}}, {arena.data(), {{4000, 5000}}}}),
                           1 << 20);
  EXPECT_EQ(answer.failure.code, errc::gone);
  EXPECT_NE(answer.failure.text.find("F_SEAL_SHRINK"), std::string::npos);
  EXPECT_EQ(answer.bytes, 4096u);
  EXPECT_EQ(outside.file_bytes(), 4096u);
}

TEST(ByteMovesOfAFile, ATruncatedFileIsGoneOnAStore) {
  region outside(10000);
  std::vector<std::byte> arena(10000);
  ASSERT_EQ(::ftruncate(outside.fd.get(), 4096), 0);
  auto answer = move_bytes(
      request(copy_direction::into_arena, outside.unmapped(), {{arena.data(), {{0, 10000}}}}), 1 << 20);
  EXPECT_EQ(answer.failure.code, errc::gone);
  EXPECT_EQ(answer.bytes, 0u);
}

TEST(ByteMovesOfAFile, ADescriptorThatFailsIsGoneAndSaysWhy) {
  std::vector<std::byte> arena(100);
  outside_memory closed{nullptr, -1, 100, nullptr};
  auto answer =
      move_bytes(request(copy_direction::into_arena, closed, {{arena.data(), {{0, 100}}}}), 1 << 20);
  EXPECT_EQ(answer.failure.code, errc::gone);
  EXPECT_NE(answer.failure.text.find(std::strerror(EBADF)), std::string::npos);
}

// ---- first loads ----

namespace {

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

} // namespace

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

// ---- headers and checksums ----

namespace {

struct SealedObjects : ::testing::Test {
  static constexpr uint64_t payload = 5000;
  static constexpr uint64_t physical = physical_bytes_for(payload);

  space_ptr in = std::make_shared<opened_space>(opened_space{space_id{1}, terrace::testing::small_space(),
                                                             terrace::testing::small_space().fingerprint()});
  std::vector<std::byte> memory = std::vector<std::byte>(2 * physical, std::byte{0x5a});
  volume_id volume = random_volume_id();
  std::vector<sealed_object> objects;

  void SetUp() override {
    for (uint64_t n : {0, 1})
      objects.push_back(
          {key_of(n), first_generation(3) + n, memory.data() + n * physical, payload, physical});
    seal_objects({in, volume, objects, {}});
  }
  std::vector<bool> check() { return check_objects({in, volume, objects, {}}); }
};

} // namespace

TEST_F(SealedObjects, AreGoodAsTheyWereSealed) { EXPECT_EQ(check(), (std::vector{true, true})); }

TEST_F(SealedObjects, AreTheSameWhenTheirChecksumsAreTold) {
  auto before = memory;
  for (sealed_object& object : objects)
    object.checksum = payload_checksum({object.begin + object_header_bytes, payload});
  seal_objects({in, volume, objects, {}});
  EXPECT_EQ(memory, before);
  objects[0].checksum = *objects[0].checksum + 1;
  seal_objects({in, volume, objects, {}});
  EXPECT_EQ(check(), (std::vector{false, true}));
}

TEST_F(SealedObjects, HaveZerosBehindTheirPayload) {
  for (size_t i = object_header_bytes; i < physical; ++i)
    ASSERT_EQ(memory[i], i < object_header_bytes + payload ? std::byte{0x5a} : std::byte{0}) << i;
}

TEST_F(SealedObjects, EveryFlippedByteOfTheHeaderOrThePayloadIsFound) {
  std::vector<size_t> places{
      0, 8, 64, 128, object_header_bytes, object_header_bytes + 1234, object_header_bytes + payload - 1};
  for (size_t place : places) {
    std::byte before = memory[place];
    memory[place] ^= std::byte{0x10};
    EXPECT_EQ(check(), (std::vector{false, true})) << place;
    memory[place] = before;
  }
}

TEST_F(SealedObjects, AnotherStayOfTheSameObjectIsNotThisOne) {
  ++objects[1].generation;
  EXPECT_EQ(check(), (std::vector{true, false}));
}

TEST_F(SealedObjects, WhatAnEarlierEpochWroteIsNotWhatThisOneDid) {
  for (sealed_object& object : objects)
    object.generation += first_generation(4) - first_generation(3);
  EXPECT_EQ(check(), (std::vector{false, false}));
}

TEST_F(SealedObjects, AnotherStoreIsNotThisOne) {
  volume = random_volume_id();
  EXPECT_EQ(check(), (std::vector{false, false}));
}

TEST_F(SealedObjects, AnotherKeySpaceRankOrLengthIsNotThisOne) {
  auto sealed = objects;
  objects[0].key.rank = 1;
  objects[1].key = key_of(5);
  EXPECT_EQ(check(), (std::vector{false, false}));
  objects = sealed;
  objects[0].payload_bytes -= 1;
  EXPECT_EQ(check(), (std::vector{false, true}));
  objects = sealed;
  auto other = std::make_shared<opened_space>(*in);
  other->fingerprint.bytes[0] ^= 1;
  in = other;
  EXPECT_EQ(check(), (std::vector{false, false}));
}
