#include "storage/pending_clears.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace terrace {
namespace pending_clears_test {

using outcome = pending_clears::outcome;

constexpr space_fingerprint space_of(uint8_t number) { return {number, 2, 3}; }
constexpr volume_id volume_of(uint8_t number) { return {{number}}; }

struct PendingClears : testing::Test {
  test::temporary_folder folder;
  std::string state = folder / "deep" / "state";
  pending_clears clears{state};
  std::vector<std::string> files{"/d0/terrace.extents", "/d1/terrace.extents"};

  std::vector<pending_clear> of(size_t file) {
    auto found = clears.of(std::span(&files[file], 1));
    EXPECT_TRUE(found) << found.error().text;
    return found.value_or(std::vector<pending_clear>{});
  }
  void remember(const pending_clear& what) {
    auto done = clears.remember(files, what);
    ASSERT_TRUE(done) << done.error().text;
  }
  void applied(size_t file, outcome what, volume_id volume, uint64_t epoch = 9) {
    auto done = clears.applied(files[file], what, volume, epoch);
    ASSERT_TRUE(done) << done.error().text;
  }
  std::string text() const {
    std::ifstream in(clears.record_of(files[0]));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(clears.record_of(files[0])) << text; }
};

const std::vector<pending_clear> everything{{}};

TEST_F(PendingClears, AreNoneWhereNothingWasRemembered) {
  EXPECT_TRUE(of(0).empty());
  EXPECT_FALSE(std::filesystem::exists(state));
}

TEST_F(PendingClears, AreThereForEachFileAndForWhoeverLooksNext) {
  remember({space_of(1)});
  remember({space_of(2), volume_of(7), 12});
  pending_clears next(state);
  for (size_t file : {0, 1}) {
    auto found = next.of(std::span(&files[file], 1));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (std::vector<pending_clear>{{space_of(1)}, {space_of(2), volume_of(7), 12}}));
  }
  EXPECT_TRUE(next.of(std::vector<std::string>{"/d2/terrace.extents"})->empty());
}

TEST_F(PendingClears, OneOfEverythingTakesThePlaceOfAllBefore) {
  remember({space_of(1)});
  remember({});
  remember({});
  EXPECT_EQ(of(0), everything);
  remember({space_of(1)});
  EXPECT_EQ(of(0).size(), 2u);
}

TEST_F(PendingClears, TooManySpacesBecomeEverything) {
  for (size_t i = 0; i <= pending_clears::clears_max; ++i)
    remember({space_of(static_cast<uint8_t>(i))});
  EXPECT_EQ(of(0), everything);
}

TEST_F(PendingClears, AreGoneOnceTheirVolumeIsOpen) {
  remember({space_of(1)});
  remember({space_of(2), volume_of(7), 12});
  remember({space_of(3), volume_of(8), 3});
  applied(0, outcome::kept, volume_of(7));
  EXPECT_EQ(of(0), (std::vector<pending_clear>{{space_of(3), volume_of(8), 3}})) << "of another volume";
  applied(0, outcome::kept, volume_of(8));
  EXPECT_TRUE(of(0).empty());
  EXPECT_FALSE(std::filesystem::exists(clears.record_of(files[0])));
  EXPECT_EQ(of(1).size(), 3u) << "of the other file";
}

TEST_F(PendingClears, WaitOnWhereAnotherVolumeWasMadeInstead) {
  remember({});
  applied(0, outcome::made_new, volume_of(7));
  ASSERT_EQ(of(0).size(), 1u);
  EXPECT_FALSE(of(0)[0].concerns(volume_of(7)));
  EXPECT_TRUE(of(0)[0].concerns(volume_of(8)));
  applied(0, outcome::kept, volume_of(7));
  EXPECT_EQ(of(0).size(), 1u);
  applied(0, outcome::kept, volume_of(8));
  EXPECT_TRUE(of(0).empty());
}

TEST_F(PendingClears, OfAPathThatIsLeftOutNameTheEpochThatTheVolumeHadThen) {
  remember({space_of(1)});
  applied(0, outcome::left_out, volume_of(7), 9);
  EXPECT_EQ(of(0), (std::vector<pending_clear>{{space_of(1), volume_of(7), 9}}));
}

TEST_F(PendingClears, AreNotRememberedForAVolumeThatIsBeingOpened) {
  auto done = clears.remember(files, {}, [] { return false; });
  EXPECT_EQ(done.error().code, errc::busy);
  EXPECT_TRUE(of(0).empty());
}

TEST_F(PendingClears, ACrashLeavesThoseBeforeTheLast) {
  remember({space_of(1)});
  std::ofstream(clears.record_of(files[0]) + ".new") << "half of a rec";
  EXPECT_EQ(of(0), (std::vector<pending_clear>{{space_of(1)}}));
  remember({space_of(2)});
  EXPECT_EQ(of(0).size(), 2u);
}

TEST_F(PendingClears, ATornRecordIsAClearOfEverything) {
  remember({space_of(1)});
  std::string whole = text();
  for (size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    EXPECT_EQ(of(0), everything) << length;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 4;
    write(damaged);
    EXPECT_EQ(of(0), everything) << i;
  }
}

TEST_F(PendingClears, ARecordOfAnUnknownVersionIsAClearOfEverything) {
  remember({space_of(1)});
  std::string whole = text();
  ASSERT_TRUE(whole.starts_with("terrace pending clears 1\nfile /d0/terrace.extents\n")) << whole;
  std::string next = "terrace pending clears 2\n" +
                     whole.substr(whole.find('\n') + 1, whole.rfind("checksum") - whole.find('\n') - 1);
  char sum[17];
  std::snprintf(sum, sizeof sum, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(next.data(), next.size())));
  write(next + "checksum " + sum + "\n");
  EXPECT_EQ(of(0), everything);
  applied(0, outcome::kept, volume_of(7));
  EXPECT_TRUE(of(0).empty());
}

TEST_F(PendingClears, ReadAsTheyAreWritten) {
  remember({space_of(1), volume_of(7), 12, volume_of(8)});
  std::string expected = "terrace pending clears 1\nfile /d0/terrace.extents\n"
                         "space 0102030000000000000000000000000000000000000000000000000000000000 "
                         "07000000000000000000000000000000 12 08000000000000000000000000000000\nchecksum ";
  EXPECT_EQ(text().substr(0, expected.size()), expected);
  EXPECT_EQ(text().size(), expected.size() + 17);
  EXPECT_EQ(of(0), (std::vector<pending_clear>{{space_of(1), volume_of(7), 12, volume_of(8)}}));
}

TEST_F(PendingClears, SayWhyTheyCannotBeKept) {
  std::ofstream(folder / "deep") << "a file";
  auto done = clears.remember(files, {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text.find(state), std::string::npos) << done.error().text;
  EXPECT_FALSE(pending_clears("").remember(files, {}));
  EXPECT_TRUE(pending_clears("").of(files)->empty());
}

TEST_F(PendingClears, ARecordThatCannotBeReadIsAnError) {
  std::filesystem::create_directories(clears.record_of(files[0]));
  EXPECT_FALSE(clears.of(files));
}

} // namespace pending_clears_test
} // namespace terrace
