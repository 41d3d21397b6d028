#include "daemon/settings_toml.hpp"

#include "settings_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(SettingsToml, AnEmptyFileMeansTheDefaults) {
  auto parsed = parse("");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(*parsed, default_settings(test_environment()));
}

TEST(SettingsToml, ReadsEveryKindOfValue) {
  auto parsed = parse(R"(
[daemon]
workers = 3
log_json = true
shutdown_grace = "250ms"
[[listen]]
path = "/run/a.sock"
mode = "0660"
uids = [0, 1000]
[host]
bytes = 1073741824
segment_bytes = "512MiB"
policy = "fifo"
[shadow]
policies = ["lru", "arc"]
capacity_percents = [50, 200]
)");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->daemon.workers, 3u);
  EXPECT_TRUE(parsed->daemon.log_json);
  EXPECT_EQ(parsed->daemon.shutdown_grace, 250ms);
  EXPECT_EQ(parsed->listen.at(0).mode, 0660u);
  EXPECT_THAT(parsed->listen.at(0).uids, ElementsAre(0, 1000));
  EXPECT_EQ(parsed->host.bytes, gibibyte);
  EXPECT_EQ(parsed->host.segment_bytes, 512 * mebibyte);
  EXPECT_EQ(parsed->host.policy, "fifo");
  EXPECT_THAT(parsed->shadow.policies, ElementsAre("lru", "arc"));
  EXPECT_THAT(parsed->shadow.capacity_percents, ElementsAre(50, 200));
}

TEST(SettingsToml, AutoStandsForTheEnvironmentsPlaces) {
  auto parsed = parse("[[listen]]\npath = \"auto\"\nhost_bytes = \"auto\"\n[disk]\npath = \"auto\"\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->listen.at(0).path, "/run/user/1000/terrace.sock");
  EXPECT_EQ(parsed->disk.path, "/home/engine/.local/state/terrace");
}

TEST(SettingsToml, ListensOfTheFileReplaceTheDefaultOne) {
  auto parsed = parse("[[listen]]\npath = \"/a\"\n[[listen]]\npath = \"/b\"\ngroup = \"b\"\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  ASSERT_EQ(parsed->listen.size(), 2u);
  EXPECT_EQ(parsed->listen[1].group, "b");
}

TEST(SettingsToml, NamesEveryMistakeAtOnceInTheOrderOfLines) {
  auto parsed = parse(R"([host]
bytes = "4GB"
polcy = "lru"
depth = 3
[daemon]
worker = 2
log_level = "loud"
[disk]
allocator = "paged"
[metrix]
[lease]
warn_after = 60
)");
  ASSERT_FALSE(parsed);
  std::vector<uint32_t> lines;
  for (const auto& problem : parsed.error())
    lines.push_back(problem.line);
  EXPECT_THAT(lines, ElementsAre(2, 3, 4, 6, 7, 9, 10, 12)) << render_problems(parsed.error());
}

TEST(SettingsToml, SaysWhatIsWrongWhatWasExpectedAndTheFix) {
  EXPECT_EQ(problems_of("[daemon]\n\nworker = 2\n"),
            "test.toml:3: unknown option 'worker' in [daemon]; expected an option of this section, see "
            "docs/configuration.md; fix: did you mean 'workers'?\n");
  EXPECT_EQ(problems_of("[copier]\nthreads = \"many\"\n"),
            "test.toml:2: copier.threads is a string; expected a whole number that is not negative, without "
            "quotes; "
            "fix: write threads = 0\n");
  EXPECT_EQ(problems_of("[disk]\ndepth = 0\n"),
            "test.toml:2: disk.depth is 0; expected 1 to 1024; fix: raise it\n");
}

TEST(SettingsToml, SaysWhatReplacesAFormerOption) {
  EXPECT_EQ(problems_of("[disk]\nwrite_through = false\n"),
            "test.toml:2: option 'write_through' in [disk] has been replaced by 'demotion'; expected the "
            "option that replaces it, see docs/configuration.md; fix: write demotion = \"write_through\" "
            "instead of true, demotion = \"off\" instead of false\n");
  EXPECT_THAT(problems_of("[disk]\ndemotion = \"later\"\n"), HasSubstr("disk.demotion is \"later\""));
}

TEST(SettingsToml, GuessesSectionsAndMisplacedOptions) {
  EXPECT_THAT(problems_of("[hots]\n"), HasSubstr("did you mean [host]?"));
  EXPECT_THAT(problems_of("[host]\ndepth = 3\n"), HasSubstr("move it to [disk], which has such an option"));
  EXPECT_THAT(problems_of("workers = 3\n"), HasSubstr("move it below [daemon]"));
  EXPECT_THAT(problems_of("[frobnicate]\n"), HasSubstr("fix: remove it"));
}

TEST(SettingsToml, RefusesWrongTypesEverywhere) {
  for (auto text : {"daemon = 3",
                    "[[daemon]]",
                    "listen = 3",
                    "[listen]",
                    "listen = [1]",
                    "[daemon]\nworkers = 1.5",
                    "[daemon]\nworkers = -1",
                    "[daemon]\nworkers = 4294967296",
                    "[daemon]\nlog_level = 3",
                    "[daemon]\nlog_json = \"true\"",
                    "[daemon]\nlog_json = 1",
                    "[host]\nbytes = true",
                    "[host]\nbytes = -4096",
                    "[host]\nbytes = \"1 GB\"",
                    "[host]\nbytes = 1979-05-27",
                    "[lease]\nwarn_after = 60",
                    "[lease]\nwarn_after = \"60\"",
                    "[[listen]]\nmode = 600",
                    "[[listen]]\nmode = \"0999\"",
                    "[[listen]]\nuids = 3",
                    "[[listen]]\nuids = [\"root\"]",
                    "[[listen]]\nuids = [-1]",
                    "[[listen]]\nhost_bytes = \"half\"",
                    "[shadow]\npolicies = \"lru\"",
                    "[shadow]\npolicies = [3]",
                    "[shadow]\ncapacity_percents = [\"half\"]",
                    "[host]\nbytes = {}"})
    EXPECT_THAT(problems_of(text), HasSubstr("; fix: ")) << text;
}

TEST(SettingsToml, AWrongValueIsNotReportedTwice) {
  auto text = "[host]\nallocator = \"paged\"\nslot_bytes = \"4 MB\"\n";
  auto parsed = parse(text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error()[0].line, 2u);
  for (const auto& problem : parsed.error())
    EXPECT_NE(problem.wrong, "host.slot_bytes is 0");
}

TEST(SettingsToml, AContradictionStandsAtTheLineThatMakesIt) {
  EXPECT_EQ(problems_of("[[listen]]\npath = \"/a\"\n[[listen]]\ngroup = \"b\"\npath = \"/a\"\n"),
            "test.toml:5: listen[1].path is \"/a\", as is that of listen[0]; expected a different path per "
            "socket; fix: change one of the two paths\n");
}

TEST(SettingsToml, AnOptionThatIsNotWrittenIsReportedAtItsSection) {
  EXPECT_THAT(
      problems_of(
          "\n[[listen]]\npath = \"/a\"\n[[listen]]\n# no path, no group: as the default\n[[listen]]\n"),
      HasSubstr("test.toml:6: listen[2].path is"));
}

TEST(SettingsToml, ASyntaxErrorHasItsLine) {
  EXPECT_THAT(problems_of("[daemon]\nworkers = = 3\n"), HasSubstr("test.toml:2: this is not TOML: "));
  EXPECT_THAT(problems_of("[daemon]\nworkers = 3\nworkers = 4\n"),
              HasSubstr("test.toml:3: this is not TOML: "));
}

TEST(SettingsToml, MessagesHoldNoControlCharacters) {
  auto text =
      problems_of("[daemon]\n\"\\u001b[31m\" = 3\nlog_level = \"\\u0007\\n\"\n[host]\nbytes = \"1\\tMiB\"\n");
  for (char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST(SettingsToml, RefusesAFileThatCannotBeASettingsFile) {
  EXPECT_THAT(problems_of(std::string(settings_text_max + 1, '#')), HasSubstr("at most 1048576"));
}

TEST(LoadSettings, SaysWhyAFileCannotBeRead) {
  auto loaded = load_settings("/nonexistent/terraced.toml", test_environment());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(
      render_problems(loaded.error()),
      "/nonexistent/terraced.toml: the file cannot be read: No such file or directory; expected a readable "
      "file; fix: check the path and its permissions\n");
  EXPECT_FALSE(load_settings("/", test_environment()));
}

TEST(LoadSettings, ReadsAFile) {
  auto path = ::testing::TempDir() + "terrace_settings_test.toml";
  std::ofstream(path) << "[daemon]\nworkers = 7\n";
  auto loaded = load_settings(path, test_environment());
  ASSERT_TRUE(loaded) << render_problems(loaded.error());
  EXPECT_EQ(loaded->daemon.workers, 7u);
}

} // namespace
} // namespace terrace
