// terrace disk on the files of a volume on several paths.
#include "disk_command_fixture.hpp"
#include "storage/extent_file.hpp"

#include <gmock/gmock.h>

namespace terrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DiskPathsCommand : public disk_command_fixture {
 protected:
  DiskPathsCommand() { EXPECT_EQ(made(), "11"); }

  /// Tells, with a 0 or 1 for each of the two paths, whether it begins empty when a daemon opens it.
  std::string made() {
    auto files = extent_file::open_all(
        {.paths = {first_.path(), second_.path()}, .capacity_bytes = file_bytes, .owner = {{}, "tests"}});
    if (!files)
      return files.error().text;
    return std::string(1, (*files)[0].made_new() ? '1' : '0') + ((*files)[1].made_new() ? '1' : '0');
  }

  temporary_file first_, second_;
};

TEST_F(DiskPathsCommand, InspectTellsWhichPathOfWhichStoreAFileIs) {
  EXPECT_EQ(run({"inspect", second_.path()}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("1 of 2"));
  EXPECT_EQ(run({"inspect", second_.path(), "--json"}), exit_code::ok);
  EXPECT_EQ(json()["path_index"], 1);
  EXPECT_EQ(json()["path_count"], 2);
}

TEST_F(DiskPathsCommand, InspectOfAllPathsSaysWhetherTheyBelongTogether) {
  EXPECT_EQ(run({"inspect", first_.path(), second_.path()}), exit_code::ok) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("together")));
  EXPECT_EQ(run({"inspect", first_.path(), second_.path(), "--json"}), exit_code::ok);
  EXPECT_EQ(json()["paths"].size(), 2u);
  EXPECT_EQ(json()["paths"][0]["volume"], json()["paths"][1]["volume"]);
  EXPECT_EQ(run({"inspect", second_.path(), first_.path()}), exit_code::ok);
  EXPECT_THAT(out_, HasSubstr("these files are not one volume: " + second_.path() + ": this is path 1 of 2"));
  EXPECT_EQ(run({"inspect", first_.path(), path_}), exit_code::ok);
  EXPECT_THAT(out_, HasSubstr("as in " + first_.path() + ", was expected"));
}

TEST_F(DiskPathsCommand, VerifyGoesThroughAllOfThem) {
  EXPECT_EQ(run({"verify", first_.path(), second_.path(), "--json"}), exit_code::ok) << err_;
  EXPECT_EQ(json()["paths"].size(), 2u);
  flip(64); // the bytes of another volume
  EXPECT_EQ(run({"verify", path_, first_.path()}), exit_code::damaged);
  EXPECT_THAT(out_, HasSubstr(first_.path()));
}

TEST_F(DiskPathsCommand, AWipedPathBeginsAgainInItsStore) {
  EXPECT_EQ(run({"wipe", second_.path()}, "yes\n"), exit_code::ok);
  EXPECT_THAT(err_, HasSubstr("path 1 of 2 of volume"));
  EXPECT_EQ(made(), "01");
  EXPECT_EQ(run({"wipe", first_.path(), second_.path(), "--yes", "--json"}), exit_code::ok);
  EXPECT_EQ(json()["paths"][1]["wiped"], true);
  EXPECT_EQ(made(), "11");
}

TEST_F(DiskPathsCommand, ResizeOfOnePathSaysWhatTheOthersNeed) {
  EXPECT_EQ(run({"resize", first_.path(), "4MiB"}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("Resize its other paths alike"));
  EXPECT_THAT(out_, HasSubstr(std::to_string(8 << 20)));
}

} // namespace
} // namespace terrace::cli
