// Fairness between trust groups whose files are on one device: what each may have in flight.
//
//   auto device = std::make_shared<shared_device>();
//   device_share share(device, group, limits);      // one for each file
//   while (... = scheduler.next(heads, share.room()))  // and share.finished(bytes) as operations complete
//   share.idle();                                    // once nothing waits and nothing is in flight
//
// A device serves all submitted operations in parallel, so what a group gets of it follows from what the group has in
// flight. While several groups are active, each has an equal part of `io_limits::shared_bytes` and of `depth` in
// flight, in pieces of `beside_bytes`. A group that is alone again ramps up: each completed byte allows one more in
// flight. So a reader that returns soon after its last read meets few operations of others, and no clock is needed to
// tell that it has ended. At least one operation is always allowed: no group waits for another, and none has to be
// woken.
#pragma once

#include "transfer/io_scheduler.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace terrace {

/// Which trust groups use a device at present. Safe on any thread.
class shared_device {
 public:
  /// A trust group, whose files on the device divide its part.
  struct member {
    std::atomic<uint32_t> active_files{0};
    std::atomic<uint64_t> arrivals{0};
  };

  std::shared_ptr<member> member_of(uint64_t group);

  /// A file of the member has something to do, or nothing any more.
  void begin(member& path);
  void end(member& path);

  uint32_t active_groups() const { return active_groups_.load(std::memory_order_relaxed); }
  /// How often another group than `of` became active.
  uint64_t arrivals_of_others(const member& path) const {
    return arrivals_.load(std::memory_order_relaxed) - path.arrivals.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> active_groups_{0};
  std::atomic<uint64_t> arrivals_{0};
  std::mutex lock_;
  std::map<uint64_t, std::weak_ptr<member>> members_; ///< by group
};

/// The part of one file. Used by one thread at a time.
class device_share {
 public:
  device_share(std::shared_ptr<shared_device> device, uint64_t group, const io_limits& limits);
  ~device_share() { idle(); }
  device_share(const device_share&) = delete;
  device_share& operator=(const device_share&) = delete;

  /// For an operation that waits: what may be in flight now, this operation included.
  io_room room();
  /// An operation that was started within that room has completed.
  void finished(uint64_t bytes);
  /// Nothing waits, and nothing is in flight.
  void idle();

  /// Another group was active at the last `room`.
  bool contended() const { return contended_; }

 private:
  std::shared_ptr<shared_device> device_;
  std::shared_ptr<shared_device::member> group_;
  io_limits limits_;
  bool active_ = false;
  bool contended_ = false;
  bool limited_ = false;  ///< another group is active, or was a short time ago
  io_room room_;          ///< while it is limited
  uint64_t arrivals_ = 0; ///< of other groups, when it was limited last
};

} // namespace terrace
