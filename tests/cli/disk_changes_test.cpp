// terrace disk wipe and resize, on files.
#include "disk_command_fixture.hpp"
#include "storage/extent_file.hpp"
#include "storage/offline_volume.hpp"

#include <gmock/gmock.h>

namespace terrace::cli {
namespace {

using ::testing::HasSubstr;

class DiskChanges : public disk_command_fixture {
 protected:
  uint64_t objects() {
    auto is = inspect(device_);
    return is ? is->found.objects.size() : 0;
  }
  /// Opens the volume as a daemon of that group does.
  result<extent_file> opened(const std::string& group) {
    return extent_file::open({.path = path_, .capacity_bytes = file_bytes, .owner = {{}, group}});
  }
};

TEST_F(DiskChanges, WipedStoresAreEmptyAndMayBeAnybodys) {
  store_.add(1, 1, 5000);
  EXPECT_EQ(run({"wipe", path_, "--yes"}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("wiped"));
  auto daemon = opened("another group");
  ASSERT_TRUE(daemon) << daemon.error().text;
  EXPECT_TRUE(daemon->made_new());
  EXPECT_NE(daemon->volume(), store_.block().volume);
}

TEST_F(DiskChanges, WipingAsksOnATerminal) {
  store_.add(1, 1, 5000);
  EXPECT_EQ(run({"wipe", path_}, "no\n"), exit_code::failed);
  EXPECT_THAT(err_, HasSubstr("will be wiped. Continue?"));
  EXPECT_THAT(err_, HasSubstr("volume 01020300000000000000000000000000 of group tests"));
  EXPECT_EQ(objects(), 1u);
  EXPECT_EQ(run({"wipe", path_}, "yes\n"), exit_code::ok);
  EXPECT_EQ(objects(), 0u);
}

TEST_F(DiskChanges, WipingWithoutATerminalWantsToBeToldSo) {
  store_.add(1, 1, 5000);
  EXPECT_EQ(run({"wipe", path_}), exit_code::usage);
  EXPECT_THAT(err_, HasSubstr("nothing was changed. Use --yes"));
  EXPECT_EQ(objects(), 1u);
}

TEST_F(DiskChanges, WipingTwiceIsNoMistake) {
  EXPECT_EQ(run({"wipe", path_, "--yes", "--json"}), exit_code::ok);
  EXPECT_EQ(json()["wiped"], true);
  EXPECT_EQ(run({"wipe", path_, "--json"}), exit_code::ok);
  EXPECT_EQ(json()["wiped"], false);
}

TEST_F(DiskChanges, OtherFilesAreWipedByForceAlone) {
  temporary_file letter("a letter");
  EXPECT_EQ(run({"wipe", letter.path(), "--yes"}), exit_code::usage);
  EXPECT_THAT(err_, HasSubstr("not a Terrace volume; nothing was changed. Use --force"));
  EXPECT_EQ(letter.text(), "a letter");
  EXPECT_EQ(run({"wipe", letter.path(), "--yes", "--force"}), exit_code::ok) << err_;
  EXPECT_EQ(letter.text(), std::string(2 * superblock_bytes, '\0'));
}

TEST_F(DiskChanges, DamagedStoresAreWipedWithoutForce) {
  flip(64);
  flip(4096 + 64);
  EXPECT_EQ(run({"wipe", path_, "--yes"}), exit_code::ok) << err_;
  EXPECT_TRUE(opened("tests"));
}

TEST_F(DiskChanges, ResizingKeepsObjectsAndTellsWhatToConfigure) {
  for (uint64_t chunk = 0; chunk < 20; ++chunk)
    store_.add(1, chunk, 5000);
  EXPECT_EQ(run({"resize", path_, "64MiB"}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("64.0 MiB instead of 2.00 MiB"));
  EXPECT_THAT(out_, HasSubstr("kept        20 objects"));
  EXPECT_THAT(out_, HasSubstr("configuration to 67108864 before"));
  EXPECT_EQ(*device_.size(), 64u << 20);
  EXPECT_EQ(run({"verify", path_, "--json"}), exit_code::ok);
  EXPECT_EQ(json()["intact"], 20);
  EXPECT_EQ(run({"resize", path_, "2MiB", "--json"}), exit_code::ok) << err_;
  EXPECT_EQ(json()["kept"]["objects"], 20);
  EXPECT_EQ(run({"verify", path_}), exit_code::ok) << out_;
}

TEST_F(DiskChanges, ResizingDropsOnlyWhenTold) {
  for (uint64_t chunk = 0; chunk < 20; ++chunk)
    store_.add(1, chunk, 60'000);
  EXPECT_EQ(run({"resize", path_, "1MiB"}), exit_code::failed);
  EXPECT_THAT(err_, HasSubstr("nothing was changed"));
  EXPECT_THAT(err_, HasSubstr("--drop"));
  EXPECT_EQ(run({"resize", path_, "1MiB", "--dry-run", "--json"}), exit_code::ok);
  EXPECT_GT(json()["dropped"]["objects"], 0);
  EXPECT_EQ(objects(), 20u);
  auto kept = json()["kept"];
  EXPECT_EQ(run({"resize", path_, "1MiB", "--drop", "--json"}), exit_code::ok) << err_;
  EXPECT_EQ(json()["kept"], kept);
  EXPECT_EQ(run({"verify", path_}), exit_code::ok) << out_;
}

TEST_F(DiskChanges, RefuseAStoreThatADaemonHasOpen) {
  auto daemon = opened("tests");
  ASSERT_TRUE(daemon) << daemon.error().text;
  for (std::vector<std::string> words : {std::vector<std::string>{"wipe", path_, "--yes", "--force"},
                                         {"resize", path_, "4MiB"},
                                         {"resize", path_, "4MiB", "--dry-run"}}) {
    EXPECT_EQ(run(words), exit_code::failed);
    EXPECT_THAT(err_,
                HasSubstr("process " + std::to_string(::getpid()) + " (test_cli) has this volume open"));
    EXPECT_THAT(err_, HasSubstr("stop it first"));
  }
}

TEST_F(DiskChanges, RefuseWhatMakesNoSense) {
  temporary_file letter("a letter");
  EXPECT_EQ(run({"resize", path_, "much"}), exit_code::usage);
  EXPECT_EQ(run({"resize", path_, "10KiB"}), exit_code::usage);
  EXPECT_THAT(err_, HasSubstr("at least 1 MiB"));
  EXPECT_EQ(run({"resize", letter.path(), "4MiB"}), exit_code::usage);
  EXPECT_THAT(err_, HasSubstr("not a Terrace volume"));
  EXPECT_EQ(run({"resize", "/does/not/exist", "4MiB"}), exit_code::usage);
  EXPECT_EQ(run({"wipe", "/does/not/exist", "--yes"}), exit_code::usage);
  EXPECT_EQ(run({"resize", path_, "16777216TiB"}), exit_code::usage);
  EXPECT_EQ(run({"resize", path_, "1024TiB"}), exit_code::failed);
  EXPECT_THAT(err_, HasSubstr("are free on its file system"));
  EXPECT_EQ(*device_.size(), file_bytes);
}

} // namespace
} // namespace terrace::cli
