// The credits of a tier below: how much of host memory may wait to be written there.
//
// Pure: used by one thread at a time.
#pragma once

#include "memory/segmented_arena.hpp"
#include "tier/space/write_credit.hpp"
#include "tier/space/write_credits.hpp"
#include "transfer/write_through_messages.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace terrace {

class credit_issuer {
 public:
  /// `bytes_max`: of host memory that may wait, writes in progress included. A limit becomes half of `memory` when that
  /// changes its size; UINT64_MAX: none. `memory` may be null. `sink`: where credits are returned.
  credit_issuer(uint64_t bytes_max, std::shared_ptr<const segmented_arena> memory, credit_sink_ptr sink);

  /// Answers at once, or when there is enough credit, or the request ends.
  void issue(const write_credit_request& request, std::function<void(write_credit_answer)> answer);
  /// Gives the notice a credit if it has none. False: none is free, and it is dropped.
  bool admit(write_through_notice& notice);
  void take_back(const write_credit_notice& notice);
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
