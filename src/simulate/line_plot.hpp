// Lines over one axis as an SVG 1.1 document that stands alone: no script, no style sheet, no font of its own.
#pragma once

#include <string>
#include <vector>

namespace terrace::simulate {

enum class line_style {
  plain,
  strong, ///< the line that the plot is about
  bound,  ///< dashed, without marks: what cannot be passed
};

struct line {
  std::string name;
  line_style style = line_style::plain;
  std::vector<double> values; ///< one for each tick of the plot
};

/// Values are shares of one; the vertical axis shows them in percent, from 0. The horizontal axis is logarithmic, and its
/// ticks are where the values lie.
struct line_plot {
  struct tick {
    double at = 1; ///< above 0, rising
    std::string label;
  };
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  std::vector<tick> ticks; ///< at least one
  std::vector<line> lines;
};

/// Each line ends in its name, at the right; names that would lie on each other move apart. Every point has its value as
/// a tooltip. Any text is escaped; control characters, which XML cannot hold, become spaces.
std::string to_svg(const line_plot& plot);

} // namespace terrace::simulate
