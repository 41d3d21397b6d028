// A handle to memory of a device (a GPU, or its substitute in host memory), for code that only passes it on.
#pragma once

#include "base/keep_alive.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace terrace {

/// Only the room that copies to and from the memory knows what it is. The last owner ends the mapping.
class device_memory {
 public:
  explicit device_memory(uint32_t events = 0) : events_(events) {}
  virtual ~device_memory() = default;

  /// The number of generations in this page that have an event which the client opens by handle; 0 for other
  /// memory. An event exists until everybody who has opened it has closed it.
  uint32_t events() const { return events_; }
  /// Call when the client is given the handles.
  void give_events() const { opened_.store(events_ != 0); }
  /// Call when the client has closed the events that it had opened, or has ended.
  void events_closed() const { opened_.store(false); }
  /// True if the client may have events open: then even the last owner does not end the mapping.
  bool opened() const { return opened_.load(); }

 private:
  const uint32_t events_;
  mutable std::atomic<bool> opened_ = false;
};
using device_memory_ptr = std::shared_ptr<const device_memory>;

// Memory that does not belong to a tier.

class region_ahead;

/// Memory outside the arenas: a client's region or a connection's staging memory.
struct outside_memory {
  std::byte* data = nullptr; ///< null: not mapped; use `fd`
  int fd = -1;
  uint64_t bytes = 0;
  keep_alive owner;
  /// belongs to the owner; if not null, only the device copies to and from the memory
  const device_memory* device = nullptr;
  /// belongs to the owner; if not null, it maps the pages that a load is about to write
  region_ahead* ahead = nullptr;
};

} // namespace terrace
