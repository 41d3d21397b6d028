// The one state of a client request that all who work for it share.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace terrace {

/// One client request on its way through the daemon. The connection ends it early (cancel, deadline, death); whoever works or
/// waits for it looks here before it goes on. `ended` may be read and written on any thread; the rest is set before others
/// see it.
struct request_context {
  connection_id connection{};
  request_id request = 0;
  uint64_t inference = 0; ///< the client's number of the inference request that this serves; 0: not told
  std::atomic<errc> ended{errc::ok}; ///< ok while the request lives; else why it ended
  bool live() const { return ended.load(std::memory_order_relaxed) == errc::ok; }
};
using context_ptr = std::shared_ptr<request_context>;

} // namespace terrace
