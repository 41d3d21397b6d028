// Addresses to listen at.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace terrace {

struct numeric_address {
  std::string host; ///< numeric, without brackets
  uint16_t port = 0;
  std::string text() const; ///< "127.0.0.1:9464", "[::1]:9464"
  bool is_loopback() const;
  /// The address at which this machine reaches it: that of the loopback interface if it stands for all.
  numeric_address reachable() const;
};

/// Accepts "127.0.0.1:9464", "0.0.0.0:9464", "[::]:9464", "localhost:9464". Errors: `bad_request` with what was expected.
result<numeric_address> parse_numeric_address(std::string_view text);

/// The same for an address of the loopback interface.
result<numeric_address> parse_loopback_address(std::string_view text);

} // namespace terrace
