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

/// Requests wait in the order of their arrival. `Cancel` passes all of them, and `Release` passes those that
/// do not name its lease, so that a client can always end what it waits for. Other requests keep their order.
///
/// Pure: no actor. Used by the connection's thread only.
class waiting_requests {
 public:
  struct bounds {
    uint32_t requests = 0; ///< not counting requests that give something back
    uint64_t bytes = 0;    ///< bytes of their frames
  };
  using time_point = std::chrono::steady_clock::time_point;
  /// Frames of at most this many bytes together may wait here however full the group's memory is.
  static constexpr uint64_t always_bytes = protocol::hello_bytes_max;

  struct entry {
    protocol::frame frame;
    keep_alive body;       ///< owns the frame's bytes
    bool has_room = false; ///< there was room in the group's memory when it was received
    lease_id lease{};      ///< the lease that it names, if any
    time_point arrived{};
    uint64_t bytes() const { return frame.body.size() + protocol::header_bytes; }
    /// The header that the frame had.
    protocol::frame_header header() const;
  };

  explicit waiting_requests(const bounds& most) : most_(most) {}

  /// True if a frame with this header may wait here too.
  bool has_place(const protocol::frame_header& next) const;
  /// True if the frame needs no room in the group's memory.
  bool needs_no_room(const protocol::frame_header& next) const {
    return gives_back(next) || bytes_ + next.length <= always_bytes;
  }

  /// True if the request may be served before those that wait.
  bool may_pass(const protocol::frame& next) const;

  /// `hold` keeps the frame's bytes where they are. A short frame is copied instead, because `hold` keeps
  /// more memory than that.
  void add(protocol::frame frame, bool has_room, time_point now, const std::function<keep_alive()>& hold);

  const entry* first() const { return line_.empty() ? nullptr : &line_.front(); }
  entry take_first();
  /// Takes the first request with this id.
  std::optional<entry> take(request_id id);
  void clear();

  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  static bool gives_back(const protocol::frame_header& header) {
    return protocol::gives_back(header.kind) && header.length <= protocol::giving_back_bytes_max;
  }
  entry take_at(size_t index);

  bounds most_;
  std::deque<entry> line_;
  uint64_t bytes_ = 0;
  uint32_t giving_back_ = 0;
  size_t descriptors_ = 0;
};

} // namespace terrace
