// Line plots as self-contained SVG 1.1 documents: no script, style sheet or font.
#pragma once

#include <string>
#include <vector>

namespace terrace::simulate {

enum class line_style {
  plain,
  strong, ///< the highlighted line
  bound,  ///< dashed, without marks: an upper bound
};

struct line {
  std::string name;
  line_style style = line_style::plain;
  std::vector<double> values; ///< one per tick of the plot
};

/// Values are fractions of 1; the vertical axis shows them in percent, from 0. The horizontal axis is
/// logarithmic, with a tick at each value.
struct line_plot {
  struct tick {
    double at = 1; ///< above 0, ascending
    std::string label;
  };
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  std::vector<tick> ticks; ///< at least one
  std::vector<line> lines;
};

/// Each line is labelled at its right end; labels that would overlap move apart. Every point has its value as
/// a tooltip. All text is escaped; control characters, which XML cannot represent, become spaces.
std::string to_svg(const line_plot& plot);

} // namespace terrace::simulate
