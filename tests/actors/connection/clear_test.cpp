// What clear answers when the disk tier's volume cannot be reached.
#include "connection_fixture.hpp"

#include "storage/pending_clears.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fstream>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct Clear : connection_fixture {
  terrace::test::temporary_folder state;

  void SetUp() override {
    group->disk_files = {"/nowhere/terrace.extents"};
    group->state_directory = state.path();
    group->detached = false;
    ready();
    send_store(10, 0, 4);
    ASSERT_EQ(answer().code(), errc::ok);
  }
  received clear(bool one_space = false) {
    send(kind::clear, 20, [&](auto& body) { return wire::CreateClear(body, one_space ? space : 0); });
    return answer();
  }
  std::vector<pending_clear> remembered() const {
    return pending_clears(state.path()).of(group->disk_files).value();
  }
};

} // namespace

TEST_F(Clear, IsRememberedForAVolumeThatWasRefused) {
  group->refuse("somebody else's");
  auto done = clear();
  ASSERT_EQ(done.code(), errc::ok) << done.text();
  EXPECT_EQ(done.as<wire::ClearAnswer>().objects(), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(remembered(), std::vector<pending_clear>{{}});
}

TEST_F(Clear, OfASpaceIsRememberedByItsFingerprintForAVolumeThatIsLocked) {
  group->locked();
  ASSERT_EQ(clear(true).code(), errc::ok);
  ASSERT_EQ(remembered().size(), 1u);
  EXPECT_TRUE(remembered()[0].space);
}

TEST_F(Clear, IsRefusedWhileTheVolumeIsOpened) {
  group->starting();
  auto done = clear();
  EXPECT_EQ(done.code(), errc::busy);
  EXPECT_NE(done.text().find("/nowhere/terrace.extents"), std::string::npos) << done.text();
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  EXPECT_TRUE(remembered().empty());
}

namespace {

/// The first look at the clock after a clear has begun, at what other actors have answered, finds no memory.
struct ClearWithoutMemory : Clear {
  received refused() {
    bool none = false;
    size_t looks = 0;
    environment->now = [&] {
      ++looks;
      if (std::exchange(none, false))
        throw std::bad_alloc();
      return time;
    };
    EXPECT_TRUE(client->send(kind::clear, 20, [](auto& body) { return wire::CreateClear(body); }));
    for (size_t jobs = 0; looks == 0 && jobs < 1000; ++jobs)
      run_some(1);
    EXPECT_FALSE(client->next()) << "it was answered at once";
    none = true;
    auto said = answer();
    EXPECT_FALSE(none);
    environment->now = [this] { return time; };
    return said;
  }
};

} // namespace

TEST_F(ClearWithoutMemory, TheAnswerOfATierIsAnErrorOfItsRequest) {
  auto said = refused();
  EXPECT_EQ(said.id, 20u);
  EXPECT_EQ(said.code(), errc::no_space) << said.text();
  EXPECT_EQ(clear().code(), errc::ok) << "the connection goes on";
}

TEST_F(ClearWithoutMemory, TheAnswerOfTheKeeperIsAnErrorOfItsRequest) {
  group->starting(); // so that it refuses
  auto said = refused();
  EXPECT_EQ(said.id, 20u);
  EXPECT_EQ(said.code(), errc::no_space) << said.text();
  EXPECT_EQ(clear().code(), errc::busy) << "the connection goes on";
}

TEST_F(Clear, ThatCannotBeRememberedNamesTheVolume) {
  group->refuse("somebody else's");
  std::ofstream(state / "file") << "no folder";
  group->state_directory = state / "file";
  auto done = clear();
  EXPECT_EQ(done.code(), errc::internal);
  EXPECT_NE(done.text().find("/nowhere/terrace.extents"), std::string::npos) << done.text();
  EXPECT_EQ(present(group->host, 0, 4), 0u) << "all the same";
}

TEST_F(Clear, RemembersNothingWithoutADiskTierAndWithoutAFile) {
  ASSERT_EQ(clear().code(), errc::ok);
  EXPECT_TRUE(remembered().empty());
}

TEST_F(Clear, IsRememberedForAVolumeThatIsThereButTurnedOff) {
  group->disk_files = {(state / "terrace.extents").string()};
  std::ofstream(state / "terrace.extents") << "a volume";
  ASSERT_EQ(clear().code(), errc::ok);
  EXPECT_EQ(remembered().size(), 1u);
}

namespace {

struct ClearOnDisk : Clear {
  void SetUp() override {
    wanted.disk_objects = 32;
    restart(false);
    environment = environment_of(group, probes, log);
    environment->now = [this] { return time; };
    Clear::SetUp();
  }
};

} // namespace

TEST_F(ClearOnDisk, IsRememberedWhenTheVolumeCannotWriteItDown) {
  ring.respond([](const runtime::io_request& request) -> std::optional<int32_t> {
    return request.code == runtime::io_code::fsync ? std::optional<int32_t>(-EIO) : std::nullopt;
  });
  auto done = clear();
  ASSERT_EQ(done.code(), errc::ok) << done.text();
  ASSERT_EQ(remembered().size(), 1u);
  EXPECT_EQ(remembered()[0].volume, paths->volume());
  EXPECT_GT(remembered()[0].epoch, 0u);
}

TEST_F(ClearOnDisk, IsNotRememberedWhenTheVolumeHasIt) {
  ASSERT_EQ(clear().code(), errc::ok);
  EXPECT_TRUE(remembered().empty());
}
