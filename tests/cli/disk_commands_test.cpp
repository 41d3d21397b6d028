// terrace disk inspect and verify, on files.
#include "disk_command_fixture.hpp"
#include "storage/extent_file.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace terrace::cli {
namespace {

using ::testing::HasSubstr;

class DiskInspectAndVerify : public disk_command_fixture {};

TEST_F(DiskInspectAndVerify, InspectTellsWhatTheStoreIsAndHolds) {
  store_.add(1, 1, 5000);
  store_.checkpoint();
  store_.add(2, 2, 100);
  EXPECT_EQ(run({"inspect", path_}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("01020300000000000000000000000000"));
  EXPECT_THAT(out_, HasSubstr("group tests of a machine without /etc/machine-id"));
  EXPECT_THAT(out_, HasSubstr("both copies are valid"));
  EXPECT_THAT(out_, HasSubstr("number 1: 2 records in 1 block, covers"));
  EXPECT_THAT(out_, HasSubstr("0277000000000000"));
  EXPECT_THAT(out_, HasSubstr("8.00 KiB"));
  EXPECT_EQ(run({"inspect", path_, "--json"}), exit_code::ok);
  EXPECT_EQ(json()["objects"], 2);
  EXPECT_EQ(json()["payload_bytes"], 5100);
  EXPECT_EQ(json()["spaces"][1]["objects"], 1);
  EXPECT_EQ(json()["sizes"].size(), 2u);
  EXPECT_EQ(json()["checkpoints"][1]["number"], 1);
  EXPECT_EQ(json()["layout"]["extents_begin"], store_.block().layout.extents_begin);
  EXPECT_EQ(json()["problems"], 0);
}

TEST_F(DiskInspectAndVerify, InspectTellsAStoreOfAnotherMachine) {
  std::filesystem::remove(path_);
  ASSERT_TRUE(
      extent_file::open({.path = path_, .capacity_bytes = 2 << 20, .owner = {{0xab, 0xcd}, "tests"}}));
  EXPECT_EQ(run({"inspect", path_}), exit_code::ok) << err_;
  EXPECT_THAT(out_, HasSubstr("group tests of another machine, abcd0000000000000000000000000000"));
}

TEST_F(DiskInspectAndVerify, InspectNamesWhatIsWrongWithTheMetadata) {
  store_.add(1, 1, 5000);
  store_.add(2, 1, 5000);
  store_.add(3, 1, 5000); // if its last block were damaged, that would look like an end that a crash cut off
  flip(4096 + 64);
  flip(store_.block().layout.journal_begin + 2 * 4096 + 100);
  EXPECT_EQ(run({"inspect", path_}), exit_code::ok) << "inspecting judges nothing";
  EXPECT_THAT(out_, HasSubstr("copy 1: the volume's superblock is damaged"));
  EXPECT_THAT(out_, HasSubstr("1 block of the index torn, corrupted or unreadable"));
  ASSERT_EQ(::ftruncate(fd_.get(), file_bytes / 2), 0);
  EXPECT_EQ(run({"inspect", path_}), exit_code::ok);
  EXPECT_THAT(out_, HasSubstr("1.00 MiB where 2.00 MiB were expected"));
}

TEST_F(DiskInspectAndVerify, VerifyOfASoundStoreSaysSo) {
  for (uint64_t chunk = 0; chunk < 20; ++chunk)
    store_.add(1, chunk, 1000 * static_cast<uint32_t>(chunk));
  EXPECT_EQ(run({"verify", path_}), exit_code::ok) << out_;
  EXPECT_THAT(out_, HasSubstr("20 of 20 objects"));
  EXPECT_THAT(err_, HasSubstr("verifying objects 100 %"));
  EXPECT_EQ(run({"verify", path_, "--jobs", "1", "--json"}), exit_code::ok);
  EXPECT_EQ(json()["intact"], 20);
  EXPECT_EQ(json()["findings"].size(), 0u);
}

TEST_F(DiskInspectAndVerify, VerifyListsWhatIsDamagedAndItsExitCodeSaysSo) {
  std::vector<index_record> objects;
  for (uint64_t chunk = 0; chunk < 5; ++chunk)
    objects.push_back(store_.add(1, chunk, 5000));
  flip(place(objects[1]) + 4096);
  flip(place(objects[3]) + 20);
  EXPECT_EQ(run({"verify", path_}), exit_code::damaged);
  EXPECT_THAT(out_, HasSubstr(std::to_string(place(objects[1]))));
  EXPECT_THAT(out_, HasSubstr("its payload does not match its checksum"));
  EXPECT_EQ(run({"verify", path_, "--json"}), exit_code::damaged);
  EXPECT_EQ(json()["intact"], 3);
  EXPECT_EQ(json()["damaged"], 2);
  EXPECT_EQ(json()["findings"][1]["file_offset"], place(objects[3]));
  EXPECT_EQ(run({"verify", path_, "--list", "1"}), exit_code::damaged);
  EXPECT_THAT(out_, HasSubstr("and 1 more"));
}

TEST_F(DiskInspectAndVerify, VerifyTakesAReusedExtentForNoDamage) {
  index_record old = store_.add(1, 1, 5000);
  index_record other = old;
  other.chunk = ::terrace::test::digest_of(99);
  ::terrace::test::write_object(device_, store_.block(), other);
  EXPECT_EQ(run({"verify", path_, "--json"}), exit_code::ok);
  EXPECT_EQ(json()["superseded"], 1);
}

TEST_F(DiskInspectAndVerify, VerifyTakesWhatAKilledDaemonLeftForNoDamage) {
  std::vector<index_record> objects;
  for (uint64_t chunk = 0; chunk < 6; ++chunk)
    objects.push_back(store_.add(1, chunk, 20'000));
  // Extents were reused, and the removals did not reach the index. One newer object covers the end of one
  // object and the begin of the next; another one is complete, and is not in the index either.
  index_record newer = objects[1];
  newer.chunk = ::terrace::test::digest_of(99);
  newer.generation += 1000;
  newer.offset += 8192;
  ::terrace::test::write_object(device_, store_.block(), newer);
  // The last write to the journal was cut off.
  const volume_layout& layout = store_.block().layout;
  std::vector<std::byte> torn(4096, std::byte{7});
  ASSERT_TRUE(device_.write(layout.journal_begin + layout.journal_bytes - 4096, torn));
  EXPECT_EQ(run({"verify", path_, "--json"}), exit_code::ok) << out_;
  EXPECT_EQ(json()["superseded"], 2);
  EXPECT_EQ(json()["intact"], 4);
  EXPECT_EQ(json()["metadata_problems"], 0);
  flip(place(objects[4]) + 5000);
  EXPECT_EQ(run({"verify", path_, "--json"}), exit_code::damaged);
  EXPECT_EQ(json()["damaged"], 1);
}

TEST_F(DiskInspectAndVerify, VerifyFindsDamagedMetadata) {
  store_.add(1, 1, 5000);
  flip(64);
  EXPECT_EQ(run({"verify", path_}), exit_code::damaged);
  EXPECT_THAT(out_, HasSubstr("1 problem (see"));
}

TEST_F(DiskInspectAndVerify, RefuseAStoreThatADaemonHasOpen) {
  auto daemon = extent_file::open({.path = path_, .capacity_bytes = file_bytes, .owner = {{}, "tests"}});
  ASSERT_TRUE(daemon) << daemon.error().text;
  for (const char* command : {"inspect", "verify"}) {
    EXPECT_EQ(run({command, path_}), exit_code::failed);
    EXPECT_THAT(err_,
                HasSubstr("process " + std::to_string(::getpid()) + " (test_cli) has this volume open"));
  }
}

TEST_F(DiskInspectAndVerify, RefuseWhatIsNoStore) {
  temporary_file letter("a letter");
  for (const char* command : {"inspect", "verify"}) {
    EXPECT_EQ(run({command, letter.path()}), exit_code::usage);
    EXPECT_THAT(err_, HasSubstr(letter.path() + ": not a Terrace volume"));
    EXPECT_EQ(run({command, "/does/not/exist"}), exit_code::usage);
    EXPECT_THAT(err_, HasSubstr("No such file"));
    EXPECT_EQ(run({command}), exit_code::usage);
  }
  EXPECT_EQ(run({"verify", path_, "--jobs", "0"}), exit_code::usage);
  flip(4096 + 64);
  flip(64);
  EXPECT_EQ(run({"inspect", path_}), exit_code::damaged);
  EXPECT_THAT(err_, HasSubstr("superblock is damaged"));
}

TEST_F(DiskInspectAndVerify, KnowAVolumeWhoseSuperblocksAreGoneFromAnEmptyFile) {
  const std::string zeroes(2 * superblock_bytes, '\0');
  store_.add(1, 1, 5000);
  ASSERT_EQ(::pwrite(fd_.get(), zeroes.data(), zeroes.size(), 0), static_cast<ssize_t>(zeroes.size()));
  for (const char* command : {"inspect", "verify"}) {
    EXPECT_EQ(run({command, path_}), exit_code::damaged);
    EXPECT_THAT(err_, HasSubstr("both copies of its superblock are zeroes, and what follows is not"));
  }
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  ASSERT_EQ(::ftruncate(fd_.get(), file_bytes), 0);
  EXPECT_EQ(run({"verify", path_}), exit_code::usage);
  EXPECT_THAT(err_, HasSubstr("no superblock yet"));
}

} // namespace
} // namespace terrace::cli
