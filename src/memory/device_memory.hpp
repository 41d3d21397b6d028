// A handle to memory of a device (a GPU, or its substitute in host memory), for code that only passes it on.
#pragma once

#include <atomic>
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

} // namespace terrace
