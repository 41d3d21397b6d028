#include "cli/table.hpp"

#include "base/printable.hpp"

#include <algorithm>

namespace terrace::cli {

namespace {

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void append_line(std::string& to, const std::vector<column>& columns, const std::vector<size_t>& widths,
                 const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    line += "  ";
    std::string padding(widths[i] - width_of(cells[i]), ' ');
    line += columns[i].side == align::right ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  to += line + "\n";
}

} // namespace

void table::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  for (std::string& cell : row) // names may come from clients, and a line break would begin another row
    cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string table::to_string() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const column& c : columns_) {
    titles.push_back(c.title);
    widths.push_back(width_of(c.title));
  }
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& t) { return !t.empty(); }))
    append_line(text, columns_, widths, titles);
  for (const auto& row : rows_)
    append_line(text, columns_, widths, row);
  return text;
}

std::string format_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  table lines({{"", align::left}, {"", align::left}});
  for (const auto& [name, value] : facts)
    lines.add({name, value});
  return lines.to_string();
}

} // namespace terrace::cli
