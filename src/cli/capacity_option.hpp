// Capacities of a simulated tier on the command line.
#pragma once

#include "cli/failure.hpp"
#include "cli/trace.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

// Sizes on the command line: "64KiB".

/// Adds an option whose value is a size such as "64KiB"; its present value is the default shown by --help.
inline CLI::Option* add_size_option(CLI::App& app, const std::string& name, uint64_t& value,
                                    const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& given) {
            auto bytes = parse_bytes(given);
            if (!bytes)
              throw CLI::ValidationError(name, bytes.error().text); // caught in app.cpp
            value = *bytes;
          },
          text)
      ->default_str(readable_bytes(value))
      ->type_name("SIZE");
}

/// Adds --block-tokens and --timestamps of a trace's file.
void add_trace_format(CLI::App& app, trace_format& format);

/// "5%" of the distinct chunks of a trace, or a size such as "512MiB".
struct capacity_option {
  double share = 0;   ///< above 0 if the capacity is a percentage
  uint64_t bytes = 0; ///< set otherwise
  std::string label;  ///< "5 %", "512 MiB"
};

/// Parses a comma-separated list. Failures begin with `option` and state what was expected.
outcome<std::vector<capacity_option>> parse_capacities(const std::string& option, const std::string& text);

/// Returns the parts of "a,b,c" without surrounding spaces; empty parts are kept.
std::vector<std::string> split_list(const std::string& text);

} // namespace terrace::cli
