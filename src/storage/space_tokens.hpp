// The epoch tokens of a store that machines share, as one machine knew them last: a record in the state directory. A machine that was
// away reads there whether others have cleared meanwhile what its own disk has (remote/epoch_token.hpp).
//
//   auto tokens = read_tokens("/var/lib/terrace", "default realm");
//   ...
//   write_tokens("/var/lib/terrace", "default realm", tokens);   // durable when it returns
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace terrace {

struct space_tokens {
  /// Of a record that cannot be read, and of what is being cleared: no store has it, so whatever the store has is another one.
  static constexpr uint64_t unreadable = UINT64_MAX;
  /// Spaces that are kept; of others it is not noticed that they were cleared meanwhile.
  static constexpr size_t spaces_max = 4'096;

  uint64_t all = 0; ///< of all spaces together; 0: none is known
  std::map<space_fingerprint, uint64_t> of;
  friend bool operator==(const space_tokens&, const space_tokens&) = default;
};

// `name`: whose they are, of all that use the folder. Both may block on the file system, and are safe on any thread.

/// No tokens if there is no record. A record that is damaged, or cannot be read, has `unreadable` for all spaces.
space_tokens read_tokens(const std::string& folder, const std::string& name);

/// Replaces the record. Errors: the system's.
result<void> write_tokens(const std::string& folder, const std::string& name, const space_tokens& tokens);

} // namespace terrace
