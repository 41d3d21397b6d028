#include "bench/harness.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace terrace::bench {

namespace {

std::string number(double value, int digits = 3) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

} // namespace

std::optional<double> figure::ratio() const {
  if (absolute || limit == 0)
    return std::nullopt;
  return ratio_of_rounds.value_or(value / limit);
}

std::string_view figure::verdict() const {
  if (!bounded)
    return "";
  double judged = ratio().value_or(value);
  auto reaches = [&](double bound) { return direction == better::lower ? judged <= bound : judged >= bound; };
  auto decided = [&](double bound) { return spread.value_or(0) <= std::abs(judged - bound); };
  if (!decided(floor))
    return "undecided";
  if (!reaches(floor))
    return "below floor";
  return reaches(aim) && decided(aim) ? "aim" : "floor";
}

figure of_rounds(figure f, const std::vector<double>& values, const std::vector<double>& limits) {
  f.rounds = static_cast<int>(values.size());
  f.value = median(values);
  f.limit = limits.empty() ? 0 : median(limits);
  auto [least, most] = std::ranges::minmax(values);
  f.range = std::pair(least, most);
  std::vector<double> judged = values;
  if (f.ratio()) {
    for (size_t i = 0; i < judged.size(); ++i)
      judged[i] /= limits.at(i);
    f.ratio_of_rounds = median(judged);
  }
  f.spread = percentile(judged, 0.75) - percentile(judged, 0.25);
  return f;
}

std::string to_json(const figure& f) {
  std::string line =
      "{\"name\":\"" + f.name + "\",\"value\":" + number(f.value) + ",\"limit\":" + number(f.limit) +
      ",\"unit\":\"" + f.unit + "\",\"ratio\":" + (f.ratio() ? number(*f.ratio()) : "null") +
      ",\"floor\":" + (f.bounded ? number(f.floor) : "null") +
      ",\"aim\":" + (f.bounded ? number(f.aim) : "null") + ",\"rounds\":" + std::to_string(f.rounds);
  if (f.range)
    line += ",\"least\":" + number(f.range->first) + ",\"most\":" + number(f.range->second);
  if (f.spread)
    line += std::string(f.ratio() ? ",\"ratio_spread\":" : ",\"value_spread\":") + number(*f.spread);
  if (f.unit == "us")
    line += ",\"above_limit_us\":" + number(f.value - f.limit);
  if (f.bounded)
    line += ",\"reached\":\"" + std::string(f.verdict()) + "\"";
  return line + "}";
}

std::string to_table(const std::vector<figure>& figures) {
  std::vector<std::array<std::string, 11>> rows{{"benchmark", "value", "limit", "unit", "ratio", "spread",
                                                 "floor", "aim", "above limit", "reached", "of the rounds"}};
  for (const figure& f : figures)
    rows.push_back({f.name, number(f.value, 2), number(f.limit, 2), f.unit,
                    f.ratio() ? number(*f.ratio()) : "", f.spread ? number(*f.spread) : "",
                    f.bounded ? number(f.floor, 2) : "", f.bounded ? number(f.aim, 2) : "",
                    f.unit == "us" ? number(f.value - f.limit, 1) + " us" : "", std::string(f.verdict()),
                    f.range ? number(f.range->first, 2) + " to " + number(f.range->second, 2) : ""});
  std::array<size_t, 11> widths{};
  for (auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::ostringstream out;
  for (auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      bool text = i == 0 || i == 3 || i >= 9;
      line += (i == 0 ? "" : "  ") + (text ? row[i] + pad : pad + row[i]);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  return out.str();
}

std::string to_summary(const std::vector<figure>& figures) {
  auto count = [&](auto&& which) { return std::to_string(std::ranges::count_if(figures, which)); };
  auto with = [&](std::string_view verdict) {
    return count([verdict](const figure& f) { return f.verdict() == verdict; });
  };
  return with("aim") + " reach their aim, " + with("floor") + " their floor, " + with("below floor") +
         " are below it, " + with("undecided") + " are undecided; " + with("") + " have no bound";
}

figure sides::judged(figure f, size_t which) const {
  return of_rounds(std::move(f), values.at(which),
                   which < limits.size() ? limits[which] : std::vector<double>());
}

sides interleave(int rounds, const side& value, const side& limit) {
  sides both;
  auto add = [](std::vector<std::vector<double>>& to, const std::vector<double>& round) {
    to.resize(std::max(to.size(), round.size()));
    for (size_t i = 0; i < round.size(); ++i)
      to[i].push_back(round[i]);
  };
  for (int i = 0; i < rounds; ++i) {
    add(both.limits, limit());
    add(both.values, value());
  }
  return both;
}

void give_up(std::string_view why) {
  std::cerr << "benchmark cannot run: " << why << std::endl;
  std::exit(1);
}

} // namespace terrace::bench
