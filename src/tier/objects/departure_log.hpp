// Why objects have left the tiers of a trust group, or were not taken by them, for whoever asks why one of them is a miss.
//
// The last departures are kept, in sets of four as in a processor's cache: a departure replaces the oldest one of its set.
// So a record costs 16 bytes and two memory accesses, and 65,536 of them 1 MiB. An object that has come back keeps its
// record until it leaves again; callers look for the object first.
//
// A tier that does not take an object leaves a record as well, in most cases while a faster tier still has the object. If it then
// leaves that one to make room, it is the refusal that matters: the record stays, and gets the time of the departure.
//
// How long an evicted object was not used is known to the policy, which tells it afterwards. It takes the last byte of the record: a
// time on a scale of eight steps for each power of two. When an object was stored is known to nobody: a table has one cache line for
// each object, and all of it is taken.
#pragma once

#include "base/ids.hpp"
#include "base/miss_reason.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

struct departure {
  miss_reason why = miss_reason::not_stored;
  tier_kind from = nowhere; ///< the tier that it has left, or that did not take it
  uint32_t seconds_ago = 0;
  std::string policy{}; ///< the policy that chose it; empty: it was not evicted, or no policy is known
  std::optional<refusal_reason> refused{}; ///< why `from` did not take it
  /// The time between its last use and its eviction, at most 5 % or a second wrong; nullopt: it was not evicted, or its policy has
  /// not told it.
  std::optional<std::chrono::seconds> unused{};
};

/// A time in a byte, of up to 70 years: at most 5 % wrong, or a second if that is more.
class rough_time {
 public:
  rough_time() = default; ///< none
  explicit rough_time(std::chrono::seconds time)
      : code_(static_cast<uint8_t>(
            std::min(255.0, 1 + std::round(steps * std::log2(1.0 + static_cast<double>(std::max<int64_t>(
                                                                       0, time.count()))))))) {}
  std::optional<std::chrono::seconds> seconds() const {
    if (code_ == 0)
      return std::nullopt;
    return std::chrono::seconds(std::llround(std::exp2((code_ - 1) / steps) - 1));
  }

 private:
  static constexpr double steps = 8; ///< for each power of two
  uint8_t code_ = 0;
};

/// Safe on any thread.
class departure_log {
 public:
  static constexpr size_t records_max = 65'536;
  static constexpr size_t set_records = 4;

  /// `seconds` tells the time; the log subtracts its values from one another. It takes its memory with the first record.
  explicit departure_log(uint32_t (*seconds)()) : seconds_(seconds) {}

  /// The tier evicts by this policy from now on.
  void policy_is(tier_kind tier, std::string_view name);

  void add(entry_key name, tier_kind from, miss_reason why);
  /// The policy's word on an object that `from` has evicted: how long nobody had used it.
  void was_unused(entry_key name, tier_kind from, std::chrono::seconds before);
  /// The tier was to get the object, and did not take it.
  void add_refusal(entry_key name, tier_kind by, refusal_reason why);
  /// Returns the last departure of this object; nullopt: none is known.
  std::optional<departure> find(entry_key name) const;
  size_t bytes() const;

 private:
  struct record {
    uint64_t name = 0; ///< half of the entry's name: the other half chooses the set
    uint32_t second = 0;
    tier_kind from = nowhere;
    miss_reason why = miss_reason::not_stored; ///< an empty record
    uint8_t policy = 0;                        ///< position in `policies_`; of a refusal: its reason
    rough_time unused{};

    /// True if a tier below the one that the object leaves to make room has refused it.
    bool outlives(const record& left) const {
      return why == miss_reason::not_admitted && from > left.from &&
             (left.why == miss_reason::evicted || left.why == miss_reason::retired);
    }
  };
  static_assert(sizeof(record) == 16);
  static size_t set_of(entry_key name) { return name.low % (records_max / set_records) * set_records; }

  void put(entry_key name, record added);

  uint32_t (*const seconds_)();
  mutable std::mutex mutex_;
  std::vector<std::string> policies_{""}; ///< grows by names of policies alone, of which there are a dozen
  std::array<uint8_t, tier_kinds> policy_of_{};
  std::vector<record> records_; ///< a set after the other, the newest record of each first
};

inline void departure_log::policy_is(tier_kind tier, std::string_view name) {
  std::lock_guard lock(mutex_);
  auto known = std::find(policies_.begin(), policies_.end(), name);
  if (known == policies_.end() && policies_.size() <= UINT8_MAX)
    known = policies_.insert(policies_.end(), std::string(name));
  if (auto place = static_cast<size_t>(tier); place < policy_of_.size())
    policy_of_[place] =
        known == policies_.end() ? uint8_t{0} : static_cast<uint8_t>(known - policies_.begin());
}

inline void departure_log::add(entry_key name, tier_kind from, miss_reason why) {
  record added{name.high, seconds_(), from, why};
  std::lock_guard lock(mutex_);
  if (auto place = static_cast<size_t>(from); why == miss_reason::evicted && place < policy_of_.size())
    added.policy = policy_of_[place];
  put(name, added);
}

inline void departure_log::was_unused(entry_key name, tier_kind from, std::chrono::seconds before) {
  std::lock_guard lock(mutex_);
  if (records_.empty())
    return;
  auto first = records_.begin() + static_cast<std::ptrdiff_t>(set_of(name));
  auto found = std::find_if(first, first + set_records, [&](const record& one) {
    return one.name == name.high && one.from == from && one.why == miss_reason::evicted;
  });
  if (found != first + set_records)
    found->unused = rough_time(before);
}

inline void departure_log::add_refusal(entry_key name, tier_kind by, refusal_reason why) {
  const record added{name.high, seconds_(), by, miss_reason::not_admitted, static_cast<uint8_t>(why)};
  std::lock_guard lock(mutex_);
  put(name, added);
}

inline void departure_log::put(entry_key name, record added) {
  if (records_.empty())
    records_.resize(records_max);
  auto first = records_.begin() + static_cast<std::ptrdiff_t>(set_of(name));
  auto last = first + set_records - 1;
  auto former = std::find_if(first, last, [&](const record& one) { return one.name == name.high; });
  if (former->name == name.high && former->outlives(added)) {
    added.from = former->from;
    added.why = former->why;
    added.policy = former->policy;
  }
  std::move_backward(first, former, former + 1);
  *first = added;
}

inline std::optional<departure> departure_log::find(entry_key name) const {
  std::lock_guard lock(mutex_);
  if (records_.empty())
    return std::nullopt;
  auto first = records_.begin() + static_cast<std::ptrdiff_t>(set_of(name));
  auto last = first + set_records;
  auto found = std::find_if(first, last, [&](const record& one) {
    return one.name == name.high && one.why != miss_reason::not_stored;
  });
  if (found == last)
    return std::nullopt;
  departure left{found->why, found->from, seconds_() - found->second};
  left.unused = found->unused.seconds();
  if (left.why == miss_reason::not_admitted)
    left.refused = static_cast<refusal_reason>(found->policy);
  else
    left.policy = policies_[found->policy];
  return left;
}

inline size_t departure_log::bytes() const {
  std::lock_guard lock(mutex_);
  return records_.size() * sizeof(record);
}

} // namespace terrace
