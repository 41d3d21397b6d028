// Tables with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace terrace::cli {

enum class align { left, right };

struct column {
  std::string title;
  align side = align::right;
};

/// Lines of cells under a line of titles, two spaces apart, each line indented by two; no trailing spaces.
/// Widths are counted in code points. The last cells of short rows stay empty; longer rows are cut to the
/// columns.
class table {
 public:
  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::string to_string() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Formats two columns without titles: a name and a value.
std::string format_facts(const std::vector<std::pair<std::string, std::string>>& facts);

} // namespace terrace::cli
