// A volume on several paths: it is opened as one, or refused where a file is not what it should be.
#include "storage/extent_file.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

namespace fs = std::filesystem;

class ExtentFiles : public testing::Test {
 protected:
  ExtentFiles() {
    std::string name = (fs::temp_directory_path() / "terrace-extents-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    options_.paths = {path("a"), path("b"), path("c")};
    options_.capacity_bytes = 2 << 20;
  }
  ~ExtentFiles() override { fs::remove_all(directory_); }

  std::string path(const char* name) const { return directory_ / name; }

  /// Opens the volume and closes it again.
  volume_id open() {
    auto files = extent_file::open_all(options_);
    EXPECT_TRUE(files) << files.error().text;
    return files ? files->front().volume() : volume_id{};
  }
  /// Returns which of the paths began empty, as 0 and 1.
  std::string made() {
    auto files = extent_file::open_all(options_);
    if (!files)
      return files.error().text;
    std::string text;
    for (const extent_file& file : *files)
      text += file.made_new() ? '1' : '0';
    return text;
  }

  fs::path directory_;
  extent_files_options options_;
};

TEST_F(ExtentFiles, AreOneStore) {
  auto files = extent_file::open_all(options_);
  ASSERT_TRUE(files) << files.error().text;
  ASSERT_EQ(files->size(), 3u);
  for (uint16_t i = 0; i < 3; ++i) {
    const superblock& block = (*files)[i].block();
    EXPECT_EQ((*files)[i].path(), options_.paths[i]);
    EXPECT_EQ(block.volume, files->front().volume());
    EXPECT_EQ(block.path_index, i);
    EXPECT_EQ(block.path_count, 3u);
    EXPECT_EQ(block.epoch, 1u);
    EXPECT_EQ(fs::file_size(options_.paths[i]), options_.capacity_bytes);
  }
}

TEST_F(ExtentFiles, GoOnAsTheSameStore) {
  auto volume = open();
  auto files = extent_file::open_all(options_);
  ASSERT_TRUE(files) << files.error().text;
  for (const extent_file& file : *files) {
    EXPECT_EQ(file.volume(), volume);
    EXPECT_EQ(file.epoch(), 2u);
    EXPECT_FALSE(file.made_new());
  }
}

TEST_F(ExtentFiles, AreLockedTogether) {
  auto files = extent_file::open_all(options_);
  ASSERT_TRUE(files);
  for (const std::string& each : options_.paths) {
    auto second = extent_file::open({.path = each, .capacity_bytes = 2 << 20});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, errc::busy);
  }
}

TEST_F(ExtentFiles, AreNotMadeWhereOneOfThemFindsNoRoom) {
  options_.capacity_bytes = 1ULL << 60;
  EXPECT_EQ(extent_file::open_all(options_).error().code, errc::no_space);
  EXPECT_TRUE(fs::is_empty(directory_));
  fs::create_directory(options_.paths[2]);
  options_.capacity_bytes = 2 << 20;
  EXPECT_FALSE(extent_file::open_all(options_));
  EXPECT_FALSE(fs::exists(options_.paths[0]));
}

TEST_F(ExtentFiles, AMissingOneIsRefusedAndNotMade) {
  auto volume = open();
  fs::remove(options_.paths[1]);
  auto refused = extent_file::open_all(options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_NE(refused.error().text.find(options_.paths[1] + ": the file does not exist; path 1 of 3"),
            std::string::npos)
      << refused.error().text;
  EXPECT_FALSE(fs::exists(options_.paths[1]));
  options_.on_mismatch = mismatch_rule::adapt;
  EXPECT_EQ(made(), "010");
  EXPECT_EQ(open(), volume);
}

TEST_F(ExtentFiles, AnEmptyOneTakesThePlaceOfALostOne) {
  auto volume = open();
  fs::remove(options_.paths[1]);
  std::ofstream(options_.paths[1]).flush();
  EXPECT_EQ(made(), "010");
  EXPECT_EQ(open(), volume);
}

TEST_F(ExtentFiles, InAnotherOrderAreRefusedAndLeftAlone) {
  open();
  auto files = options_.paths;
  std::swap(options_.paths[0], options_.paths[2]);
  auto refused = extent_file::open_all(options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("this is path 2 of 3"), std::string::npos) << refused.error().text;
  options_.paths = files;
  EXPECT_EQ(made(), "000");
}

TEST_F(ExtentFiles, MayBecomeMoreAndFewer) {
  options_.paths = {path("a")};
  auto volume = open();
  options_.paths = {path("b"), path("a")};
  EXPECT_NE(made().find("path 0 of 1"), std::string::npos);
  options_.on_mismatch = mismatch_rule::adapt;
  EXPECT_EQ(made(), "10");
  EXPECT_EQ(open(), volume);
  options_.paths = {path("b")};
  EXPECT_EQ(made(), "0");
  EXPECT_EQ(open(), volume);
}

TEST_F(ExtentFiles, AForeignOneIsWipedAloneWhereThatIsAllowed) {
  auto volume = open();
  std::ofstream(options_.paths[2]) << "somebody's thesis, " + std::string(9000, '.');
  EXPECT_NE(made().find("not a Terrace volume"), std::string::npos);
  options_.on_mismatch = mismatch_rule::adapt;
  EXPECT_NE(made().find("not a Terrace volume"), std::string::npos);
  options_.on_mismatch = mismatch_rule::wipe;
  EXPECT_EQ(made(), "001");
  EXPECT_EQ(open(), volume);
}

TEST_F(ExtentFiles, APathThatBeginsAgainHasNothingOfItsFormerIndex) {
  auto files = extent_file::open_all(options_);
  ASSERT_TRUE(files);
  volume_layout layout = (*files)[1].block().layout;
  files = fail(errc::gone, "closed");
  auto write = [&](uint64_t at, char what) {
    std::fstream(options_.paths[1], std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(at))
        .put(what);
  };
  auto read = [&](uint64_t at) {
    std::ifstream in(options_.paths[1], std::ios::binary);
    return in.seekg(static_cast<std::streamoff>(at)).get();
  };
  uint64_t places[] = {layout.journal_begin, layout.journal_begin + layout.journal_bytes - 1,
                       layout.checkpoint_area(0), layout.checkpoint_area(1)};
  for (uint64_t at : places)
    write(at, '!');
  EXPECT_EQ(made(), "000");
  EXPECT_EQ(read(places[0]), '!') << "a path that goes on keeps it";
  for (uint64_t copy : {0, 4096})
    for (uint64_t at = copy; at < copy + 4096; ++at)
      write(at, '\0'); // as `terrace disk wipe` does
  EXPECT_EQ(made(), "010");
  for (uint64_t at : places)
    EXPECT_EQ(read(at), 0) << at;
}

// ---- without paths that are missing ----

TEST_F(ExtentFiles, GoOnWithoutOneThatIsMissing) {
  auto volume = open();
  fs::rename(options_.paths[1], directory_ / "elsewhere");
  {
    auto opened = extent_file::open_those_there(options_);
    ASSERT_TRUE(opened) << opened.error().text;
    ASSERT_EQ(opened->files.size(), 2u);
    for (const extent_file& file : opened->files) {
      EXPECT_EQ(file.volume(), volume);
      EXPECT_FALSE(file.made_new());
      EXPECT_EQ(file.block().path_count, 3u);
      EXPECT_EQ(file.block().missing, path_bit(1));
    }
    EXPECT_EQ(opened->files[1].path_index(), 2u);
    ASSERT_EQ(opened->left_out.size(), 1u);
    EXPECT_EQ(opened->left_out[0].path, 1u);
    EXPECT_NE(opened->left_out[0].why.text.find("the file does not exist"), std::string::npos);
    EXPECT_FALSE(fs::exists(options_.paths[1]));
  }
  fs::rename(directory_ / "elsewhere", options_.paths[1]);
  auto again = extent_file::open_those_there(options_);
  ASSERT_TRUE(again) << again.error().text;
  ASSERT_EQ(again->files.size(), 3u);
  for (const extent_file& file : again->files) {
    EXPECT_FALSE(file.made_new());
    EXPECT_EQ(file.block().missing, 0u);
    EXPECT_EQ(file.epoch(), 3u);
  }
}

TEST_F(ExtentFiles, GoOnWithoutOneThatCannotBeOpened) {
  open();
  fs::remove(options_.paths[0]);
  fs::create_directory(options_.paths[0]);
  auto opened = extent_file::open_those_there(options_);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(opened->files.size(), 2u);
  EXPECT_EQ(opened->left_out.at(0).path, 0u);
}

TEST_F(ExtentFiles, GoOnWithoutOneOfSomebodyElseAndLeaveItAsItIs) {
  open();
  std::string thesis = "somebody's thesis, " + std::string(9000, '.');
  std::ofstream(options_.paths[2]) << thesis;
  auto opened = extent_file::open_those_there(options_);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(opened->left_out.at(0).path, 2u);
  EXPECT_EQ(fs::file_size(options_.paths[2]), thesis.size());
}

TEST_F(ExtentFiles, GoOnWithoutOneThatFindsNoRoom) {
  open();
  fs::remove(options_.paths[2]);
  // A file that may not grow: its size is the process's limit, which the other files have reached already.
  std::ofstream(options_.paths[2]).flush();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit narrow{1 << 20, before.rlim_max};
  auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &narrow), 0);
  auto opened = extent_file::open_those_there(options_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(opened->files.size(), 2u);
  EXPECT_EQ(opened->left_out.at(0).path, 2u);
  EXPECT_EQ(opened->files[0].block().missing, path_bit(2));
  EXPECT_EQ(fs::file_size(options_.paths[2]), 0u) << "it is as it was";
}

TEST_F(ExtentFiles, AreNotMadeWithoutOneOfThem) {
  fs::create_directory(options_.paths[1]);
  EXPECT_FALSE(extent_file::open_those_there(options_));
  EXPECT_FALSE(fs::exists(options_.paths[0]));
}

TEST_F(ExtentFiles, WaitForOneThatIsInUse) {
  open();
  auto other = extent_file::open_all(options_);
  ASSERT_TRUE(other);
  EXPECT_EQ(extent_file::open_those_there(options_).error().code, errc::busy);
}

TEST_F(ExtentFiles, OpenedEachWithoutTheOtherForgetEverything) {
  open();
  for (size_t away : {0, 1}) {
    fs::rename(options_.paths[away], directory_ / "elsewhere");
    ASSERT_TRUE(extent_file::open_those_there(options_));
    fs::rename(directory_ / "elsewhere", options_.paths[away]);
  }
  auto again = extent_file::open_all(options_);
  ASSERT_TRUE(again) << again.error().text;
  for (const extent_file& file : *again)
    EXPECT_EQ(file.block().forgotten_below, file.epoch());
}

TEST_F(ExtentFiles, NeedAPath) {
  options_.paths.clear();
  EXPECT_EQ(extent_file::open_all(options_).error().code, errc::bad_request);
  options_.paths = {path("a"), ""};
  EXPECT_EQ(extent_file::open_all(options_).error().code, errc::bad_request);
}

} // namespace
} // namespace terrace
