// The address of a remote store.
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace terrace::remote {

struct store_address {
  std::string text; ///< as it was given
  sockaddr_storage bytes{};
  socklen_t length = 0; ///< 0: sentinels tell where the server is

  bool tls = false;
  std::string name{}; ///< with TLS: what the server's certificate is for, a host or the numeric address

  std::vector<store_address> sentinels{}; ///< any of them tells where the server is
  std::string primary{};                  ///< what they call it

  bool at_path() const { return bytes.ss_family == AF_UNIX; }
};

/// Accepts "/path/of/a/socket", "10.0.0.7:6379" and "[fd00::7]:6379", and the latter two behind "rediss://", for TLS, with
/// "?name=NAME" behind them if the server's certificate is for a name. "sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME" names
/// sentinels and the primary that they watch. Names of hosts are not resolved, because that blocks.
/// Errors: `bad_request` with what was expected.
result<store_address> parse_store_address(std::string_view text);

} // namespace terrace::remote
