// A request for a long chain, whose accesses are recorded in parts.
#pragma once

#include "base/eviction_types.hpp"
#include "policy/access_history.hpp"
#include "policy/entry_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace terrace {

/// Other events may be applied between the parts. First call `find` for the whole chain, root first: how much of the
/// chain is known decides how the history classifies the request. Then record the accesses, from the end of the chain
/// to its root: call `go_on` before each part, and `mark` for each entry. Used by one thread at a time.
class long_request {
 public:
  long_request() = default;
  long_request(request_number number, const request_hints& hints) : number_(number), hints_(hints) {}

  request_number number() const { return number_; }
  uint8_t priority() const { return std::min<uint8_t>(hints_.priority, 7); }

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

} // namespace terrace
