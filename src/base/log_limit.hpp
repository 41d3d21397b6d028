// A limit on how often a line is written to the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace terrace {

// Log lines of the levels debug and trace, which are formatted only if they are written.

/// Safe on any thread.
struct detail_log {
  enum class level : uint8_t {
    debug, ///< one line per connection and lease
    trace, ///< one per request
  };
  std::function<bool(level)> wanted = [](level) { return false; };
  std::function<void(level, const std::string&)> write;
};

/// Admits at most `lines_max` lines in each `window`; the first line after that says how many were left out.
/// Pure: time is an argument, which does not go back. Not thread-safe.
class log_limit {
 public:
  using clock = std::chrono::steady_clock;

  explicit log_limit(uint32_t lines_max = 10, clock::duration window = std::chrono::seconds(10))
      : lines_max_(lines_max), window_(window) {}

  /// Returns the line to write, or nullopt if it is left out.
  std::optional<std::string> admit(const std::string& line, clock::time_point now) {
    if (!began_ || now - *began_ >= window_) {
      began_ = now;
      written_ = 0;
    }
    if (written_ == lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    if (left_out_ == 0)
      return line;
    auto all = line + " (" + std::to_string(left_out_) + " lines like this were left out)";
    left_out_ = 0;
    return all;
  }

 private:
  uint32_t lines_max_;
  clock::duration window_;
  std::optional<clock::time_point> began_;
  uint32_t written_ = 0;
  uint64_t left_out_ = 0;
};

/// A `log_limit` that is safe on any thread.
class shared_log_limit {
 public:
  std::optional<std::string> admit(const std::string& line, log_limit::clock::time_point now) {
    std::lock_guard lock(mutex_);
    return limit_.admit(line, now);
  }

 private:
  std::mutex mutex_;
  log_limit limit_;
};

} // namespace terrace
