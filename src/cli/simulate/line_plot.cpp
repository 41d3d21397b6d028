#include "cli/simulate/line_plot.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>

namespace terrace::simulate {

namespace {

constexpr double width = 900, height = 540;
constexpr double left = 66, right = 160, top = 70, bottom = 62; // margins
constexpr double name_height = 16;
constexpr double tick_distance_min = 44;
constexpr std::string_view bound_colour = "#444444";

// Dark enough on white and distinguishable for most readers (after Okabe and Ito 2008); marks distinguish the
// rest.
constexpr std::array<std::string_view, 12> colours{"#0072b2", "#d55e00", "#009e73", "#b5529b",
                                                   "#b07d00", "#2a9dd6", "#8c564b", "#5b3fa0",
                                                   "#4f7f1f", "#c2185b", "#5f7470", "#000000"};

std::string number(double value, int decimals = 1) {
  std::array<char, 32> text{};
  auto [end, status] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), end};
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

struct point {
  double x, y;
};

class drawing {
 public:
  explicit drawing(const line_plot& plot) : plot_(plot) {
    assert(!plot.ticks.empty());
    double highest = 0;
    for (const line& l : plot.lines)
      for (double value : l.values)
        highest = std::max(highest, value);
    choose_scale(highest);
  }

  std::string run() {
    out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
           "viewBox=\"0 0 " +
           number(width, 0) + " " + number(height, 0) + "\" width=\"" + number(width, 0) + "\" height=\"" +
           number(height, 0) +
           "\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" font-size=\"13\">\n";
    out_ += "<title>" + escaped(plot_.title) + "</title>\n";
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    text({left, 28}, plot_.title, "start", " font-size=\"18\" font-weight=\"600\"");
    text({left, 48}, plot_.subtitle, "start", " fill=\"#555555\"");
    axes();
    for (size_t i = 0; i < plot_.lines.size(); ++i)
      curve(i);
    names();
    return out_ + "</svg>\n";
  }

 private:
  /// About five steps of 1, 2 or 5 times a power of ten; the axis ends above the highest value.
  void choose_scale(double highest) {
    double rough = std::max(highest, 0.001) / 5;
    double power = std::pow(10, std::floor(std::log10(rough)));
    for (double step : {1.0, 2.0, 5.0, 10.0}) {
      step_ = step * power;
      if (step_ >= rough)
        break;
    }
    steps_ = static_cast<int>(std::ceil(highest / step_ - 1e-9));
    steps_ = std::max(steps_, 1);
  }

  point place(double at, double value) const {
    double low = std::log(plot_.ticks.front().at), high = std::log(plot_.ticks.back().at);
    double along = high > low ? (std::log(at) - low) / (high - low) : 0.5;
    return {left + 14 + along * (width - left - right - 28),
            height - bottom - value / (steps_ * step_) * (height - top - bottom)};
  }

  void text(point at, std::string_view what, std::string_view anchor, std::string_view more = "") {
    out_ += "<text x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\" text-anchor=\"" +
            std::string(anchor) + "\"" + std::string(more) + ">" + escaped(what) + "</text>\n";
  }

  void stroke(point from, point to, std::string_view colour, std::string_view more = "") {
    out_ += "<line x1=\"" + number(from.x) + "\" y1=\"" + number(from.y) + "\" x2=\"" + number(to.x) +
            "\" y2=\"" + number(to.y) + "\" stroke=\"" + std::string(colour) + "\"" + std::string(more) +
            "/>\n";
  }

  void axes() {
    double end = width - right;
    int decimals = step_ < 0.001 ? 2 : step_ < 0.01 ? 1 : 0;
    for (int i = 0; i <= steps_; ++i) {
      double y = place(plot_.ticks.front().at, i * step_).y;
      stroke({left, y}, {end, y}, i == 0 ? "#444444" : "#e3e3e3");
      text({left - 8, y + 4}, number(i * step_ * 100, decimals) + " %", "end", " fill=\"#444444\"");
    }
    double last = -width;
    for (const line_plot::tick& tick : plot_.ticks) {
      double x = place(tick.at, 0).x;
      stroke({x, height - bottom}, {x, height - bottom + 5}, "#444444");
      if (x - last < tick_distance_min)
        continue;
      last = x;
      text({x, height - bottom + 20}, tick.label, "middle", " fill=\"#444444\"");
    }
    text({(left + end) / 2, height - 16}, plot_.x_title, "middle");
    double middle = (top + height - bottom) / 2;
    text({18, middle}, plot_.y_title, "middle", " transform=\"rotate(-90 18 " + number(middle) + ")\"");
  }

  std::string_view colour_of(size_t i) const {
    if (plot_.lines[i].style == line_style::bound)
      return bound_colour;
    auto bounds = std::count_if(plot_.lines.begin(), plot_.lines.begin() + static_cast<ptrdiff_t>(i),
                                [](const line& l) { return l.style == line_style::bound; });
    return colours[(i - static_cast<size_t>(bounds)) % colours.size()];
  }

  void curve(size_t i) {
    const line& l = plot_.lines[i];
    assert(l.values.size() == plot_.ticks.size());
    std::string colour(colour_of(i));
    std::string_view look = l.style == line_style::strong  ? "3"
                            : l.style == line_style::bound ? "1.5\" stroke-dasharray=\"6 4"
                                                           : "1.8";
    out_ += "<g aria-label=\"" + escaped(l.name) + "\"><polyline fill=\"none\" stroke=\"" + colour +
            "\" stroke-linejoin=\"round\" stroke-width=\"" + std::string(look) + "\" points=\"";
    for (size_t n = 0; n < l.values.size(); ++n) {
      point at = place(plot_.ticks[n].at, l.values[n]);
      out_ += (n == 0 ? "" : " ") + number(at.x) + "," + number(at.y);
    }
    out_ += "\"/>\n";
    for (size_t n = 0; n < l.values.size(); ++n)
      mark(i, place(plot_.ticks[n].at, l.values[n]), colour,
           l.name + ", " + plot_.ticks[n].label + ": " + number(l.values[n] * 100) + " %");
    out_ += "</g>\n";
  }

  /// Four shapes in turn, so that lines can be distinguished without colours.
  void mark(size_t i, point at, const std::string& colour, const std::string& tip) {
    bool bound = plot_.lines[i].style == line_style::bound;
    double r = bound                                        ? 6
               : plot_.lines[i].style == line_style::strong ? 4.6
                                                            : 3.6; // for bounds only an area for the pointer
    std::string paint = bound ? " fill=\"none\" pointer-events=\"all\"" : " fill=\"" + colour + "\"";
    std::string shape;
    auto polygon = [&](std::initializer_list<point> corners) {
      shape = "polygon points=\"";
      for (const point& corner : corners)
        shape += number(at.x + corner.x * r) + "," + number(at.y + corner.y * r) + " ";
      shape.back() = '"';
    };
    switch (bound ? 0 : i % 4) {
      case 0:
        shape = "circle cx=\"" + number(at.x) + "\" cy=\"" + number(at.y) + "\" r=\"" + number(r) + "\"";
        break;
      case 1: polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}); break;
      case 2: polygon({{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}}); break;
      default: polygon({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}); break;
    }
    out_ += "<" + shape + paint + "><title>" + escaped(tip) + "</title></" +
            shape.substr(0, shape.find(' ')) + ">\n";
  }

  /// Places names from the highest line end to the lowest, each at least a text line below the previous one;
  /// if they overflow, all move up.
  void names() {
    std::vector<size_t> order(plot_.lines.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return plot_.lines[a].values.back() > plot_.lines[b].values.back();
    });
    std::vector<double> at;
    for (size_t i : order) {
      double own = place(plot_.ticks.back().at, plot_.lines[i].values.back()).y;
      at.push_back(at.empty() ? own : std::max(own, at.back() + name_height));
    }
    double limit = height - bottom;
    for (size_t n = at.size(); n-- > 0; limit = at[n] - name_height)
      at[n] = std::min(at[n], limit);
    for (size_t n = 0; n < order.size(); ++n) {
      const line& l = plot_.lines[order[n]];
      std::string colour(colour_of(order[n]));
      point end = place(plot_.ticks.back().at, l.values.back());
      stroke({end.x + 7, end.y}, {width - right + 8, at[n]}, colour,
             " stroke-width=\"0.7\" stroke-opacity=\"0.6\"");
      text({width - right + 12, at[n] + 4}, l.name, "start",
           " fill=\"" + colour + "\"" + (l.style == line_style::strong ? " font-weight=\"700\"" : ""));
    }
  }

  const line_plot& plot_;
  double step_ = 0.1;
  int steps_ = 1;
  std::string out_;
};

} // namespace

std::string to_svg(const line_plot& plot) { return drawing(plot).run(); }

} // namespace terrace::simulate
