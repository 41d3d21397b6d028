// Sizes on the command line: "64KiB".
#pragma once

#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace terrace::cli {

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
      ->default_str(format_bytes(value))
      ->type_name("SIZE");
}

} // namespace terrace::cli
