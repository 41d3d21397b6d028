// Log lines of the levels debug and trace, which are formatted only if they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace terrace {

/// Safe on any thread.
struct detail_log {
  enum class level : uint8_t {
    debug, ///< one line per connection and lease
    trace, ///< one per request
  };
  std::function<bool(level)> wanted = [](level) { return false; };
  std::function<void(level, const std::string&)> write;
};

} // namespace terrace
