// Failures of commands and exit codes.
#pragma once

#include "base/error.hpp"

#include <tl/expected.hpp>

#include <string>

namespace terrace::cli {

/// The exit codes of `terrace`, documented in README and --help.
enum class exit_code : int {
  ok = 0,
  failed = 1,      ///< the daemon refused, bytes were wrong, a file could not be written
  usage = 2,       ///< the command line or an input file is invalid
  unreachable = 3, ///< no daemon at the socket
  damaged = 4,     ///< the file of a disk tier is damaged
  reader_left =
      141, ///< the reader of standard output has left (`| head`): as if SIGPIPE had ended the command
};

/// One line for standard error, without the program's name and without a newline.
struct failure {
  exit_code code = exit_code::failed;
  std::string text;
};

template <class T>
using outcome = tl::expected<T, failure>;

inline tl::unexpected<failure> bad_usage(std::string text) {
  return tl::unexpected<failure>(failure{exit_code::usage, std::move(text)});
}

inline tl::unexpected<failure> failed(std::string text) {
  return tl::unexpected<failure>(failure{exit_code::failed, std::move(text)});
}

/// A failure from an answer of the daemon (or of libterrace): "while <doing>: <text> (<code>)".
inline tl::unexpected<failure> failed(const std::string& doing, const error& e) {
  return failed(doing + ": " + e.text + " (" + std::string(to_string(e.code)) + ")");
}

} // namespace terrace::cli
