// Writes all figures of a run in one table, with the machine and the versions they belong to: JSON for
// programs, Markdown for pages.
#pragma once

#include "bench/harness.hpp"

#include <string>
#include <vector>

namespace terrace::bench {

/// "kernel", "Linux 6.12.8".
struct fact {
  std::string name;
  std::string value;
};

struct reported_figure {
  std::string benchmark; ///< name that `./bench/run` uses
  figure what;
};

struct run_report {
  std::vector<fact> facts;
  std::vector<reported_figure> figures;
};

/// Returns one object: "facts" by name, "figures" as their lines, each with its "benchmark".
std::string to_report_json(const run_report& report);

/// Returns the facts as a list, the figures as a table, and a line that counts the verdicts.
std::string to_report_markdown(const run_report& report);

} // namespace terrace::bench
