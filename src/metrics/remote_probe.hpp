// Counts what a remote tier asks of its store.
#pragma once

#include "metrics/latency_histogram.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace terrace::metrics {

/// Why a value that was read was a miss. From `not_ours` on these are the faults of a value, in their order
/// (remote/value_header.hpp).
enum class remote_miss : uint8_t {
  absent,       ///< the store has evicted it, or it has ended
  other_length, ///< the value has another length
  refused,      ///< the store refused the command
  cleared,      ///< another machine cleared the space meanwhile
  unanswered,   ///< the connection ended first
  not_ours,
  other_version,
  damaged,
  other_object,
  other_payload_length,
  other_part,
  wrong_payload,
  other_encryption,
  not_authentic,
};
constexpr std::array<std::string_view, 14> remote_misses{
    "absent",     "other_length",  "refused",          "cleared",      "unanswered",
    "not_ours",   "other_version", "damaged",          "other_object", "other_payload_length",
    "other_part", "wrong_payload", "other_encryption", "not_authentic"};

/// A replica that was asked for an object ends like this.
enum class replica_answer : uint8_t {
  read,
  asked_primary, ///< it was not there, or the replica was lost or refused
  damaged,       ///< its values were not as they were written; the primary was asked
};
constexpr std::array<std::string_view, 3> replica_answers{"read", "asked_primary", "damaged"};

/// Safe on any thread.
class remote_probe {
 public:
  void known() noexcept { known_.add(); }
  void asked(bool present) noexcept { (present ? present_ : absent_).add(); }
  void late() noexcept { late_.add(); }
  void missed(remote_miss why) noexcept { misses_[static_cast<size_t>(why)].add(); }
  void moved(bool written, uint64_t bytes) noexcept {
    (written ? written_ : read_).add();
    (written ? written_bytes_ : read_bytes_).add(bytes);
  }
  /// Values were written with so many bytes behind their headers.
  void stored(uint64_t bytes) noexcept { stored_bytes_.add(bytes); }
  /// A request was sent a second time; `won`: and that one was answered first.
  void hedged(bool won) noexcept { (won ? hedges_won_ : hedges_).add(); }
  /// What was asked over a connection that was lost is asked once more; `writes`: it changes the store.
  void retried(bool writes) noexcept { (writes ? write_retries_ : read_retries_).add(); }
  void replica_answered(replica_answer how) noexcept { by_replica_[static_cast<size_t>(how)].add(); }
  void cleared_by_other() noexcept { cleared_.add(); }
  /// The store has answered a question, with the time that it took. On one thread.
  void answered(std::chrono::nanoseconds took) noexcept;

  struct recent_answers {
    uint32_t count = 0;
    std::chrono::nanoseconds mean{0}, slowest{0};
  };
  recent_answers recent() const noexcept; ///< the last 64
  uint64_t read_bytes() const noexcept { return read_bytes_.value(); }
  uint64_t written_bytes() const noexcept { return written_bytes_.value(); }
  uint64_t stored_bytes() const noexcept { return stored_bytes_.value(); }
  uint64_t misses(size_t why) const noexcept { return misses_[why].value(); }
  uint64_t hedges() const noexcept { return hedges_.value(); }
  uint64_t hedges_won() const noexcept { return hedges_won_.value(); }
  uint64_t retries(bool writes) const noexcept { return (writes ? write_retries_ : read_retries_).value(); }
  uint64_t replica_answers_of(replica_answer how) const noexcept {
    return by_replica_[static_cast<size_t>(how)].value();
  }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  counter known_, present_, absent_, late_, read_, written_, read_bytes_, written_bytes_, stored_bytes_,
      cleared_, hedges_, hedges_won_, read_retries_, write_retries_;
  std::array<counter, replica_answers.size()> by_replica_;
  std::array<counter, remote_misses.size()> misses_;
  latency_histogram answers_;
  std::array<gauge, 64> recent_ns_;
  counter answered_;
};

} // namespace terrace::metrics
