// Progress of a load or a prefetch of this process, for threads that use what has arrived before its end.
#pragma once

#include "client/handles.hpp"
#include "client/region.hpp"
#include "client/types.hpp"

#include <cstdint>

namespace terrace::client {

/// Counters in a region, which the daemon raises: a load has one for each requested pool, a prefetch has one.
/// Each counts the leading chunks that have arrived. Name the counters in the request, and wait for them on
/// other threads. Use each for one request at a time; a request that this side gave up may raise them until
/// the daemon has answered it.
///
/// Threads: any number may call all functions but `restart` while another thread uses the connection.
class arrivals {
 public:
  /// Uses `count` counters of 4 bytes at `offset`, a multiple of 4, of `memory`, which is registered as `at`.
  /// Both outlive this object. Precondition: the counters are inside the memory.
  arrivals(const region& memory, const registered_region& at, uint64_t offset, uint32_t count);

  /// Sets the counters to 0. Call it before each request.
  void restart() const;

  /// Leading chunks that have arrived in this counter's pool. Their bytes may be read.
  uint32_t chunks(uint32_t counter) const;

  /// Waits until this many chunks have arrived. False: the request ended before that, or `until` has passed.
  bool wait(uint32_t counter, uint32_t chunks, deadline until = {}) const;

  /// The request has ended: waiting threads return. `load` and `prefetch` call this; a caller that submits
  /// them calls it once the ticket is redeemed.
  void end() const;

  const registered_region& at() const { return *at_; }
  uint64_t offset() const { return offset_; }

 private:
  uint32_t* counters_;
  const registered_region* at_;
  uint64_t offset_;
  uint32_t count_;
};

} // namespace terrace::client
