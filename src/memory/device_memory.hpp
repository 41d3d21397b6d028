// Memory of a device (a GPU, or its substitute in host memory) as whoever passes it on refers to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace terrace {

/// What it is, knows the room that copies to and from it alone. The mapping ends with the last owner.
class device_memory {
 public:
  explicit device_memory(uint32_t events = 0) : events_(events) {}
  virtual ~device_memory() = default;

  /// Of a page of generations: how many of them have an event that its client opens by handle. An event exists until all who have
  /// opened it have closed it.
  uint32_t events() const { return events_; }
  /// The client is given the handles.
  void give_events() const { opened_.store(events_ != 0); }
  /// It has closed what it had opened, or has ended.
  void events_closed() const { opened_.store(false); }
  /// It may have them open: not even the last owner ends the mapping.
  bool opened() const { return opened_.load(); }

 private:
  const uint32_t events_;
  mutable std::atomic<bool> opened_ = false;
};
using device_memory_ptr = std::shared_ptr<const device_memory>;

} // namespace terrace
