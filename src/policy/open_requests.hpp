// Requests whose accesses are recorded and whose end is not: which entries were accessed, and which made room.
#pragma once

#include "base/access_clock.hpp"
#include "base/eviction_types.hpp"
#include "policy/access_history.hpp"
#include "policy/entry_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

// A request for a long chain, whose accesses are recorded in parts.

/// Other events may be applied between the parts. First call `find` for the whole chain, root first: how much of the
/// chain is known decides how the history classifies the request. Then record the accesses, from the end of the chain
/// to its root: call `go_on` before each part, and `mark` for each entry. Used by one thread at a time.
class long_request {
 public:
  long_request() = default;
  long_request(request_number number, const request_hints& hints) : number_(number), hints_(hints) {}

  request_number number() const { return number_; }
  uint8_t retention() const { return std::min<uint8_t>(hints_.retention, 7); }

  /// `remember`: entries that are not in the table will be added.
  void find(const entry_table& table, std::span<const entry_key> part, bool remember);

  /// `stamp` is that of the request's accesses, the same for all parts.
  void go_on(access_history& history, const entry_table& table, uint32_t stamp);
  /// The entry is accessed next. Entries that appeared in the meantime count as the first of the chain.
  void mark(access_history& history, entry_index at);

 private:
  request_number number_ = 0;
  request_hints hints_;
  size_t found_ = 0; ///< entries that are, or will be, in the table
  size_t known_ = 0; ///< how many of these precede the last one that was in the table, including it
  entry_key last_known_;
  size_t left_ = 0;                            ///< entries not accessed yet
  std::optional<access_history::begun> begun_; ///< set once the first part is accessed
};

struct open_request {
  uint32_t stamp = 0; ///< the stamp of its accesses
  uint8_t retention = 0;
  std::vector<entry_index> chain; ///< kept only if the length of the answer is needed

  /// One of the request's own objects, behind `parent`, was proposed as a victim to make room for the request.
  void gave_up(entry_key key, entry_key parent) {
    if (given_up_.size() < given_up_max)
      given_up_[key] = parent;
  }
  /// Returns the parent of an object that the request gave up; empty if it did not give it up, or if the
  /// object has no parent.
  entry_key parent_of(entry_key given_up) const {
    auto found = given_up_.find(given_up);
    return found == given_up_.end() ? entry_key{} : found->second;
  }
  static constexpr size_t given_up_max = 1024; ///< beyond this number, a gap stays a gap

 private:
  std::unordered_map<entry_key, entry_key> given_up_;
};

/// Keeps at most `requests_max` requests: the oldest is dropped for a newer one. Not thread-safe.
class open_requests {
 public:
  static constexpr size_t requests_max = 4096;

  std::pair<request_number, open_request*> begin(uint32_t stamp, uint8_t retention) {
    open_request& request = open_[++last_];
    request.stamp = stamp;
    request.retention = std::min<uint8_t>(retention, 7);
    if (open_.size() > requests_max)
      open_.erase(open_.begin());
    return {last_, &request};
  }
  /// Null if the request has ended or was dropped. Valid until the next `begin` or `end`.
  open_request* find(request_number number) {
    auto found = open_.find(number);
    return found == open_.end() ? nullptr : &found->second;
  }
  void end(request_number number) { open_.erase(number); }
  size_t size() const { return open_.size(); }

  /// The clock's base has moved.
  void rebase() {
    for (auto& [number, request] : open_)
      request.stamp = access_clock::rebased(request.stamp);
  }

 private:
  request_number last_ = 0;
  std::map<request_number, open_request> open_;
};

inline void long_request::find(const entry_table& table, std::span<const entry_key> part, bool remember) {
  for (entry_key key : part) {
    bool tracked = table.find(key) != no_entry;
    if (!tracked && (!remember || key.empty()))
      continue;
    ++found_;
    if (!tracked)
      continue;
    known_ = found_;
    last_known_ = key;
  }
}

inline void long_request::go_on(access_history& history, const entry_table& table, uint32_t stamp) {
  if (!begun_) {
    entry_index last = known_ == 0 ? no_entry : table.find(last_known_);
    if (last == no_entry) // never added, or forgotten meanwhile
      known_ = 0;
    begun_ = history.open(found_, known_, last, hints_.turn, hints_.space);
    left_ = found_;
  }
  history.go_on(*begun_, stamp);
}

inline void long_request::mark(access_history& history, entry_index at) {
  left_ -= left_ == 0 ? 0 : 1;
  history.mark(*begun_, at, left_);
}

} // namespace terrace
