#include "bench/report.hpp"

#include "bench/machine_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace::bench {
namespace {

run_report sample_report() {
  run_report report;
  report.facts = {{"kernel", "Linux 1.2"}, {"processor", "The \"fast\" one"}};
  report.figures = {
      {"lookup_latency",
       {.name = "p50",
        .unit = "us",
        .value = 60,
        .limit = 50,
        .floor = 1.35,
        .aim = 1.15,
        .rounds = 5,
        .spread = 0.02}},
      {"imbalance",
       {.name = "p99",
        .unit = "us",
        .value = 100,
        .limit = 50,
        .floor = 2.1,
        .aim = 1.5,
        .rounds = 5,
        .spread = 0.5}},
      {"scaling", {.name = "lookups", .unit = "1/s", .value = 1234567.8, .rounds = 5, .bounded = false}}};
  return report;
}

TEST(Report, JsonHasTheFactsAndEveryFigureWithItsBenchmark) {
  auto json = to_report_json(sample_report());
  EXPECT_TRUE(json.starts_with(
      "{\"facts\":{\"kernel\":\"Linux 1.2\",\"processor\":\"The \\\"fast\\\" one\"},\n\"figures\":[\n"
      "{\"benchmark\":\"lookup_latency\",\"name\":\"p50\",\"value\":60.000,"))
      << json;
  EXPECT_EQ(std::ranges::count(json, '{'), std::ranges::count(json, '}'));
  EXPECT_NE(json.find(",\n{\"benchmark\":\"imbalance\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"reached\":\"undecided\""), std::string::npos) << json;
  EXPECT_TRUE(json.ends_with("}\n]}\n")) << json;
}

TEST(Report, MarkdownIsAListOfFactsATableAndACount) {
  EXPECT_EQ(to_report_markdown(sample_report()),
            "- kernel: Linux 1.2\n"
            "- processor: The \"fast\" one\n"
            "\n"
            "| figure | Terrace | limit | unit | ratio ± spread | floor, aim | reached | benchmark |\n"
            "|---|---|---|---|---|---|---|---|\n"
            "| p50 | 60 | 50 | us | 1.2 ± 0.02 | 1.35, 1.15 | floor | `lookup_latency` |\n"
            "| p99 | 100 | 50 | us | 2 ± 0.5 | 2.1, 1.5 | undecided | `imbalance` |\n"
            "| lookups | 1,234,568 |  | 1/s |  |  |  | `scaling` |\n"
            "\n"
            "0 reach their aim, 1 their floor, 0 are below it, 1 are undecided; 1 have no bound.\n");
}

TEST(Report, ATextCannotEndItsCell) {
  run_report report;
  report.figures = {{"x", {.name = "a|b", .unit = "us", .bounded = false}}};
  EXPECT_NE(to_report_markdown(report).find("| a\\|b |"), std::string::npos);
}

TEST(MachineFacts, NameTheKernelAndNothingEmpty) {
  auto facts = machine_facts("/tmp", "/nobody/has/terraced");
  auto named = [&](std::string_view name) {
    return std::ranges::any_of(facts, [&](const fact& each) { return each.name == name; });
  };
  EXPECT_TRUE(named("kernel"));
  EXPECT_TRUE(named("processors"));
  EXPECT_FALSE(named("daemon")) << "there is none to ask";
  EXPECT_TRUE(std::ranges::none_of(facts, [](const fact& each) { return each.value.empty(); }));
  EXPECT_EQ(std::ranges::count(load_averages(), ' '), 2);
}

} // namespace
} // namespace terrace::bench
