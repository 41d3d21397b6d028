// Makes requests of a trace from the lookups of a daemon.
#pragma once

#include "cli/trace.hpp"
#include "client/admin.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace terrace::cli {

/// Digests become numbers in the order in which they are seen: neither prompts nor digests are in the trace. One file has
/// one space, because its ids have one size. Pure.
class lookup_recorder {
 public:
  /// `space`: 0: that of the first lookup. Beyond `chunks_max` different chunks, lookups with new ones are left out; each takes about
  /// 100 bytes.
  lookup_recorder(uint32_t space, size_t chunks_max) : space_(space), chunks_max_(chunks_max) {}

  /// `now_ms`: time on the clock of the caller at which the daemon told the lookup. Returns nullopt if it is left out.
  std::optional<trace_request> add(const client::recent_lookup& lookup, uint64_t now_ms);

  uint64_t other_spaces() const { return other_spaces_; } ///< left out: lookups of other spaces
  uint64_t unknown_begins() const {
    return unknown_begins_;
  }                                   ///< left out: what comes before their chunks is not known
  bool full() const { return full_; } ///< a lookup was left out because of `chunks_max`
  uint32_t space() const { return space_; }
  uint32_t chunk_tokens() const { return chunk_tokens_; }

 private:
  static constexpr uint64_t nothing = 0; ///< before the first chunk

  /// The ids up to a chunk.
  std::vector<uint64_t> path_to(uint64_t id) const;

  uint32_t space_;
  const size_t chunks_max_;
  uint32_t chunk_tokens_ = 0;
  std::map<digest, uint64_t> ids_;         ///< from 1 on
  std::vector<uint64_t> parents_{nothing}; ///< the id before each id
  std::optional<uint64_t> begin_ms_;
  uint64_t last_ms_ = 0;
  uint64_t tails_ = 0;
  uint64_t other_spaces_ = 0, unknown_begins_ = 0;
  bool full_ = false;
};

} // namespace terrace::cli
