// Counts what a remote tier asks of its store.
#pragma once

#include "metrics/samples.hpp"

#include <array>
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
};
constexpr std::array<std::string_view, 12> remote_misses{
    "absent",     "other_length",  "refused", "cleared",      "unanswered",
    "not_ours",   "other_version", "damaged", "other_object", "other_payload_length",
    "other_part", "wrong_payload"};

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
  void cleared_by_other() noexcept { cleared_.add(); }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  counter known_, present_, absent_, late_, read_, written_, read_bytes_, written_bytes_, cleared_;
  std::array<counter, remote_misses.size()> misses_;
};

} // namespace terrace::metrics
