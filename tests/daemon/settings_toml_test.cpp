#include "daemon/settings_toml.hpp"

#include "daemon/settings_table.hpp"
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
  EXPECT_THAT(parsed->disk.path, ElementsAre("/home/engine/.local/state/terrace"));
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
pin_percent = "60"
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

TEST(SettingsToml, TheFixIsWhatWasMeantIfThatIsValid) {
  EXPECT_EQ(
      problems_of("[host]\nbytes = \"4GB\"\n"),
      "test.toml:2: host.bytes is \"4GB\", which has the unknown unit 'GB'; expected a size: bytes as a "
      "number, or a string with a unit such as \"64MiB\"; fix: write bytes = \"4GiB\"\n");
  EXPECT_THAT(problems_of("[disk]\nstall_after = \"90S\"\n"), HasSubstr("fix: write stall_after = \"90s\""));
  EXPECT_THAT(problems_of("[host]\nbytes = \"1KB\"\n"), HasSubstr("fix: write bytes = \"1GiB\""))
      << "1KiB is too little";
  EXPECT_THAT(problems_of("[host]\nallocator = \"paged:8MB\"\n"), HasSubstr("fix: write \"paged:8MiB\""));
  EXPECT_THAT(problems_of("[[quota]]\nname = \"a\"\ntenant = \"b\"\nhost_max = \"2GB\"\n"),
              HasSubstr("fix: write host_max = \"2GiB\""));
  EXPECT_THAT(problems_of("[[remote]]\naddress = 5\n"), HasSubstr("fix: write it in quotes"));
  for (const char* text : {"[host]\nbytes = \"4GB\"\n", "[disk]\nstall_after = \"90S\"\n"})
    EXPECT_EQ(problems_of(text).find("did you mean"), std::string::npos) << "said once\n"
                                                                         << problems_of(text);
}

TEST(SettingsToml, SaysWhatToUseInsteadOfAFormerOption) {
  EXPECT_EQ(problems_of("[disk]\nwrite_through = false\n"),
            "test.toml:2: option 'write_through' in [disk] exists no longer; expected an option of this "
            "section, see CHANGELOG.md; fix: write demotion = \"write_through\" instead of true, demotion "
            "= \"off\" instead of false\n");
  EXPECT_EQ(
      problems_of("[host]\nallocator = \"size_class\"\nallocation_queue = 9\nslot_bytes = 0\n"),
      "test.toml:3: option 'allocation_queue' in [host] exists no longer; expected an option of this "
      "section, see CHANGELOG.md; fix: remove it: 4096 requests of a trust group may wait for memory\n"
      "test.toml:4: option 'slot_bytes' in [host] exists no longer; expected an option of this section, "
      "see CHANGELOG.md; fix: write the size behind the allocator's name: allocator = "
      "\"paged:4MiB\"\n");
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
                    "[disk]\nstall_after = 60",
                    "[disk]\nstall_after = \"60\"",
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

TEST(SettingsToml, EveryFormerOptionIsNamedWithItsLineAndWhatToUseInstead) {
  for (const auto& former : former_options()) {
    const bool repeated =
        former.section == "listen" || former.section == "resp" || former.section == "remote";
    auto heading = (repeated ? "[[" : "[") + std::string(former.section) + (repeated ? "]]\n" : "]\n");
    auto said = problems_of(heading + std::string(former.key) + " = 1\n");
    EXPECT_THAT(said, HasSubstr("test.toml:2: option '" + std::string(former.key) + "' in [" +
                                std::string(former.section) + "] exists no longer"));
    EXPECT_THAT(said, HasSubstr("fix: " + std::string(former.instead)));
    for (const auto& spec : option_table())
      EXPECT_FALSE(spec.section == former.section && spec.key == former.key) << former.key;
  }
}

TEST(SettingsToml, AWrongValueIsNotReportedTwice) {
  // Without its value a tier would also lack a device.
  auto parsed = parse("[listen]\n[gpu]\ntier_bytes = \"1GB\"\ntier_device = 3\n");
  ASSERT_FALSE(parsed);
  std::vector<std::string> wrong;
  for (const auto& problem : parsed.error())
    wrong.push_back(problem.wrong.substr(0, problem.wrong.find(' ')));
  EXPECT_THAT(wrong, ElementsAre("'listen'", "gpu.tier_bytes", "gpu.tier_device"));
}

TEST(SettingsToml, APathOfTheDiskIsOneDirectoryOrSeveral) {
  EXPECT_THAT(parse("[disk]\npath = \"/a\"\n")->disk.path, ElementsAre("/a"));
  EXPECT_THAT(parse("[disk]\npath = [\"/a\", \"/b\"]\n")->disk.path, ElementsAre("/a", "/b"));
  EXPECT_THAT(problems_of("[disk]\npath = []\n"), HasSubstr("disk.path has 0 directories; expected 1 to 64"));
  EXPECT_THAT(problems_of("[disk]\npath = [3]\n"), HasSubstr("contains an element that is not a string"));
  EXPECT_THAT(problems_of("[disk]\npath = 3\n"),
              HasSubstr("disk.path is a whole number; expected an absolute "
                        "path in quotes, an array of them, or \"auto\""));
}

TEST(SettingsToml, APagedAllocatorHasTheSizeOfItsSlots) {
  EXPECT_TRUE(parse("[host]\nallocator = \"paged:4MiB\"\n"));
  EXPECT_EQ(problems_of("[host]\nallocator = \"paged\"\n"),
            "test.toml:2: host.allocator is \"paged\", without the size of its slots; expected a size behind "
            "\"paged\", and behind no other name; fix: write \"paged:4MiB\" with the size of your largest "
            "object, rounded up to 4KiB\n");
  EXPECT_THAT(problems_of("[host]\nallocator = \"buffer:4MiB\"\n"),
              HasSubstr("but only \"paged\" has slots"));
  EXPECT_THAT(problems_of("[host]\nallocator = \"paged:4MB\"\n"), HasSubstr("unknown unit 'MB'"));
  EXPECT_THAT(problems_of("[host]\nallocator = \"paged:0\"\n"), HasSubstr("whose size is 0"));
  EXPECT_THAT(problems_of("[disk]\nallocator = \"paged:5000\"\n"),
              HasSubstr("a multiple of 4KiB; fix: round it"));
  EXPECT_THAT(problems_of("[disk]\nallocator = \"paged:2GiB\"\n"), HasSubstr("4KiB to 1GiB"));
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
