#include "cli/simulate/line_plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

namespace terrace::simulate {
namespace {

/// Returns the first XML error of the document: tags must nest, attributes must be quoted, and text must not
/// contain a bare '<' or '&'.
std::optional<std::string> malformed(const std::string& xml) {
  static const std::regex tag(R"(<(/?)([A-Za-z][\w:.-]*)((?:\s+[\w:.-]+="[^"<]*")*)\s*(/?)>)");
  static const std::regex entity("&(amp|lt|gt|quot|apos);");
  std::vector<std::string> open;
  size_t at = xml.starts_with("<?xml") ? xml.find("?>") + 2 : 0;
  size_t roots = 0;
  while (at < xml.size()) {
    if (xml[at] == '<') {
      std::smatch found;
      if (!std::regex_search(xml.begin() + static_cast<ptrdiff_t>(at), xml.end(), found, tag,
                             std::regex_constants::match_continuous))
        return "no tag at: " + xml.substr(at, 60);
      if (found[1].length() != 0) {
        if (open.empty() || open.back() != found[2])
          return "closes what is not open: " + found.str();
        open.pop_back();
      } else {
        roots += open.empty();
        if (found[4].length() == 0)
          open.push_back(found[2]);
      }
      at += static_cast<size_t>(found.length());
      continue;
    }
    if (xml[at] == '&' && !std::regex_search(xml.begin() + static_cast<ptrdiff_t>(at), xml.end(), entity,
                                             std::regex_constants::match_continuous))
      return "a bare & at: " + xml.substr(at, 60);
    if (static_cast<unsigned char>(xml[at]) < 0x20 && xml[at] != '\n')
      return "a control character";
    if (open.empty() && std::isspace(static_cast<unsigned char>(xml[at])) == 0)
      return "text outside: " + xml.substr(at, 60);
    ++at;
  }
  if (!open.empty())
    return "never closed: " + open.back();
  return roots == 1 ? std::nullopt : std::optional<std::string>("not one root");
}

line_plot small_plot() {
  return {.title = "Hits",
          .subtitle = "a trace",
          .x_title = "capacity",
          .y_title = "hit ratio",
          .ticks = {{1, "1 %"}, {10, "10 %"}, {100, "100 %"}},
          .lines = {{"lru", line_style::plain, {0.1, 0.2, 0.4}},
                    {"kmg", line_style::strong, {0.2, 0.3, 0.4}},
                    {"Belady", line_style::bound, {0.3, 0.4, 0.4}}}};
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(LinePlot, IsWellFormed) { EXPECT_EQ(malformed(to_svg(small_plot())), std::nullopt); }

TEST(LinePlot, TheCheckOfFormSeesFaults) {
  EXPECT_NE(malformed("<a><b></a></b>"), std::nullopt);
  EXPECT_NE(malformed("<a>x & y</a>"), std::nullopt);
  EXPECT_NE(malformed("<a>"), std::nullopt);
  EXPECT_NE(malformed("<a b=1/>"), std::nullopt);
}

TEST(LinePlot, DrawsEachLineWithItsNameAndItsValues) {
  std::string svg = to_svg(small_plot());
  EXPECT_EQ(count(svg, "<polyline"), 3U);
  for (const char* name : {">lru<", ">kmg<", ">Belady<"})
    EXPECT_EQ(count(svg, name), 1U) << name;
  EXPECT_NE(svg.find("<title>kmg, 10 %: 30.0 %</title>"), std::string::npos);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 1U);
}

TEST(LinePlot, HigherValuesLieHigher) {
  std::string svg = to_svg(small_plot());
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, std::regex(R"#(points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+))#")));
  EXPECT_LT(std::stod(found[1]), std::stod(found[3]));
  EXPECT_GT(std::stod(found[2]), std::stod(found[4]));
}

TEST(LinePlot, EscapesText) {
  line_plot plot = small_plot();
  plot.title = "a < b & \"c\"\t\x01";
  plot.lines[0].name = "<&\">";
  std::string svg = to_svg(plot);
  EXPECT_EQ(malformed(svg), std::nullopt);
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(LinePlot, NamesDoNotLieOnEachOther) {
  line_plot plot = small_plot();
  for (int i = 0; i < 12; ++i)
    plot.lines.push_back({"line " + std::to_string(i), line_style::plain, {0.1, 0.2, 0.4}});
  std::string svg = to_svg(plot);
  std::regex name(R"#(<text x="752\.0" y="([\d.]+)")#");
  std::vector<double> heights;
  for (std::sregex_iterator at(svg.begin(), svg.end(), name), end; at != end; ++at)
    heights.push_back(std::stod((*at)[1]));
  ASSERT_EQ(heights.size(), 15U);
  std::sort(heights.begin(), heights.end());
  for (size_t i = 1; i < heights.size(); ++i)
    EXPECT_GE(heights[i] - heights[i - 1], 15.0);
}

TEST(LinePlot, OneCapacityAndNoHitsArePlotsToo) {
  line_plot plot{.title = "t", .ticks = {{5, "5"}}, .lines = {{"lru", line_style::plain, {0}}}};
  std::string svg = to_svg(plot);
  EXPECT_EQ(malformed(svg), std::nullopt);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

} // namespace
} // namespace terrace::simulate
