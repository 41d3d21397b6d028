// Progress of long commands.
#pragma once

#include "cli/console.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace terrace::cli {

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
