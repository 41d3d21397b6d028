// The credits of a tier below: how much of host memory may wait to be written there.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/fair_queue.hpp"
#include "base/request_context.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/space/write_credit.hpp"
#include "transfer/write_through_messages.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace terrace {

// Limits how much of host memory may wait for the disk. A store takes credit before it takes memory, so a
// burst of stores leaves room for loads, and waits for the disk itself. Pure.

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

class credit_issuer {
 public:
  /// `bytes_max`: of host memory that may wait, writes in progress included. A limit becomes half of `memory` when that
  /// changes its size; UINT64_MAX: none. `memory` may be null. `sink`: where credits are returned.
  credit_issuer(uint64_t bytes_max, std::shared_ptr<const segmented_arena> memory, credit_sink_ptr sink);

  /// Answers at once, or when there is enough credit, or the request ends.
  void issue(const write_credit_request& request, std::function<void(write_credit_answer)> answer);
  /// Gives the notice a credit if it has none. False: none is free, and it is dropped.
  bool admit(write_through_notice& notice);
  void put_back(const write_credit_notice& notice);
  /// Requests that wait for credit.
  size_t waiting() const { return credits_.waiting(); }
  uint64_t bytes_max() const { return credits_.bytes_max(); }
  /// Answers requests that have ended.
  void sweep() { credits_.sweep(); }

 private:
  void follow_memory();
  credit_ptr credit_of(uint64_t bytes) const { return std::make_shared<write_credit>(sink_, bytes); }

  std::shared_ptr<const segmented_arena> memory_; ///< null: the limit stays
  credit_sink_ptr sink_;
  write_credits credits_;
};

} // namespace terrace
