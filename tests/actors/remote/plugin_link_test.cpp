// The link to a plugin, which is a process that does all that it should not, with a poll loop in place of the ring.
#include "link_fixture.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>

namespace terrace::actors {
namespace plugin_link_test {

using enum remote::command_result;

/// A variable of the environment, until the end of the scope.
class variable {
 public:
  variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~variable() { ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

class PluginLink : public test::link_fixture {
 protected:
  void SetUp() override { make(std::chrono::seconds(60)); }
  ~PluginLink() override { end(); }

  void make(std::chrono::nanoseconds silence_max) { link_ = make_plugin_link(callbacks(silence_max)); }
  void connect(const std::string& more = {}) { connect_to("plugin://faulty?path=" + folder_.path() + more); }
  void end() {
    link_fixture::end();
    EXPECT_TRUE(ring_.empty());
  }
  void restart() {
    end();
    fault("");
    connect();
    ASSERT_TRUE(link_->ready()) << failure_;
  }
  void fault(const std::string& what) { test::write_file(folder_ / "fault", what); }
  void fails_at_read() {
    std::string text(4, '\0');
    server().read(5, "a", bytes_in(text), {});
    EXPECT_FALSE(next());
  }

  test::temporary_folder folder_;
  variable path_{"PYTHONPATH", test::program("PLUGIN_PATH")};
};

TEST_F(PluginLink, IsReadyOnceThePluginSaysHello) {
  connect();
  EXPECT_TRUE(link_->ready() && link_->reached() && link_->secured() && !link_->refused()) << failure_;
  EXPECT_EQ(times_ready_, 1);
  EXPECT_EQ(server().server_name(), "faulty");
  EXPECT_EQ(server().server_version(), "of-tests");
}

TEST_F(PluginLink, MovesValuesIntoTheMemoryForThem) {
  connect();
  const std::string key = "terrace/t1/space/epoch/0.0/{abcdef}";
  std::string header(256, 'h'), payload(3 << 20, '\0');
  for (size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<char>(i * 31 + i / 251);
  server().write(7, key, bytes_in(header), bytes_in(payload), nullptr, std::chrono::seconds(0));
  auto written = next();
  ASSERT_TRUE(written) << failure_;
  EXPECT_EQ(written->tag, 7U);
  EXPECT_EQ(written->result, done) << written->why.text;
  std::string other_header(256, '\0'), other_payload(payload.size(), '\0');
  server().read(8, key, bytes_in(other_header), bytes_in(other_payload));
  EXPECT_EQ(result(), done);
  EXPECT_TRUE(other_header == header && other_payload == payload);
  for (size_t bytes : {payload.size() - 1, payload.size() + 1}) {
    std::string wrong(bytes, '\0');
    server().read(9, key, bytes_in(other_header), bytes_in(wrong));
    EXPECT_EQ(result(), wrong_length) << bytes;
    EXPECT_EQ(wrong, std::string(bytes, '\0'));
  }
  server().length(0, key);
  EXPECT_EQ(next()->number, static_cast<int64_t>(header.size() + payload.size()));
  EXPECT_FALSE(server().waits());
}

TEST_F(PluginLink, KnowsWhatIsThere) {
  connect();
  write("a", "text");
  server().exists(0, "a");
  EXPECT_EQ(result(), done);
  server().exists(0, "b");
  EXPECT_EQ(result(), absent);
  const std::array<std::string_view, 2> both{"a", "b"}, same{"a", "a"};
  server().exists(0, both);
  EXPECT_EQ(result(), absent);
  server().exists(0, same);
  EXPECT_EQ(result(), done);
  server().read_text(0, "a");
  EXPECT_EQ(next()->text, "text");
  server().read_text(0, "b");
  EXPECT_EQ(result(), absent);
  server().length(0, "b");
  auto none = next();
  EXPECT_EQ(none->result, done);
  EXPECT_EQ(none->number, 0);
  server().erase(0, "a");
  EXPECT_EQ(result(), done);
  server().exists(0, "a");
  EXPECT_EQ(result(), absent);
  server().info(0, "memory");
  EXPECT_EQ(next()->why.code, errc::unsupported);
  server().scan(0, "0", "t1/*", 10);
  EXPECT_EQ(next()->why.code, errc::unsupported);
}

TEST_F(PluginLink, WritesWhereNothingIs) {
  connect();
  server().write_text_if_absent(0, "token", "first");
  EXPECT_EQ(result(), done);
  server().write_text_if_absent(0, "token", "second");
  EXPECT_EQ(result(), absent);
  server().read_text(0, "token");
  EXPECT_EQ(next()->text, "first");
  write("large", std::string(remote::store_commands::text_bytes_max + 1, 'x'));
  server().read_text(0, "large");
  EXPECT_EQ(result(), wrong_length) << "it is no text";
}

TEST_F(PluginLink, FinishesManyCommandsInTheirOrder) {
  connect();
  constexpr size_t large = 6 << 20; // five fit into the buffer
  std::map<uint64_t, std::string> values;
  for (uint64_t tag = 1; tag <= 12; ++tag) {
    values[tag] = std::string(large, static_cast<char>('a' + tag));
    server().write(tag, "k" + std::to_string(tag), bytes_in(values[tag]), {}, nullptr,
                   std::chrono::seconds(0));
  }
  for (uint64_t tag = 13; tag <= 700; ++tag)
    server().exists(tag, "k" + std::to_string(tag - 12));
  std::vector<std::string> read(12, std::string(large, '\0'));
  for (uint64_t i = 1; i <= 12; ++i)
    server().read(700 + i, "k" + std::to_string(i), bytes_in(read[i - 1]), {});
  for (uint64_t tag = 1; tag <= 712; ++tag) {
    auto told = next();
    ASSERT_TRUE(told) << failure_;
    ASSERT_EQ(told->tag, tag);
    ASSERT_EQ(told->result, tag <= 24 || tag > 700 ? done : absent) << tag << told->why.text;
  }
  for (uint64_t i = 1; i <= 12; ++i)
    EXPECT_TRUE(read[i - 1] == values[i]) << i;
}

TEST_F(PluginLink, CommandsMayBeAskedForWhileOthersAreTold) {
  connect();
  write("a", "text");
  server().read_text(1, "a");
  server().exists(2, "a");
  auto first = next();
  server().exists(3, "b"); // before the second has finished
  EXPECT_EQ(first->text, "text");
  EXPECT_EQ(next()->tag, 2U);
  EXPECT_EQ(next()->result, absent);
}

// ---- what it should not do ----

TEST_F(PluginLink, ACrashEndsTheLinkAndThePluginIsStartedAgain) {
  connect();
  write("a", "text");
  fault("crash");
  fails_at_read();
  EXPECT_EQ(failure_, "the plugin faulty: it was ended by signal 9");
  EXPECT_FALSE(refused_);
  restart();
  server().read_text(0, "a");
  EXPECT_EQ(next()->text, "text");
  EXPECT_EQ(failures_, 1);
}

TEST_F(PluginLink, OneThatDoesNotAnswerIsKilled) {
  make(std::chrono::milliseconds(200));
  connect();
  write("a", "text");
  fault("hang");
  fails_at_read();
  EXPECT_EQ(failure_, "the plugin faulty: it does not answer");
  restart();
  server().exists(0, "a");
  EXPECT_EQ(result(), done);
}

TEST_F(PluginLink, OneThatClosesItsSocketIsKilled) {
  connect();
  write("a", "text");
  fault("close");
  fails_at_read();
  EXPECT_EQ(failure_, "the plugin faulty: it was ended by signal 9");
  restart();
}

TEST_F(PluginLink, GarbageEndsTheLink) {
  connect();
  write("a", "text");
  for (const char* how : {"garbage", "long"}) {
    fault(how);
    fails_at_read();
    EXPECT_NE(failure_.find("the plugin faulty: it sent "), std::string::npos) << failure_;
    restart();
  }
}

TEST_F(PluginLink, ShortAndLongAnswersAreWrongLengths) {
  connect();
  write("a", "text");
  for (const char* how : {"short", "liar"}) {
    fault(how);
    std::string text(4, '\0');
    server().read(5, "a", bytes_in(text), {});
    EXPECT_EQ(result(), wrong_length) << how;
    EXPECT_EQ(text, std::string(4, '\0')) << "nothing of it is copied";
    server().read_text(6, "a");
    EXPECT_EQ(next()->text, how == std::string_view("short") ? "tex" : "");
  }
}

TEST_F(PluginLink, WrongBytesComeAsTheyAre) {
  connect();
  write("a", "text");
  fault("wrong");
  std::string text(4, '\0');
  server().read(5, "a", bytes_in(text), {});
  EXPECT_EQ(result(), done) << "who has asked verifies them";
  EXPECT_NE(text, "text");
}

TEST_F(PluginLink, WhatFailsIsRefusedAndManyInARowEndTheLink) {
  connect();
  fault("raise");
  for (int i = 0; i < 4; ++i) {
    server().exists(0, "a");
    auto told = next();
    ASSERT_TRUE(told) << failure_;
    EXPECT_EQ(told->why.code, errc::busy);
    EXPECT_EQ(told->why.text, "the plugin faulty has failed: OSError: the store is on fire");
  }
  server().exists(0, "a");
  EXPECT_FALSE(next());
  EXPECT_NE(failure_.find("several requests in a row have failed; the last: OSError: the store is on fire"),
            std::string::npos)
      << failure_;
  restart();
}

TEST_F(PluginLink, TooFewAnswersAreAFailure) {
  connect();
  fault("few");
  server().exists(0, "a");
  EXPECT_EQ(next()->why.text, "the plugin faulty has failed: ValueError: 0 answers for 1 keys");
}

TEST_F(PluginLink, AFullStoreDoesNotEndTheLink) {
  connect();
  fault("full");
  for (int i = 0; i < 8; ++i) {
    server().write_text(0, "a", "text");
    auto told = next();
    ASSERT_TRUE(told) << failure_;
    EXPECT_EQ(told->why.code, errc::no_space);
    EXPECT_NE(told->why.text.find("the disk is full"), std::string::npos);
  }
  EXPECT_EQ(failures_, 0);
}

TEST_F(PluginLink, MayEndWhileThePluginIsBusy) {
  connect();
  write("a", "text");
  fault("hang");
  std::string text(4, '\0');
  server().read(5, "a", bytes_in(text), {});
  link_->pump(nullptr);
  end();
  EXPECT_EQ(text, std::string(4, '\0'));
  EXPECT_TRUE(told_.empty());
  fault("");
  connect();
  server().read(6, "a", bytes_in(text), {});
  EXPECT_EQ(result(), done);
  EXPECT_EQ(text, "text");
}

TEST_F(PluginLink, MayBeDestroyedWhileThePluginStarts) {
  link_->connect(remote::parse_store_address("plugin://faulty?path=" + folder_.path()).value(), {});
  make(std::chrono::seconds(60)); // operations of the former one end, and nobody is told
  ring_.next();                   // its socket and its process have ended
  ring_.next();
  ring_ = {}; // which leaves the time that it had
}

// ---- what cannot be used ----

TEST_F(PluginLink, AnEndBeforeTheGreetingTellsWhatToInstall) {
  connect("&greeting=crash");
  EXPECT_TRUE(failure_.starts_with("the plugin faulty: it ended with code 7; its own words are in the log"))
      << failure_;
  EXPECT_NE(failure_.find("pip install ./clients/python"), std::string::npos);
  EXPECT_TRUE(refused_) << "so it is tried less often";
  end();
  connect("&greeting=garbage");
  EXPECT_NE(failure_.find("it sent a message of another length"), std::string::npos) << failure_;
  end();
  connect("&greeting=close");
  EXPECT_NE(failure_.find("it was ended by signal 9"), std::string::npos) << failure_;
  restart();
}

TEST_F(PluginLink, OneThatIsNotThereIsToldWithTheFix) {
  connect_to("plugin://ceph");
  EXPECT_NE(failure_.find("there is no plugin ceph: expected fs, "), std::string::npos) << failure_;
  EXPECT_NE(failure_.find("PYTHONPATH"), std::string::npos) << failure_;
  EXPECT_TRUE(refused_);
  end();
  connect_to("plugin://fs?path=relative");
  EXPECT_NE(failure_.find("path \"relative\": expected the absolute path"), std::string::npos) << failure_;
  end();
  connect_to("plugin://fs?folder=/tmp");
  EXPECT_NE(failure_.find("folder"), std::string::npos) << failure_;
  end();
  connect("&greeting=refuse");
  EXPECT_NE(failure_.find("its options do not fit: there is no disk; \\x1b[31mbuy one"), std::string::npos)
      << failure_;
  end();
  connect_to("plugin://colorsys");
  EXPECT_NE(failure_.find("the module colorsys has no class Store"), std::string::npos) << failure_;
}

TEST_F(PluginLink, AnInterpreterThatIsNotThereIsToldWithTheFix) {
  variable python("TERRACE_PYTHON", folder_ / "no-python");
  connect();
  EXPECT_NE(failure_.find("cannot be started"), std::string::npos) << failure_;
  EXPECT_NE(failure_.find("TERRACE_PYTHON"), std::string::npos) << failure_;
  EXPECT_TRUE(refused_);
}

TEST_F(PluginLink, AMissingPackageIsToldWithTheFix) {
  variable path("PYTHONPATH", folder_.path());
  std::filesystem::create_directory(folder_.path() +
                                    "/terrace"); // which is found first, if another one is installed
  test::write_file(folder_.path() + "/terrace/__init__.py", "");
  connect();
  EXPECT_NE(failure_.find("it ended with code 1"), std::string::npos) << failure_;
  EXPECT_NE(failure_.find("pip install ./clients/python"), std::string::npos) << failure_;
  EXPECT_TRUE(refused_);
}

} // namespace plugin_link_test
} // namespace terrace::actors
