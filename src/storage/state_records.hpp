// Small text files in the state directory. Each is replaced as a whole: after a crash it is as it was before the last change or behind
// it. A lock on the directory serializes threads and daemons.
//
// All calls may block on the file system; they are safe on any thread. Errors: the system's.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "index/object_header.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace terrace {

/// Makes the folder, if it is not there, and locks it until the descriptor is closed. `unsupported`: `folder` is empty.
result<unique_fd> lock_state_folder(const std::string& folder);

/// The record of this kind about `name`, which may be any text.
std::string record_path(const std::string& folder, std::string_view kind, std::string_view name);

/// The first `record_bytes_max` bytes; nullopt: there is no record. `doing`: for an error.
constexpr size_t record_bytes_max = 1 << 20;
result<std::optional<std::string>> read_record(const std::string& path, const std::string& doing);

/// Durable when it returns. An empty text removes the record. `folder` is locked.
result<void> replace_record(const std::string& path, const std::string& text, const unique_fd& folder);

/// With a last line that tells whether the text is whole.
std::string with_checksum(std::string text);
/// Without that line; nullopt: the text is not whole.
std::optional<std::string> without_checksum(const std::string& text);

/// Of as many hexadecimal digits; false: they are none.
bool parse_hex(std::string_view text, std::span<uint8_t> bytes);

// The epoch tokens of a store that machines share, as one machine knew them last. A machine that was away reads there whether others
// have cleared meanwhile what its own disk has (remote/epoch_token.hpp).

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
