// Requests that have arrived and wait for credit, or for room in the memory of their trust group.
#pragma once

#include "base/ids.hpp"
#include "base/keep_alive.hpp"
#include "protocol/frame.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// In the order of their arrival. `Cancel` passes all of them, and `Release` those that do not name its lease: so a client
/// can always end what it waits for. Anything else keeps its order.
///
/// Pure: no actor. Used by one thread at a time, that of the connection.
class waiting_requests {
 public:
  struct bounds {
    uint32_t requests = 0; ///< beside those that give something back
    uint64_t bytes = 0;    ///< of their frames
  };
  using time_point = std::chrono::steady_clock::time_point;
  /// Frames of so many bytes together wait whatever memory the group has.
  static constexpr uint64_t always_bytes = protocol::hello_bytes_max;

  struct entry {
    protocol::frame frame;
    keep_alive body;       ///< owns the frame's bytes
    bool has_room = false; ///< it was received with room in the group's memory
    lease_id lease{};      ///< that it names, if any
    time_point arrived{};
    uint64_t bytes() const { return frame.body.size() + protocol::header_bytes; }
    /// What its header said.
    protocol::frame_header header() const;
  };

  explicit waiting_requests(const bounds& most) : most_(most) {}

  /// True if a frame with this header may wait here too.
  bool has_place(const protocol::frame_header& next) const;
  /// True if that needs no room in the group's memory.
  bool needs_no_room(const protocol::frame_header& next) const {
    return gives_back(next) || bytes_ + next.length <= always_bytes;
  }

  /// True if the request may be served before those that wait.
  bool may_pass(const protocol::frame& next) const;

  /// `hold` keeps the frame's bytes where they are; a short frame is copied instead, because what `hold` keeps is larger.
  void add(protocol::frame frame, bool has_room, time_point now, const std::function<keep_alive()>& hold);

  const entry* first() const { return line_.empty() ? nullptr : &line_.front(); }
  entry take_first();
  /// The first with this id.
  std::optional<entry> take(request_id id);
  void clear();

  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  static bool gives_back(const protocol::frame_header& what) {
    return protocol::gives_back(what.kind) && what.length <= protocol::giving_back_bytes_max;
  }
  entry take_at(size_t index);

  bounds most_;
  std::deque<entry> line_;
  uint64_t bytes_ = 0;
  uint32_t giving_back_ = 0;
  size_t descriptors_ = 0;
};

} // namespace terrace
