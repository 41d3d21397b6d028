// Tells whether the volume of a trust group serves, from its opening on.
#pragma once

#include "tier/messages.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace terrace {

/// The state of a trust group's volume.
enum class disk_phase : uint8_t {
  off,      ///< not configured, or turned off
  starting, ///< being opened
  locked,   ///< another process has one of its files open
  ready,    ///< its tier serves
  refused,  ///< it could not be opened
};

/// Set by one thread at a time, read on any thread.
class volume_state {
 public:
  disk_phase phase() const { return phase_.load(std::memory_order_acquire); }
  const std::string& refusal() const { return refusal_; } ///< set once the phase is `refused`

  void starting() { phase_ = disk_phase::starting; }
  void locked() { phase_ = disk_phase::locked; }
  void ready() { phase_ = disk_phase::ready; }
  void refuse(std::string why) {
    refusal_ = std::move(why);
    phase_ = disk_phase::refused;
  }

  /// The volume's tier has not joined yet: it may have objects that cannot be found now.
  bool will_join() const { return phase() == disk_phase::starting || phase() == disk_phase::locked; }

  /// Returns what status shows for a volume whose tier has not joined; nullopt if it is off.
  std::optional<tier_report> report_absent() const {
    disk_phase now = phase();
    if (now == disk_phase::off)
      return std::nullopt;
    tier_report report;
    report.kind = tier_kind::disk;
    report.state = now == disk_phase::refused ? "degraded" : "starting";
    report.reason = now == disk_phase::refused ? refusal()
                    : now == disk_phase::locked
                        ? "another process has its file open; the tier starts when that process closes it"
                        : "its file is being prepared";
    return report;
  }

 private:
  std::atomic<disk_phase> phase_{disk_phase::off};
  std::string refusal_;
};

} // namespace terrace
