// The output and input streams of a command.
#pragma once

#include "base/unique_fd.hpp"
#include "cli/failure.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace terrace::cli {

// Ctrl-C as a request to end early and still show the summary.

/// During its lifetime the first SIGINT only sets the interruption; a second one kills the process as usual.
/// At most one instance exists at a time. All methods are safe on any thread.
class interruption {
 public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;

  bool requested() const { return requested_; }

  /// Has the effect of Ctrl-C. Async-signal-safe.
  void request();

  /// Sleeps until `due`, until interrupted, or until the descriptor `input` can be read.
  void sleep_until(std::chrono::steady_clock::time_point due, int input = -1) const;

 private:
  std::atomic<bool> requested_{false};
  unique_fd event_; ///< readable after the interruption: wakes all sleeping threads
};

/// Standard output cannot be written. This exception ends the command in app.cpp, wherever it is.
struct output_lost {
  int number; ///< of the system's error; EPIPE: the reader has left
};

struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  bool err_is_terminal = false; ///< progress is redrawn in place; otherwise it is plain lines
  std::FILE* in = stdin;
  bool in_is_terminal = false;  ///< questions can be asked
  bool out_is_terminal = false; ///< refreshed output is redrawn in place

  /// Writes to `out`, or throws `output_lost`. Not called on threads of a command's own.
  template <class... Values>
  void print(fmt::format_string<Values...> text, Values&&... values) const {
    write(fmt::format(text, std::forward<Values>(values)...));
  }
  void write(std::string_view bytes) const;

  /// Sends what was printed so far to its reader, or throws `output_lost`.
  void flush() const;

  /// Throws `output_lost` if the reader of `out` has left, for commands that wait long before they print again.
  void expect_reader() const;

  /// Writes to `err`. A message that nobody can read is lost, and changes nothing else.
  template <class... Values>
  void note(fmt::format_string<Values...> text, Values&&... values) const {
    std::string line = fmt::format(text, std::forward<Values>(values)...);
    std::fwrite(line.data(), 1, line.size(), err);
  }
};

// Confirmation before destructive actions.

/// Shows what will happen and reads a line from a terminal; only "yes" continues. With `given` (--yes)
/// nothing is asked. Without a terminal, or with another answer, returns a failure, and nothing may be
/// changed.
outcome<void> confirm(const console& to, const std::string& text, bool given);

/// The same for what only costs time to make good: it asks on a terminal, and scripts are not asked.
outcome<void> confirm_on_terminal(const console& to, const std::string& text, bool given);

// Progress of long commands.

/// On a terminal, a bar that is redrawn in place at most ten times per second and erased at the end.
/// Otherwise a plain line per tenth. Thread-safe. Written to `console.err`, so that output stays clean.
class progress {
 public:
  /// A `total` of 0 is shown as done.
  progress(console& to, std::string title, uint64_t total);
  ~progress() { finish(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// `note` is shown after the numbers; the latest one is used.
  void advance(uint64_t by, const std::string& note = {});
  void finish();

 private:
  void draw();
  void print_tenth();

  std::mutex mutex_;
  console& to_;
  std::string title_;
  std::string note_;
  uint64_t total_;
  uint64_t done_ = 0;
  uint64_t tenths_ = 0;
  bool finished_ = false;
  std::chrono::steady_clock::time_point drawn_{};
};

/// "[=====>    ]" of `width` characters between the brackets; `ratio` is clamped to 0 and 1.
std::string progress_bar(double ratio, size_t width);

} // namespace terrace::cli
