// Counts the bytes that a client and the daemon exchange, so that a bare echo can exchange as many.
#pragma once

#include "client/client.hpp"

#include <cstddef>
#include <functional>
#include <string>

namespace terrace::bench {

struct exchanged_bytes {
  size_t request = 0;
  size_t answer = 0;
};

/// Returns the bytes that each of `times` runs of `work` exchanges, over a connection whose bytes pass
/// through this process. `prepare` is not counted. Descriptors do not pass, so nothing can be registered and
/// no memory mapped.
exchanged_bytes bytes_each_time(const std::string& socket_path, int times,
                                const std::function<void(client::connection&)>& prepare,
                                const std::function<void(client::connection&)>& work);

} // namespace terrace::bench
