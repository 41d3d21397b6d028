#include "cli/daemon_needs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace daemon_needs_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DaemonNeeds, AreReadLineByLine) {
  auto subject =
      read_needs("warning\tdisk.path names \"/x\"\tmount it\nsocket\t/a/b.sock\nsocket\t/a/c.sock\n"
                 "makes\t/a\ndisk\t/x\ndisk\t/y\ndisk_bytes\t1024\nhost_bytes\t2147483648\n"
                 "metrics\t127.0.0.1:9464\nremote\t/run/a.sock\t\t\n"
                 "remote\t10.0.0.7:1\tconnect\tit cannot be reached; check it\nfuture\tthing\n");
  EXPECT_THAT(subject.sockets, ElementsAre("/a/b.sock", "/a/c.sock"));
  EXPECT_THAT(subject.disks, ElementsAre("/x", "/y"));
  EXPECT_THAT(subject.makes, ElementsAre("/a"));
  EXPECT_EQ(subject.host_bytes, 2ULL << 30);
  EXPECT_EQ(subject.disk_bytes, 1024u);
  EXPECT_EQ(subject.metrics, "127.0.0.1:9464");
  ASSERT_EQ(subject.remotes.size(), 2u);
  EXPECT_EQ(subject.remotes[0].address, "/run/a.sock");
  EXPECT_EQ(subject.remotes[0].failure, "");
  EXPECT_EQ(subject.remotes[1].step, "connect");
  EXPECT_EQ(subject.remotes[1].failure, "it cannot be reached; check it");
  ASSERT_EQ(subject.told.size(), 1u);
  EXPECT_EQ(subject.told[0].state, health::warning);
  EXPECT_EQ(subject.told[0].text, "disk.path names \"/x\"");
  EXPECT_EQ(subject.told[0].fix, "mount it");
}

TEST(DaemonNeeds, OfAWrongFileAreItsMistakes) {
  auto subject = read_needs("failure\tf.toml:3: unknown option\n");
  ASSERT_EQ(subject.told.size(), 1u);
  EXPECT_EQ(subject.told[0].state, health::failure);
  EXPECT_THAT(subject.told[0].fix, HasSubstr("terraced --check"));
  EXPECT_THAT(subject.sockets, IsEmpty());
}

TEST(DaemonNeeds, ComeFromTheProgramWithTheWordsAndVariablesItIsGiven) {
  auto asked = ask_daemon({.program = "/bin/echo", .words = {"--config", "f"}});
  ASSERT_TRUE(asked) << asked.error().text;
  EXPECT_THAT(asked->told, IsEmpty());
  auto missing = ask_daemon({.program = "/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text, HasSubstr("cannot be started"));
  auto failing = ask_daemon({.program = "/bin/false"});
  ASSERT_FALSE(failing);
  EXPECT_THAT(failing.error().text, HasSubstr("ended with 1"));
}

} // namespace daemon_needs_test
} // namespace terrace::cli
