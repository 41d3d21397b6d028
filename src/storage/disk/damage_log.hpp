// Limits the log lines about damaged objects: the first at once, then at most one a minute, with the number of objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

class damage_log {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds pause{60};

  /// Adds objects whose bytes were not what was written, in `file`. Returns a line if one is due.
  std::optional<std::string> add(const std::string& file, uint64_t objects, time_point now) {
    total_ += objects;
    untold_ += objects;
    if (told_ && now - *told_ < pause)
      return std::nullopt;
    told_ = now;
    std::string line =
        file + ": " + std::to_string(untold_) + (untold_ == 1 ? " object was" : " objects were") +
        " damaged (" + std::to_string(total_) +
        " since the start); they count as misses. `terrace disk verify` shows where, when the daemon is "
        "stopped";
    untold_ = 0;
    return line;
  }

  /// Returns the text for status; empty without damage.
  std::string notice(const std::string& file) const {
    return total_ == 0 ? std::string()
                       : file + ": " + std::to_string(total_) +
                             " damaged objects were found since the start, and not served";
  }

 private:
  uint64_t total_ = 0;
  uint64_t untold_ = 0;
  std::optional<time_point> told_;
};

} // namespace terrace
