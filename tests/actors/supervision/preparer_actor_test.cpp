// What blocks at start, on one thread: opening the disk and committing memory.
#include "actors/supervision/preparer_actor.hpp"

#include "group_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <sys/mman.h>

#include <fstream>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

constexpr uint64_t mebibyte = 1 << 20;

struct reports {
  std::vector<disk_prepared> disk;
  std::vector<memory_committed> memory;
};

struct Preparer : group_fixture {
  std::shared_ptr<reports> seen = std::make_shared<reports>();
  terrace::test::temporary_folder where;
  preparer_arguments with;

  Preparer() {
    auto memory = segmented_arena::create({.name = "test", .bytes = 4 * mebibyte, .segment_bytes = mebibyte});
    EXPECT_TRUE(memory) << memory.error().text;
    start({.host_objects = 8});
    with.group = 3;
    with.spaces = group->group;
    with.policy = group->policy;
    with.memory = std::move(*memory);
    with.detached = false;
    with.report_to = sys.spawn([seen = seen]() -> caf::behavior {
      return {[seen](const disk_prepared& report) { seen->disk.push_back(report); },
              [seen](const memory_committed& report) { seen->memory.push_back(report); }};
    });
  }
  void TearDown() override {
    stop(with.report_to);
    with = {};
    group_fixture::TearDown();
  }

  void want_disk(const std::filesystem::path& path, uint64_t bytes = 2 * mebibyte) {
    with.disk = extent_files_options{.paths = {path.string()}, .capacity_bytes = bytes, .direct = false};
  }
  /// Prepares; whether the preparer has ended by itself.
  bool prepare() {
    auto preparer = spawn_preparer(sys, with);
    bool ended = false;
    auto watcher = sys.spawn([&](caf::event_based_actor* self) {
      self->set_down_handler([&ended](const caf::down_msg&) { ended = true; });
      self->monitor(preparer);
      return caf::behavior{[](int) {}};
    });
    settle();
    stop(watcher); // it looks at `ended`
    return ended;
  }
};

} // namespace

TEST_F(Preparer, MakesNoFolder) { // that of a device that is not mounted would fill another one
  want_disk(where / "a" / "store");
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::not_found);
  EXPECT_FALSE(std::filesystem::exists(where / "a"));
}

TEST_F(Preparer, OpensTheDisk) {
  std::filesystem::create_directories(where / "a" / "b");
  want_disk(where / "a" / "b" / "store");
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::ok) << seen->disk[0].failure.text;
  EXPECT_EQ(seen->disk[0].group, 3u);
  ASSERT_NE(seen->disk[0].disk, nullptr);
  EXPECT_EQ(seen->disk[0].disk->paths->file(0)->capacity_bytes(), 2 * mebibyte);
  EXPECT_TRUE(std::filesystem::exists(where / "a" / "b" / "store"));
}

TEST_F(Preparer, SaysWhyTheDiskCannotBeOpened) {
  std::ofstream(where / "file") << "x";
  want_disk(where / "file" / "store"); // a file where a folder should be
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].disk, nullptr);
  EXPECT_NE(seen->disk[0].failure.code, errc::ok);
  EXPECT_NE(seen->disk[0].failure.text.find((where / "file" / "store").string()), std::string::npos)
      << seen->disk[0].failure.text;
}

TEST_F(Preparer, SaysThatTheDiskIsTooSmall) {
  want_disk(where / "store", 1ULL << 52);
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::no_space) << seen->disk[0].failure.text;
  EXPECT_FALSE(std::filesystem::exists(where / "store")) << "nothing is left behind";
}

TEST_F(Preparer, DoesNotTouchAFileOfSomebodyElse) {
  std::ofstream(where / "store") << std::string(8192, 'x');
  want_disk(where / "store");
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::denied) << seen->disk[0].failure.text;
  EXPECT_EQ(std::filesystem::file_size(where / "store"), 8192u);
}

TEST_F(Preparer, SaysThatTheGroupHasEnded) {
  want_disk(where / "store");
  stop(with.spaces);
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::internal);
  EXPECT_NE(seen->disk[0].failure.text.find("group"), std::string::npos) << seen->disk[0].failure.text;
}

TEST_F(Preparer, SaysThatAnotherProcessHasTheFile) {
  want_disk(where / "store");
  auto first = extent_file::open_all(*with.disk);
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->disk.size(), 1u);
  EXPECT_EQ(seen->disk[0].failure.code, errc::busy) << seen->disk[0].failure.text;
}

TEST_F(Preparer, CommitsMemoryPieceByPiece) {
  with.prefault_piece_bytes = mebibyte / 2;
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->memory.size(), 1u) << "one report, when all is there";
  EXPECT_EQ(seen->memory[0].failure.code, errc::ok) << seen->memory[0].failure.text;
  EXPECT_TRUE(seen->disk.empty());
  std::vector<unsigned char> resident(mebibyte / 4096);
  for (uint32_t i = 0; i < with.memory->segments(); ++i) {
    ASSERT_EQ(::mincore(with.memory->segment(i)->data(), mebibyte, resident.data()), 0);
    for (unsigned char page : resident)
      ASSERT_EQ(page & 1, 1);
  }
}

TEST_F(Preparer, SaysThatMemoryCannotBeHad) {
  // Pages that no store can back: a mapping beyond its file's end takes the place of the second segment.
  unique_fd empty(::memfd_create("empty", MFD_CLOEXEC));
  ASSERT_NE(::mmap(with.memory->segment(1)->data(), mebibyte, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   empty.get(), 0),
            MAP_FAILED);
  with.prefault_piece_bytes = mebibyte;
  EXPECT_TRUE(prepare());
  ASSERT_EQ(seen->memory.size(), 1u);
  EXPECT_NE(seen->memory[0].failure.code, errc::ok);
  EXPECT_NE(seen->memory[0].failure.text.find("cannot commit 1048576 bytes"), std::string::npos)
      << seen->memory[0].failure.text;
}

TEST_F(Preparer, LeavesMemoryToWhoeverTouchesItFirst) {
  EXPECT_TRUE(prepare()) << "nothing to do";
  EXPECT_TRUE(seen->memory.empty());
  EXPECT_TRUE(seen->disk.empty());
}

TEST_F(Preparer, EndsBetweenTwoPieces) {
  with.prefault_piece_bytes = 4096;
  auto preparer = spawn_preparer(sys, with);
  for (int i = 0; i < 10; ++i)
    sched.try_run_once();
  stop(preparer);
  EXPECT_TRUE(seen->memory.empty()) << "it was told to end before all was committed";
}
