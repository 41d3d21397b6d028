// The table of options, the commented file and the documentation say the same.
#include "daemon/settings_table.hpp"

#include "policy/eviction_policy.hpp"
#include "settings_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace terrace {
namespace {

using ::testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream file(TERRACE_SOURCE_ROOT "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* how = "run tools/write_options.py, which writes it from src/daemon/options.def";

TEST(CommentedFile, ParsesToTheDefaults) {
  auto parsed = load_settings(TERRACE_SOURCE_ROOT "/config/terraced.toml", test_environment());
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(*parsed, default_settings(test_environment()));
}

TEST(CommentedFile, IsWrittenFromTheTable) {
  EXPECT_EQ(contents("config/terraced.toml"), commented_configuration()) << how;
}

TEST(Documentation, HasTheTableOfEverySection) {
  auto text = contents("docs/configuration.md");
  for (const auto& section : option_sections()) {
    auto heading = (section.repeated ? "\n## [[" : "\n## [") + std::string(section.name) + "]";
    auto at = text.find(heading);
    ASSERT_NE(at, std::string::npos) << heading;
    auto end = text.find("\n## ", at + 1);
    EXPECT_THAT(text.substr(at, end - at), HasSubstr("\n" + documented_options(section.name))) << how;
  }
}

TEST(Documentation, SaysWhatToUseInsteadOfOptionsThatWent) {
  EXPECT_THAT(contents("CHANGELOG.md"), HasSubstr("\n## Options that went\n"));
  EXPECT_THAT(contents("CHANGELOG.md"), HasSubstr("\n" + documented_former_options())) << how;
}

TEST(Documentation, ListsEveryPolicy) {
  for (auto name : eviction_policy_names())
    EXPECT_THAT(contents("docs/policies.md"), HasSubstr("\n| `" + std::string(name) + "` |"));
}

TEST(Documentation, ItsExamplesAreValid) {
  auto text = contents("docs/configuration.md");
  size_t examples = 0;
  for (size_t at = 0; (at = text.find("```toml\n", at)) != std::string::npos; ++examples) {
    at += 8;
    auto example = text.substr(at, text.find("```", at) - at);
    EXPECT_EQ(problems_of(example), "") << example;
  }
  EXPECT_GE(examples, 2u);
}

TEST(OptionTable, NamesEachOptionOnceInAKnownSectionAndExplainsIt) {
  std::set<std::string> names;
  for (const auto& spec : option_table()) {
    EXPECT_TRUE(names.insert(option_name(spec, 0)).second) << option_name(spec, 0);
    auto sections = option_sections();
    EXPECT_TRUE(std::any_of(sections.begin(), sections.end(), [&](const auto& s) {
      return s.name == spec.section;
    })) << spec.section;
    EXPECT_FALSE(describe(spec.kind).empty());
    EXPECT_TRUE(spec.help.ends_with('.') || spec.help.ends_with('?')) << option_name(spec, 0);
    EXPECT_EQ(spec.help.find(". "), std::string::npos) << option_name(spec, 0) << ": help is one sentence";
    EXPECT_TRUE(spec.more.empty() || spec.more.ends_with('.')) << option_name(spec, 0);
    EXPECT_EQ(spec.more.find('|'), std::string::npos) << option_name(spec, 0) << ": a cell of a table";
  }
}

TEST(OptionTable, HasNoMoreOptionsThanAnOperatorCanRead) {
  EXPECT_LE(option_table().size(), 77u) << "derive it from another option, or see what may go";
}

} // namespace
} // namespace terrace
