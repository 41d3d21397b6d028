// The table of options, the commented file and the documentation say the same.
#include "daemon/settings_table.hpp"

#include "policy/eviction_policy.hpp"
#include "settings_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace terrace {
namespace {

using ::testing::Contains, ::testing::StartsWith;

std::string contents(const std::string& path) {
  std::ifstream file(TERRACE_SOURCE_ROOT "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The lines of each section, whose headings begin with `mark`.
std::map<std::string, std::vector<std::string>> by_section(const std::string& text, std::string_view mark) {
  std::map<std::string, std::vector<std::string>> sections;
  std::istringstream lines(text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(mark)) {
      section = line.substr(mark.size());
      while (section.starts_with('['))
        section = section.substr(1);
      section.erase(std::min(section.find(']'), section.size()));
    } else {
      sections[section].push_back(line);
    }
  }
  return sections;
}

/// As the commented file writes it: places and shares that depend on the machine are "auto".
std::string default_text(const option_spec& spec) {
  auto defaults = default_settings(test_environment());
  return spec.kind == option_kind::place ? "\"auto\"" : format_option(spec, defaults, 0);
}

TEST(CommentedFile, ParsesToTheDefaults) {
  auto parsed = load_settings(TERRACE_SOURCE_ROOT "/config/terraced.toml", test_environment());
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(*parsed, default_settings(test_environment()));
}

TEST(CommentedFile, HoldsEveryOptionWithItsDefaultBelowASentence) {
  auto sections = by_section(contents("config/terraced.toml"), "[");
  for (const auto& spec : option_table()) {
    const auto& lines = sections[std::string(spec.section)];
    auto wanted = std::string(spec.key) + " = " + default_text(spec);
    auto found = std::find(lines.begin(), lines.end(), wanted);
    ASSERT_NE(found, lines.end()) << "[" << spec.section << "] lacks the line: " << wanted;
    ASSERT_NE(found, lines.begin());
    auto comment = *std::prev(found);
    EXPECT_TRUE(comment.starts_with("# ") && comment.ends_with(".")) << wanted << " has no sentence above it";
    EXPECT_EQ(comment.find("(run time)") != std::string::npos, spec.at_run_time) << wanted << ": " << comment;
  }
}

TEST(Documentation, TellsEveryOptionItsDefaultAndWhenItApplies) {
  auto sections = by_section(contents("docs/configuration.md"), "## ");
  for (const auto& spec : option_table()) {
    auto row = "| `" + std::string(spec.key) + "` |";
    const auto& lines = sections[std::string(spec.section)];
    auto found = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.starts_with(row); });
    ASSERT_NE(found, lines.end()) << "docs/configuration.md, [" << spec.section << "] lacks a row " << row;
    EXPECT_NE(found->find("| `" + default_text(spec) + "` |"), std::string::npos) << *found;
    EXPECT_NE(found->find(spec.at_run_time ? "| yes |" : "| no |"), std::string::npos) << *found;
  }
}

TEST(Documentation, ListsEveryPolicyWhereverOneIsNamed) {
  std::string list;
  for (auto name : eviction_policy_names()) {
    EXPECT_NE(contents("docs/policies.md").find("\n| `" + std::string(name) + "` |"), std::string::npos)
        << name;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  auto documented = by_section(contents("docs/configuration.md"), "## ");
  auto commented = by_section(contents("config/terraced.toml"), "[");
  for (auto section : {"host", "disk"}) {
    EXPECT_THAT(documented[section], Contains(StartsWith("| `policy` | name | `\"kmg\"` | " + list + " |")));
    EXPECT_THAT(commented[section], Contains("# (run time) Eviction policy: " + list + "."));
  }
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

TEST(OptionTable, NamesEachOptionOnceAndInAKnownSection) {
  std::set<std::string> names;
  for (const auto& spec : option_table()) {
    EXPECT_TRUE(names.insert(option_name(spec, 0)).second) << option_name(spec, 0);
    auto sections = section_names();
    EXPECT_NE(std::find(sections.begin(), sections.end(), spec.section), sections.end()) << spec.section;
    EXPECT_FALSE(describe(spec.kind).empty());
  }
}

} // namespace
} // namespace terrace
