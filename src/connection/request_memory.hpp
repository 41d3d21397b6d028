// The memory that the requests of all connections of a trust group take together: unfinished frames, requests in
// flight with their objects, and answers that are not read.
#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace terrace {

/// Thread-safe. A connection begins a request, or receives the rest of a large frame, while there is room; otherwise it
/// waits in line and is woken when there is room again. A connection without requests may begin a small one.
///
/// A request that is made into many objects takes them once, when it is known how many, and gives them back when it is
/// answered. Those that wait for that have a line of their own: its first is served when there is room for all that it
/// takes, or when nobody else has any; so each is served in the end, and together they exceed the bound by one request.
/// Meanwhile there is no room for anything else.
class request_memory {
 public:
  explicit request_memory(uint64_t bytes_max)
      : bytes_max_(bytes_max), flood_bytes_(std::min(flood_bytes, bytes_max / 2)) {}

  /// True if there is room. Otherwise `wake` is called once, on any thread, unless the connection is already in line.
  bool has_room(connection_id who, const std::function<void()>& wake);

  /// The connection takes so much more or less than before; wakes the first in line if there is room. True: a flood is
  /// over, and freed memory should go back to the kernel.
  bool change(uint64_t before, uint64_t now);
  static constexpr uint64_t flood_bytes = 64ULL << 20; ///< or half of the bound, if that is less

  /// The connection was woken and needs no more room now, or has ended: the next in line is woken.
  void pass_on(connection_id who);

  /// Requests with so many bytes of objects or fewer do not wait for them: they are counted with the rest.
  static constexpr uint64_t few_bytes = 64 << 10;

  /// Takes the bytes of objects of a request. False: there is no room, or others wait; the connection is in line, and `wake`
  /// is called once it may take them: it then calls this again, or `leave`.
  bool take_objects(connection_id who, uint64_t bytes, const std::function<void()>& wake);
  /// The connection takes none now.
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
    uint64_t bytes = 0; ///< of objects
    bool woken = false; ///< and has not asked again yet
  };
  using wakes = std::array<std::function<void()>, 2>;
  wakes next();
  std::function<void()> next_with_objects();
  bool has_room() const { return bytes_ < bytes_max_ && with_objects_.empty(); }
  bool fits(uint64_t bytes) const { return objects_ == 0 || bytes_ + bytes <= bytes_max_; }

  const uint64_t bytes_max_;
  const uint64_t flood_bytes_;
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;   ///< with those of objects
  uint64_t objects_ = 0; ///< taken
  bool flooded_ = false; ///< there were `flood_bytes` or more, and are still more than a sixteenth of it
  std::deque<waiter> line_;
  std::deque<waiter> with_objects_; ///< the first stays until it takes them or leaves
};

} // namespace terrace
