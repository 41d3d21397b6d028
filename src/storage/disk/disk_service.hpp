// The service state of a disk tier's paths: set by their actors, read on any thread.
#pragma once

#include "tier/messages.hpp"
#include "tier/tier_config.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace terrace {

// Tells whether the volume of a trust group serves, from its opening on.

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

class disk_service final : public tier_availability {
 public:
  /// `left_out` is the reason for paths that could not be opened and are not among these, or empty.
  explicit disk_service(size_t paths = 1, std::string left_out = {})
      : paths_(paths), each_(std::make_unique<path_state[]>(paths)), left_out_(std::move(left_out)) {}

  size_t paths() const { return paths_; }

  /// True if objects on this path can be read. Otherwise they count as misses; they may become readable
  /// again.
  bool reads(size_t path) const { return each_[path].reads.load(std::memory_order_acquire); }
  /// True if objects may be written: the path is healthy, or it is time to retry.
  bool writes(size_t path) const { return each_[path].writes.load(std::memory_order_acquire); }

  /// True if any path can be read.
  bool reads() const override {
    return std::any_of(each_.get(), each_.get() + paths_,
                       [](const path_state& path) { return path.reads.load(); });
  }
  bool writes() const override {
    return std::any_of(each_.get(), each_.get() + paths_,
                       [](const path_state& path) { return path.writes.load(); });
  }

  /// Returns why the tier is degraded, per path; empty if it is not.
  std::string reason() const override {
    std::lock_guard lock(mutex_);
    std::string all = left_out_;
    for (size_t i = 0; i < paths_; ++i)
      if (!each_[i].reason.empty())
        all += (all.empty() ? "" : "; ") + each_[i].reason;
    return all;
  }
  std::string notice() const override {
    std::lock_guard lock(mutex_);
    std::string all;
    for (size_t i = 0; i < paths_; ++i)
      for (const std::string& notice : each_[i].notices)
        if (!notice.empty())
          all += (all.empty() ? "" : "; ") + notice;
    return all;
  }
  /// The subject of a notice; each subject has its own.
  enum class about : uint8_t { room, damage, readers };
  void set_notice(size_t path, about subject, std::string notice) {
    std::lock_guard lock(mutex_);
    each_[path].notices[static_cast<size_t>(subject)] = std::move(notice);
  }
  std::string reason(size_t path) const {
    std::lock_guard lock(mutex_);
    return each_[path].reason;
  }

  /// `after` is called with whether the tier is degraded, before another change can happen.
  template <class After>
  void set(size_t path, bool reads, bool writes, std::string reason, After&& after) {
    std::lock_guard lock(mutex_);
    each_[path].reason = std::move(reason);
    each_[path].reads.store(reads, std::memory_order_release);
    each_[path].writes.store(writes, std::memory_order_release);
    after(!left_out_.empty() || std::any_of(each_.get(), each_.get() + paths_,
                                            [](const path_state& one) { return !one.reason.empty(); }));
  }

 private:
  struct path_state {
    std::atomic<bool> reads{true};
    std::atomic<bool> writes{true};
    std::string reason;
    std::array<std::string, 3> notices; ///< indexed by `about`
  };

  size_t paths_;
  std::unique_ptr<path_state[]> each_;
  std::string left_out_;
  mutable std::mutex mutex_; ///< protects reasons and notices
};

} // namespace terrace
