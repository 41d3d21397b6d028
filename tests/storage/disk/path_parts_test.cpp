#include "storage/disk/path_parts.hpp"

#include "index/object_header.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <cerrno>

using namespace terrace;
using namespace terrace::test;

namespace path_parts_test {

constexpr uint64_t payload = 4096;
const uint64_t physical = physical_bytes_for(payload);

struct PathParts : ::testing::Test {
  temporary_folder folder;
  std::optional<disk_paths> paths;
  std::vector<std::byte> memory;

  PathParts() : memory(4 * physical) {
    auto files = extent_file::open_all({.paths = {folder / "0", folder / "1"},
                                        .capacity_bytes = 1 << 20,
                                        .direct = false,
                                        .owner = {},
                                        .boot = {}});
    if (!files)
      throw std::runtime_error(files.error().text);
    paths.emplace(std::move(*files));
  }

  /// Four objects, in turn on the two paths.
  template <class Request>
  Request four() {
    Request made;
    for (size_t i = 0; i < 4; ++i) {
      moved_object object;
      object.key = key_of(i);
      object.place = {object_id{i + 1}, paths->map().begin(i % 2) + i / 2 * physical, payload, physical};
      object.memory = memory.data() + i * physical;
      made.objects.push_back(object);
    }
    made.context = context();
    made.owners = {std::make_shared<int>(1)};
    return made;
  }

  static disk_answer answer(std::vector<int> failed, bool out_of_service = false) {
    return {{}, std::move(failed), out_of_service};
  }
};

using outcomes = std::vector<move_outcome>;
using outcome = move_outcome;

TEST_F(PathParts, GivesEachPathItsOperations) {
  auto request = four<read_request>();
  path_parts parts(*paths, disk_direction::read, request);
  EXPECT_EQ(parts.paths(), (std::vector<size_t>{0, 1}));
  auto first = parts.take(0), second = parts.take(1);
  ASSERT_EQ(first.operations.size(), 2u);
  EXPECT_EQ(first.operations[1].memory, request.objects[2].memory);
  EXPECT_EQ(first.operations[1].file_offset, paths->file(0)->extents_begin() + physical);
  EXPECT_EQ(first.operations[1].bytes, physical);
  EXPECT_EQ(first.owners.size(), 1u);
  EXPECT_EQ(first.context, request.context);
  ASSERT_EQ(second.operations.size(), 2u);
  EXPECT_EQ(second.operations[0].memory, request.objects[1].memory);
}

TEST_F(PathParts, LeavesOutPathsWithoutObjects) {
  auto request = four<read_request>();
  request.objects = {request.objects[1]};
  EXPECT_EQ(path_parts(*paths, disk_direction::read, request).paths(), std::vector<size_t>{1});
  request.objects.clear();
  path_parts none(*paths, disk_direction::read, request);
  EXPECT_TRUE(none.paths().empty());
  EXPECT_TRUE(none.outcome().outcomes.empty());
}

TEST_F(PathParts, CombinesTheOutcomesOfReads) {
  path_parts parts(*paths, disk_direction::read, four<read_request>());
  parts.add(1, answer({EIO, ETIMEDOUT}));
  parts.add(0, answer({0, EIO}, true));
  EXPECT_EQ(parts.outcome().outcomes,
            (outcomes{outcome::done, outcome::failed, outcome::away, outcome::stalled}));
  EXPECT_EQ(parts.outcome().failure.code, errc::ok);
}

TEST_F(PathParts, ObjectsOfAPathOutOfServiceAreAway) {
  for (auto direction : {disk_direction::read, disk_direction::write}) {
    path_parts parts(*paths, direction, four<moved_objects>());
    parts.add(0, {{errc::busy, "out of service"}, {}});
    parts.add(1, answer({0, 0}));
    EXPECT_EQ(parts.outcome().outcomes,
              (outcomes{outcome::away, outcome::done, outcome::away, outcome::done}));
    EXPECT_EQ(parts.outcome().failure.code, errc::ok);
  }
}

TEST_F(PathParts, AWriteThatDidNotCompleteHasFailedOrStalled) {
  path_parts parts(*paths, disk_direction::write, four<write_request>());
  parts.add(0, answer({ETIMEDOUT, EIO}, true));
  parts.add(1, answer({0, ENOSPC}));
  EXPECT_EQ(parts.outcome().outcomes,
            (outcomes{outcome::stalled, outcome::done, outcome::failed, outcome::failed}));
}

TEST_F(PathParts, TheEndOfADiskFailsTheRead) {
  path_parts parts(*paths, disk_direction::read, four<read_request>());
  parts.add(0, answer({0, 0}));
  parts.fail(1, {errc::internal, "a disk has ended"});
  EXPECT_EQ(parts.outcome().failure.code, errc::internal);
  EXPECT_EQ(parts.outcome().outcomes[1], outcome::failed);
}

TEST_F(PathParts, SealsWithTheChecksumsThatAreKnown) {
  auto request = four<write_request>();
  bool known = true;
  auto seal = seal_of(request, paths->volume(), known);
  EXPECT_FALSE(known);
  ASSERT_EQ(seal.objects.size(), 4u);
  EXPECT_EQ(seal.volume, paths->volume());
  EXPECT_EQ(seal.objects[1].physical_bytes, physical);
  EXPECT_EQ(seal.owners.size(), 1u);
  for (moved_object& object : request.objects)
    object.checksum = 7;
  seal_of(request, paths->volume(), known);
  EXPECT_TRUE(known);
}

TEST_F(PathParts, ChecksWhatWasRead) {
  move_answer read;
  read.outcomes = {outcome::done, outcome::failed, outcome::done, outcome::away};
  std::vector<size_t> checked;
  auto check = check_of(four<read_request>(), paths->volume(), read, checked);
  EXPECT_EQ(checked, (std::vector<size_t>{0, 2}));
  ASSERT_EQ(check.objects.size(), 2u);
  EXPECT_EQ(check.objects[1].key, key_of(2));
  apply(check_answer{{}, {true, false}}, checked, read);
  EXPECT_EQ(read.outcomes, (outcomes{outcome::done, outcome::failed, outcome::failed, outcome::away}));
}

} // namespace path_parts_test
