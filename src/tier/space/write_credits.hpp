// Limits how much of host memory may wait for the disk. A store takes credit before it takes memory, so a
// burst of stores leaves room for loads, and waits for the disk itself. Pure.
#pragma once

#include "base/fair_queue.hpp"
#include "base/request_context.hpp"

#include <cstdint>
#include <functional>

namespace terrace {

class write_credits {
 public:
  /// `ok`: the bytes are taken. Otherwise it says why the request ended while it waited.
  using reply = std::function<void(errc)>;

  explicit write_credits(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// The total credit follows an arena that grows or shrinks. Credits that are out stay out, and waiting
  /// requests are served with the next change.
  void set_bytes_max(uint64_t bytes_max) { bytes_max_ = bytes_max; }

  /// Connections get equal shares of the bytes (base/fair_queue.hpp). Smaller requests that fit may pass the
  /// first one that waits, among the first eight of each connection, together with as many bytes as it asks
  /// for. A request for more than the total credit is served when nothing else is outstanding.
  void ask(uint64_t bytes, context_ptr context, reply answer);
  /// Takes the bytes if they are available and no request waits.
  bool try_take(uint64_t bytes);
  void give_back(uint64_t bytes);
  /// Answers requests that have ended.
  void sweep();

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t out() const { return out_; }
  size_t waiting() const { return line_.size(); }

 private:
  struct waiting_request {
    uint64_t bytes = 0;
    uint64_t passing_left = 0; ///< bytes by which others may still pass it while it is first
    uint64_t number = 0;       ///< in order of arrival
    context_ptr context;
    reply answer;
  };
  bool fits(uint64_t bytes) const { return out_ == 0 || out_ + bytes <= bytes_max_; }
  turn offer(waiting_request& entry);
  void serve();

  uint64_t bytes_max_;
  uint64_t out_ = 0;
  uint64_t arrived_ = 0;
  fair_queue<waiting_request> line_;
};

} // namespace terrace
