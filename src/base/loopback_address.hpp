// The listening address of the exposition, always on the loopback interface.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace terrace {

struct loopback_address {
  std::string host; ///< numeric, without brackets
  uint16_t port = 0;
  std::string text() const; ///< "127.0.0.1:9464", "[::1]:9464"
};

/// Accepts "127.0.0.1:9464", "[::1]:9464", "localhost:9464". Errors: `bad_request` with what was expected.
/// Metrics contain names of models and groups, so a scraper on another machine needs an authenticating proxy.
result<loopback_address> parse_loopback_address(std::string_view text);

} // namespace terrace
