// The memory that the requests of all connections of a trust group take together: unfinished frames, requests
// in flight with their objects, and unread answers.
#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace terrace {

/// Thread-safe. A connection begins a request, or receives the rest of a large frame, while there is room.
/// Otherwise it waits in a queue and is woken when there is room again. A connection without requests may
/// always begin a small one.
///
/// A request that is expanded into many objects takes memory for all of them at once, when their number is
/// known, and returns it when it is answered. Requests that wait for this have a queue of their own. The
/// first one is served when there is room for all its objects, or when no other request has any. So each is
/// served in the end, and together they exceed the bound by at most one request. Meanwhile there is no room
/// for anything else.
class request_memory {
 public:
  explicit request_memory(uint64_t bytes_max)
      : bytes_max_(bytes_max), flood_bytes_(std::min(flood_bytes, bytes_max / 4)) {}

  /// True if there is room. Otherwise `wake` is called once, on any thread, unless the connection is already
  /// queued.
  bool has_room(connection_id who, const std::function<void()>& wake);

  /// The connection's requests took `before` bytes and now take `now`; wakes the first in the queue if there
  /// is room. Returns true if a flood is over and freed memory should be returned to the kernel: so much was in use at once, or
  /// was taken for the objects of one request after another, and hardly anything is now.
  bool change(uint64_t before, uint64_t now);
  /// A quarter of the bound applies instead if that is less: the heap takes up to two and a half times what is counted here,
  /// and what a smaller number of requests leaves free there stays in it.
  static constexpr uint64_t flood_bytes = 64ULL << 20;

  /// The connection was woken and needs no more room now, or it has ended. The next in the queue is woken.
  void pass_on(connection_id who);

  /// Requests with at most this many bytes of objects do not wait for them: they are counted with the rest.
  static constexpr uint64_t few_bytes = 64 << 10;

  /// Takes memory for the objects of a request. False: there is no room, or others wait. The connection is
  /// then queued, and `wake` is called once it may take the memory; it calls this again, or `leave`.
  bool charge_objects(connection_id who, uint64_t bytes, const std::function<void()>& wake);
  /// The connection no longer wants memory for objects.
  void leave(connection_id who);
  void give_back_objects(uint64_t bytes);
  uint64_t object_bytes() const;

  /// True if somebody waits, or would have to.
  bool full() const;
  uint64_t bytes() const;
  size_t waiting() const;

 private:
  struct waiter {
    connection_id who{};
    std::function<void()> wake;
    uint64_t bytes = 0; ///< bytes of objects
    bool woken = false; ///< woken, and has not asked again yet
  };
  using wakes = std::array<std::function<void()>, 2>;
  wakes next();
  std::function<void()> next_with_objects();
  bool has_room() const { return bytes_ < bytes_max_ && with_objects_.empty(); }
  bool fits(uint64_t bytes) const { return objects_ == 0 || bytes_ + bytes <= bytes_max_; }

  const uint64_t bytes_max_;
  const uint64_t flood_bytes_;
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;               ///< includes the bytes of objects
  uint64_t objects_ = 0;             ///< bytes taken for objects
  uint64_t objects_since_flood_ = 0; ///< bytes taken for objects since the last flood was over
  bool flooded_ =
      false; ///< `flood_bytes` or more were in use or taken, and more than a sixteenth of that still is in use
  std::deque<waiter> line_;
  std::deque<waiter> with_objects_; ///< the first stays until it takes its memory or leaves
};

} // namespace terrace
