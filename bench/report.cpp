#include "bench/report.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace terrace::bench {

namespace {

/// Adds quotes and escapes.
std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out + "\"";
}

/// Escapes the separator, which a table's cell cannot have.
std::string cell_text(const std::string& text) {
  std::string out;
  for (char c : text)
    out += c == '|' ? std::string("\\|") : std::string(1, c == '\n' ? ' ' : c);
  return out;
}

/// Formats three significant digits, and no more decimals than that; separates thousands.
std::string short_number(double value) {
  std::array<char, 64> text;
  if (std::abs(value) < 1000) {
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
  }
  std::snprintf(text.data(), text.size(), "%.0f", value);
  std::string out = text.data();
  for (size_t at = out.size(); at > 3 + (out[0] == '-' ? 1u : 0u);)
    out.insert(at -= 3, ",");
  return out;
}

std::string row_of(const reported_figure& one) {
  const figure& f = one.what;
  bool compared = f.limit != 0;
  std::string judged = f.ratio() ? short_number(*f.ratio()) : "";
  if (f.spread)
    judged += std::string(judged.empty() ? "" : " ") + "± " + short_number(*f.spread);
  return "| " + cell_text(f.name) + " | " + short_number(f.value) + " | " +
         (compared ? short_number(f.limit) : "") + " | " + cell_text(f.unit) + " | " + judged + " | " +
         (f.bounded ? short_number(f.floor) + ", " + short_number(f.aim) : "") + " | " +
         std::string(f.verdict()) + " | `" + one.benchmark + "` |\n";
}

} // namespace

std::string to_report_json(const run_report& report) {
  std::string out = "{\"facts\":{";
  for (size_t i = 0; i < report.facts.size(); ++i)
    out += (i == 0 ? "" : ",") + json_text(report.facts[i].name) + ":" + json_text(report.facts[i].value);
  out += "},\n\"figures\":[";
  for (size_t i = 0; i < report.figures.size(); ++i) {
    const auto& [benchmark, what] = report.figures[i];
    out += (i == 0 ? "\n{" : ",\n{") + std::string("\"benchmark\":") + json_text(benchmark) + "," +
           to_json(what).substr(1);
  }
  return out + "\n]}\n";
}

std::string to_report_markdown(const run_report& report) {
  std::string out;
  std::vector<figure> figures;
  for (const fact& each : report.facts)
    out += "- " + each.name + ": " + each.value + "\n";
  out += "\n| figure | Terrace | limit | unit | ratio ± spread | floor, aim | reached | benchmark |\n"
         "|---|---|---|---|---|---|---|---|\n";
  for (const reported_figure& each : report.figures) {
    out += row_of(each);
    figures.push_back(each.what);
  }
  return out + "\n" + to_summary(figures) + ".\n";
}

} // namespace terrace::bench
