// The limit of a remote tier: a blocking client of redis-server on loopback, which sends commands ahead and receives values where
// they shall lie.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::bench {

class bare_store {
 public:
  /// Connects to 127.0.0.1. Ends the benchmark if there is no server.
  explicit bare_store(uint16_t port);

  /// Returns the keys that match. They must be there.
  std::vector<std::string> keys(std::string_view pattern);
  /// Removes the keys that match.
  void remove(const std::string& pattern);

  /// Reads the values, which have one size, into successive parts of `into`, and its beginning again behind its end.
  void get(const std::vector<std::string>& keys, uint64_t value_bytes, std::span<uint8_t> into);
  /// Writes a value for each key, from successive parts of `from`.
  void set(const std::vector<std::string>& keys, uint64_t value_bytes, std::span<const uint8_t> from);
  /// From now on the server notes the keys that are asked for, as it does for a daemon, to tell when they change.
  void track();
  /// Asks at once which keys exist; returns how many do.
  size_t exist(std::span<const std::string> keys);

 private:
  void send(std::span<const uint8_t> bytes);
  void send(const std::string& text);
  void send_value(const std::string& head, std::span<const uint8_t> value);
  std::string line();

  unique_fd to_;
  std::string lines_; ///< received, behind the last line
};

} // namespace terrace::bench
