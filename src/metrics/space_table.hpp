// Hits and bytes per space, with a number of series that clients cannot increase without limit.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace terrace::metrics {

/// Counters of one space, or of all spaces without series of their own. Safe on any thread.
class space_probe {
 public:
  void asked(uint64_t tokens) noexcept { asked_tokens_.add(tokens); } ///< by lookups and loads
  void hit(tier_kind tier, uint64_t tokens) noexcept;
  void loaded(uint64_t bytes) noexcept { loaded_bytes_.add(bytes); }
  void stored(uint64_t bytes) noexcept { stored_bytes_.add(bytes); }

  uint64_t asked_tokens() const noexcept { return asked_tokens_.value(); }
  uint64_t hit_tokens(tier_kind tier) const noexcept {
    return hit_tokens_[static_cast<size_t>(tier)].value();
  }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  counter asked_tokens_, loaded_bytes_, stored_bytes_;
  std::array<counter, tier_kinds> hit_tokens_; // gpu, host, disk, remote
};

/// Gives the first `named_max` spaces their own probes for the lifetime of the daemon; all further spaces of
/// a group share its `other`. Thread-safe; call once when a space is opened.
class space_table {
 public:
  explicit space_table(size_t named_max) : named_max_(named_max) {}

  /// A client chooses `name` (its model's name): in labels, bytes other than printable ASCII become '?', and
  /// the first 100 are kept. Never null. `group` must come from the configuration.
  std::shared_ptr<space_probe> probe(const std::string& group, std::string_view name);

  /// The tokens of all spaces of a trust group.
  struct token_totals {
    uint64_t asked = 0;
    std::array<uint64_t, tier_kinds> hit{}; ///< by tier
  };
  token_totals totals(const std::string& group) const;

  void collect(sample_sink& sink) const;

 private:
  using place = std::pair<std::string, std::string>; // group, label

  size_t named_max_;
  mutable std::mutex mutex_;
  size_t named_ = 0;
  std::map<place, std::shared_ptr<space_probe>> probes_;
};

} // namespace terrace::metrics
