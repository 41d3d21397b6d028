#include "storage/disk/damage_reports.hpp"

#include "index/object_header.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t physical = 8192;

struct DamageReports : ::testing::Test {
  temporary_folder folder;
  std::shared_ptr<const disk_paths> paths = open();
  damage_reports reports{paths};
  std::vector<std::byte> memory{4 * physical};
  damage_log::time_point now{};

  std::shared_ptr<const disk_paths> open() {
    auto files = extent_file::open_all({.paths = {folder / "0", folder / "1"},
                                        .capacity_bytes = 1 << 20,
                                        .direct = false,
                                        .owner = {},
                                        .boot = {}});
    if (!files)
      throw std::runtime_error(files.error().text);
    return std::make_shared<const disk_paths>(std::move(*files));
  }
  /// Four objects whose headers are damaged, in turn on the two paths.
  std::vector<moved_object> four() {
    std::vector<moved_object> made(4);
    for (size_t i = 0; i < 4; ++i) {
      made[i].key = key_of(i);
      made[i].place = {object_id{i + 1}, paths->map().begin(i % 2) + i / 2 * physical, 4096, physical};
      made[i].memory = memory.data() + i * physical;
    }
    return made;
  }
};

} // namespace

TEST_F(DamageReports, NameThePathsThatHaveDamage) {
  auto found = reports.add(four(), {1, 3}, now);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, 1u);
  EXPECT_EQ(found[0].damaged, 2u);
  EXPECT_EQ(found[0].superseded, 0u);
  ASSERT_TRUE(found[0].line);
  EXPECT_NE(found[0].line->find(paths->file(1)->path()), std::string::npos);
  EXPECT_NE(found[0].notice.find("2 damaged objects"), std::string::npos) << found[0].notice;
  EXPECT_TRUE(reports.add(four(), {}, now).empty());
}

TEST_F(DamageReports, EachPathHasItsOwnCountAndLine) {
  EXPECT_TRUE(reports.add(four(), {0}, now)[0].line);
  auto found = reports.add(four(), {0, 1, 2}, now);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0].line) << "it had one just now";
  EXPECT_NE(found[0].notice.find("3 damaged"), std::string::npos) << found[0].notice;
  EXPECT_TRUE(found[1].line);
}

TEST_F(DamageReports, AReusedExtentIsNoDamage) {
  auto objects = four();
  object_header other;
  other.identity.generation = 5;
  other.identity.chunk = objects[0].key.chunk;
  other.payload_bytes = 4096;
  other.physical_bytes = physical;
  encode(other, std::span<std::byte, object_header_bytes>(objects[0].memory, object_header_bytes));
  objects[0].place.generation = 4;
  auto found = reports.add(objects, {0}, now);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].superseded, 1u);
  EXPECT_EQ(found[0].damaged, 0u);
  EXPECT_FALSE(found[0].line);
  EXPECT_TRUE(found[0].notice.empty());
}
