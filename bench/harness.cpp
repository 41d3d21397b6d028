#include "bench/harness.hpp"

#include <algorithm>
#include <array>
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
  return value / limit;
}

std::string_view figure::verdict() const {
  if (!bounded)
    return "";
  double judged = ratio().value_or(value);
  auto reaches = [&](double bound) { return direction == better::lower ? judged <= bound : judged >= bound; };
  return reaches(aim) ? "aim" : reaches(floor) ? "floor" : "below floor";
}

std::string to_json(const figure& f) {
  std::string line =
      "{\"name\":\"" + f.name + "\",\"value\":" + number(f.value) + ",\"limit\":" + number(f.limit) +
      ",\"unit\":\"" + f.unit + "\",\"ratio\":" + (f.ratio() ? number(*f.ratio()) : "null") +
      ",\"floor\":" + (f.bounded ? number(f.floor) : "null") +
      ",\"aim\":" + (f.bounded ? number(f.aim) : "null") + ",\"rounds\":" + std::to_string(f.rounds);
  if (f.unit == "us")
    line += ",\"above_limit_us\":" + number(f.value - f.limit);
  return line + "}";
}

std::string to_table(const std::vector<figure>& figures) {
  std::vector<std::array<std::string, 9>> rows{
      {"benchmark", "value", "limit", "unit", "ratio", "floor", "aim", "above limit", "reached"}};
  for (const figure& f : figures)
    rows.push_back({f.name, number(f.value, 2), number(f.limit, 2), f.unit,
                    f.ratio() ? number(*f.ratio()) : "", f.bounded ? number(f.floor, 2) : "",
                    f.bounded ? number(f.aim, 2) : "",
                    f.unit == "us" ? number(f.value - f.limit, 1) + " us" : "", std::string(f.verdict())});
  std::array<size_t, 9> widths{};
  for (auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::ostringstream out;
  for (auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      bool text = i == 0 || i == 3 || i == 8;
      line += (i == 0 ? "" : "  ") + (text ? row[i] + pad : pad + row[i]);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  return out.str();
}

sides interleave(int rounds, const side& value, const side& limit) {
  std::vector<std::vector<double>> values, limits; // [which][round]
  auto add = [](std::vector<std::vector<double>>& to, const std::vector<double>& round) {
    to.resize(std::max(to.size(), round.size()));
    for (size_t i = 0; i < round.size(); ++i)
      to[i].push_back(round[i]);
  };
  for (int i = 0; i < rounds; ++i) {
    add(limits, limit());
    add(values, value());
  }
  auto medians = [](const std::vector<std::vector<double>>& all) {
    std::vector<double> out;
    for (auto& samples : all)
      out.push_back(median(samples));
    return out;
  };
  return {medians(values), medians(limits)};
}

void give_up(std::string_view why) {
  std::cerr << "benchmark cannot run: " << why << std::endl;
  std::exit(1);
}

} // namespace terrace::bench
