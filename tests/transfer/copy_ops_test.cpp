#include "transfer/copy_ops.hpp"

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "index/index_record.hpp"
#include "index/object_header.hpp"
#include "index/payload_checksum.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"
#include "tests/transfer/copy_requests.hpp"

#include <gtest/gtest.h>

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

// ---- headers and checksums ----

namespace {

struct SealedObjects : ::testing::Test {
  static constexpr uint64_t payload = 5000;
  static constexpr uint64_t physical = physical_bytes_for(payload);

  space_ptr in = std::make_shared<opened_space>(
      opened_space{space_id{1}, terrace::test::small_space(), terrace::test::small_space().fingerprint()});
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
