// Mistakes in a configuration: at start, with --check, and when it is read again.
#include "workload.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <regex>

namespace terrace::e2e {
namespace configuration_test {

ended_program terraced(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("TERRACED"));
  return run(arguments);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Configuration, AFileThatAnEditorTruncatedChangesNothingAtHangUp) {
  daemon_under_test daemon;
  for (const char* text : {"", "\n \n"}) {
    write_file(daemon.configuration_path(), text);
    daemon.signal(SIGHUP);
    ASSERT_TRUE(daemon.await_log("the configuration was not reloaded"));
    ASSERT_TRUE(daemon.await_log("the file is empty"));
  }
  EXPECT_EQ(tester(daemon.socket()).tier("host").capacity_bytes, 32 * mebibyte);
}

TEST(Configuration, AnEmptyFileOrNameIsAMistakeAndNotTheDefaults) {
  temporary_folder folder;
  write_file(folder / "empty.toml", "");
  auto file = terraced({"--check", "--config", folder / "empty.toml"});
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_TRUE(has(file.err, "empty.toml:1: the file is empty")) << file.err;
  auto name = terraced({"--check", "--config", ""});
  EXPECT_EQ(name.exit_code, 2);
  EXPECT_TRUE(has(name.err, "--config is given an empty value")) << name.err;
  write_file(folder / "comment.toml", "# the defaults\n");
  EXPECT_TRUE(has(terraced({"--check", "--config", folder / "comment.toml"}).out, "is valid"));
}

TEST(Configuration, WhatIsPrintedIsAFileWithTheDefaults) {
  temporary_folder folder;
  auto printed = terraced({"--print-config"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_TRUE(has(printed.out, "\n[host]\n")) << printed.out;
  write_file(folder / "printed.toml", printed.out);
  auto checked = terraced({"--check", "--config", folder / "printed.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

TEST(Configuration, ADirectoryThatIsMissingIsNamedAndNeverMade) {
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte});
  ASSERT_EQ(daemon.terminate(), 0);
  std::filesystem::remove_all(daemon.state());
  auto checked = terraced({"--check", "--config", daemon.configuration_path()});
  EXPECT_EQ(checked.exit_code, 0) << "the daemon starts, as follows";
  EXPECT_TRUE(has(checked.err, "warning: disk.path names \"" + daemon.state() + "\", which does not exist"))
      << checked.err;
  daemon.start();
  ASSERT_TRUE(daemon.await_log("the disk tier of group default is off: " + daemon.state()));
  ASSERT_TRUE(daemon.await_log("does not exist"));
  tester client(daemon.socket());
  EXPECT_EQ(client.store(chain_of(1, 1)), 1U);
  EXPECT_TRUE(has(client.tier("disk").reason, "does not exist"));
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon.state()));

  for (std::vector<std::string> words : {std::vector<std::string>{}, {"--check"}}) {
    words.insert(words.end(), {"--state-dir", daemon.state(), "--socket", daemon.socket()});
    auto refused = terraced(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(has(refused.err, "--state-dir names \"" + daemon.state())) << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(daemon.state()));
}

TEST(Configuration, AMissingDirectoryAmongOthersIsReportedAndNoReasonNotToStart) {
  temporary_folder folder;
  write_file(folder / "some.toml",
             "[disk]\npath = [\"" + folder.path() + "\", \"" + folder.path() + "/absent\"]\n");
  auto checked = terraced({"--check", "--config", folder / "some.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(has(checked.err, "/absent\", which does not exist")) << checked.err;
}

TEST(Configuration, WhatTheCommandLineOverridesIsNamedAsItIsThere) {
  for (std::vector<std::string> words : {std::vector<std::string>{}, {"--check"}}) {
    words.insert(words.end(), {"--socket", "d/s", "--state-dir", "d", "--metrics", "here"});
    auto refused = terraced(words);
    EXPECT_EQ(refused.exit_code, 2);
    for (const char* option : {"--socket ", "--state-dir ", "--metrics "})
      EXPECT_TRUE(has("\n" + refused.err, "\n" + std::string(option))) << refused.err;
    EXPECT_FALSE(has(refused.err, "listen.path")) << refused.err;
  }
}

/// A daemon with a disk of 64 MiB that has 40 objects of a MiB.
struct ASmallerDisk : ::testing::Test {
  static daemon_options of(uint64_t bytes) {
    return {.disk_bytes = bytes, .disk = "admission = \"always\"\n"};
  }
  daemon_under_test daemon{of(64 * mebibyte)};

  void SetUp() override {
    ASSERT_TRUE(daemon.await_log("joined"));
    tester client(daemon.socket());
    for (uint64_t seed = 1; seed <= 5; ++seed)
      ASSERT_EQ(client.store(chain_of(seed, 8)), 8U);
    ASSERT_TRUE(eventually([&] { return client.tier("disk").objects == 40; }));
  }
  std::string file() const { return daemon.state() + "/terrace.extents"; }
  /// What --check says of a disk with this size; it finds no mistake.
  std::string checked(uint64_t bytes) {
    daemon.configure(of(bytes));
    auto ended = terraced({"--check", "--config", daemon.configuration_path()});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(has(ended.out, "is valid")) << ended.out;
    return std::regex_replace(ended.err, std::regex("warning: listen.path [^\n]*\n"), ""); // it runs
  }
};

TEST_F(ASmallerDisk, IsForetoldByACheckThatOnlyReads) {
  std::string in_use = checked(32 * mebibyte);
  EXPECT_TRUE(has(in_use, file() + ": disk.bytes makes this file smaller, 32.0 MiB instead of 64.0 MiB"))
      << in_use;
  EXPECT_TRUE(has(in_use, " of its 40 objects, which lie behind the new end: `terrace disk resize " + file() +
                              " 33554432`"))
      << in_use;
  EXPECT_EQ(checked(64 * mebibyte), "");
  EXPECT_EQ(checked(96 * mebibyte), "");
  tester client(daemon.socket());
  EXPECT_EQ(client.load_and_check(chain_of(5, 8)), 8U) << "the daemon has noticed nothing";
  EXPECT_EQ(client.tier("disk").state, "ready");
  ASSERT_EQ(daemon.terminate(), 0);

  std::string before = read_file(file());
  EXPECT_EQ(checked(32 * mebibyte), in_use);
  EXPECT_TRUE(read_file(file()) == before);
  EXPECT_TRUE(has(checked(mebibyte), "forgets 40 of its 40 objects: its index would take too much of it"));
  EXPECT_TRUE(read_file(file()) == before);

  std::string forgets = "forgets ";
  std::string lost = in_use.substr(in_use.find(forgets) + forgets.size());
  lost.resize(lost.find(' '));
  EXPECT_GE(std::stoul(lost), 8U);
  checked(32 * mebibyte);
  daemon.start();
  EXPECT_TRUE(daemon.await_log(lost + " objects were beyond its new end and are lost"));
}

TEST_F(ASmallerDisk, IsNothingToACheckIfTheFileIsNoVolume) {
  ASSERT_EQ(daemon.terminate(), 0);
  std::filesystem::remove(file());
  EXPECT_EQ(checked(32 * mebibyte), "") << "there is none";
  write_file(file(), std::string(128 << 10, 'x'));
  EXPECT_EQ(checked(32 * mebibyte), "") << "the start refuses it";
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(checked(32 * mebibyte), "") << "nobody waits for a writer";
  daemon.is_not_checked();
}

TEST(Configuration, AFileOfARunningDaemonIsCheckedWithAWarningOfIt) {
  daemon_under_test daemon;
  auto checked = terraced({"--check", "--config", daemon.configuration_path()});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(has(checked.err,
                  "warning: listen.path is \"" + daemon.socket() + "\", where a daemon listens (process "))
      << checked.err;
  ASSERT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(terraced({"--check", "--config", daemon.configuration_path()}).err, "");
}

ended_program doctor(std::vector<std::string> words) {
  std::vector<std::string> all{"/usr/bin/env"};
  while (!words.empty() && has(words.front(), "=")) {
    all.push_back(words.front());
    words.erase(words.begin());
  }
  all.insert(all.end(), {program("TERRACE"), "doctor", "--no-disk-probe", "--terraced", program("TERRACED")});
  all.insert(all.end(), words.begin(), words.end());
  return run(all);
}

TEST(Doctor, HasTheVerdictOfTheDaemon) {
  temporary_folder folder;
  auto checked = [&](const std::string& text) {
    write_file(folder / "some.toml", "[metrics]\naddress = \"\"\n" + text);
    return doctor({"--config", folder / "some.toml"});
  };
  const std::string listen = "[[listen]]\npath = \"" + folder.path();
  auto starts = checked(listen + "/terrace.sock\"\n[disk]\npath = \"" + folder.path() + "/absent\"\n");
  EXPECT_EQ(starts.exit_code, 0) << starts.out;
  EXPECT_TRUE(has(starts.out, "the daemon starts with the disk tier off")) << starts.out;
  EXPECT_TRUE(has(starts.out, "the daemon can start, ")) << starts.out;
  EXPECT_FALSE(has(starts.out, "space on")) << "nothing is told twice: " << starts.out;
  auto without_folder = checked(listen + "/absent/terrace.sock\"\n[disk]\nbytes = 0\n");
  EXPECT_EQ(without_folder.exit_code, 1) << without_folder.out;
  EXPECT_TRUE(has(without_folder.out, "1 to fix before the daemon can start")) << without_folder.out;
  auto unknown = checked("[disk]\nsize = 4\n");
  EXPECT_EQ(unknown.exit_code, 1) << unknown.out;
  EXPECT_TRUE(has(unknown.out, "some.toml:4: ")) << unknown.out;
}

TEST(Doctor, FindsNothingToFixBeforeAFirstStartWithTheDefaults) {
  temporary_folder folder;
  const std::vector<std::string> fresh{"STATE_DIRECTORY=" + folder.path() + "/state",
                                       "RUNTIME_DIRECTORY=" + folder.path() + "/run"};
  write_file(folder / "some.toml", "[metrics]\naddress = \"\"\n[host]\nbytes = \"32MiB\"\n");
  auto ended = doctor({fresh[0], fresh[1], "--config", folder / "some.toml"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  EXPECT_TRUE(has(ended.out, "disk " + folder.path() + "/state: the daemon makes it")) << ended.out;
  EXPECT_TRUE(
      has(ended.out, "socket " + folder.path() + "/run/terrace.sock: no daemon answers; it can be made"))
      << ended.out;
  auto elsewhere =
      doctor({fresh[0], fresh[1], "--config", folder / "some.toml", "--state-dir", folder.path()});
  EXPECT_TRUE(has(elsewhere.out, "disk " + folder.path() + ": ")) << elsewhere.out;
}

TEST(Configuration, TwoSpellingsOfOneDirectoryAreFound) {
  temporary_folder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  write_file(folder / "two.toml",
             "[disk]\npath = [\"" + folder.path() + "/a\", \"" + folder.path() + "/link\"]\n");
  for (bool check : {true, false}) {
    auto words = std::vector<std::string>{"--config", folder / "two.toml"};
    if (check)
      words.push_back("--check");
    auto ended = terraced(words);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(has(ended.err, "names one directory twice")) << ended.err;
  }
}

/// Checks that every line is a JSON object with a level and a message.
void expect_json(const std::string& lines, const std::string& part) {
  EXPECT_TRUE(has(lines, part)) << lines;
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) {
    EXPECT_EQ(line.front(), '{') << line;
    EXPECT_EQ(line.back(), '}') << line;
    EXPECT_TRUE(has(line, "\"level\":\"") && has(line, "\"message\":\"")) << line;
  }
}

TEST(Configuration, LinesOfTheLogSayTheirTimeZone) {
  temporary_folder folder;
  write_file(folder / "taken", "text");
  write_file(folder / "taken.toml", "[metrics]\naddress = \"\"\n[[listen]]\npath = \"" + folder.path() +
                                        "/taken\"\n[disk]\nbytes = 0\n");
  auto ended = terraced({"--config", folder / "taken.toml"});
  EXPECT_EQ(ended.exit_code, 1);
  const std::regex begin("^[0-9-]+ [0-9:.]+[+-][0-9][0-9]:[0-9][0-9] [a-z]+ ");
  EXPECT_TRUE(std::regex_search(ended.err, begin)) << ended.err;
}

TEST(Configuration, TheLastLinesOfADaemonThatLogsJsonAreJson) {
  temporary_folder folder;
  std::string json = "[daemon]\nlog_json = true\n[metrics]\naddress = \"\"\n[[listen]]\npath = \"";
  write_file(folder / "precious", "text");
  write_file(folder / "taken.toml", json + folder.path() + "/precious\"\n[disk]\nbytes = 0\n");
  auto taken = terraced({"--config", folder / "taken.toml"});
  EXPECT_EQ(taken.exit_code, 1);
  expect_json(taken.err, "is not a socket");
  EXPECT_TRUE(has(taken.err, "\"level\":\"critical\"")) << taken.err;
  EXPECT_EQ(read_file(folder / "precious"), "text") << "what is no socket is left alone";

  write_file(folder / "wrong.toml", json + folder.path() + "/s\"\n[host]\ncolour = 1\nbytes = \"many\"\n");
  auto wrong = terraced({"--config", folder / "wrong.toml"});
  EXPECT_EQ(wrong.exit_code, 2);
  expect_json(wrong.err, "colour");
  expect_json(wrong.err, "many");
}

} // namespace configuration_test
} // namespace terrace::e2e
