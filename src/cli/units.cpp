#include "cli/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace terrace::cli {

std::string format_rate(double rate) {
  constexpr std::array<const char*, 5> units{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  size_t unit = 0;
  while (rate >= 1000 && unit + 1 < units.size()) {
    rate /= 1000;
    ++unit;
  }
  return three_digits(rate) + " " + units[unit];
}

std::string format_duration(double ns) {
  if (ns == 0) // most often an age in whole seconds
    return "0 s";
  if (ns < 1e3)
    return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6)
    return three_digits(ns / 1e3) + " us";
  if (ns < 1e9)
    return three_digits(ns / 1e6) + " ms";
  if (ns < 1e11)
    return three_digits(ns / 1e9) + " s";
  auto seconds = static_cast<uint64_t>(ns / 1e9);
  if (seconds < 3600)
    return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string format_part(uint64_t part, uint64_t whole, const std::string& noun) {
  return format_count(part) + " of " + format_counted(whole, noun);
}

std::string format_ratio(double ratio) { return fmt::format("{:.1f} %", ratio * 100); }

outcome<uint64_t> parse_bytes(const std::string& text) {
  auto wrong = [&](const std::string& meant = {}) {
    return bad_usage(fmt::format("expected a size such as 4096, 64KiB or 1.5GiB, found \"{}\"{}", text,
                                 meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
  };
  double number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || !(number >= 0))
    return wrong();
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    size_t power = std::string("kmgtp").find(unit[0]);
    std::string rest = unit.substr(1);
    if (power == std::string::npos || (!rest.empty() && rest != "b" && rest != "ib"))
      return wrong();
    if (rest != "ib") // decimal or binary? The daemon does not guess either
      return wrong(std::string(text.data(), end) + "KMGTP"[power] + "iB");
    for (size_t i = 0; i <= power; ++i)
      factor *= 1024;
  }
  if (number * factor > 0x1.0p62)
    return wrong();
  return static_cast<uint64_t>(number * factor);
}

} // namespace terrace::cli
