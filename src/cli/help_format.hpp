// The text of --help, and how numbers are read.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace terrace::cli {

/// "--clients N    Connections (1 to 256; default 1)": the value's kind beside the option, everything else about it behind
/// the description.
class help_format final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// Adds to each option of a number, what CLI11 does not check: counts are not negative
/// and fit, and no number is infinite or none. Messages say what was expected and what was found. Call this after the
/// command has declared its options.
void check_numbers(CLI::App& app);

} // namespace terrace::cli
