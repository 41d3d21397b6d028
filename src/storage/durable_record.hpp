// Small text files in the state directory. Each is replaced as a whole: after a crash it is as it was before the last change or behind
// it. A lock on the directory serializes threads and daemons.
//
// All calls may block on the file system; they are safe on any thread. Errors: the system's.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
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

} // namespace terrace
