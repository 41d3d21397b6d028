// Files as objects: `terrace put` divides a file into pieces, and `terrace get` finds them.
//
// A file's key is the SHA-256 of its bytes, so it is known without asking the daemon, `sha256sum` computes it
// too, and equal files are stored once. The digests of the pieces form a chain from the key: the first is the
// key itself, each next one is the SHA-256 of the previous. The first piece begins with a header that
// contains the file's size; the last is padded with zeros.
#pragma once

#include "base/digest.hpp"
#include "cli/failure.hpp"
#include "client/types.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::cli {

constexpr size_t file_header_bytes = 64;
constexpr uint64_t file_object_bytes_least = 4096;
constexpr uint64_t file_object_bytes_most = 1ULL << 30;
constexpr uint64_t file_pieces_max = 65'536; ///< a request has at most this many chunks

/// The space of files with this object size; each size has its own. A chunk has one "token": here it is a
/// piece of a file.
client::space_spec file_space(uint64_t object_bytes);

/// Computes SHA-256 from pieces.
class file_hasher {
 public:
  file_hasher();
  ~file_hasher();
  file_hasher(const file_hasher&) = delete;
  file_hasher& operator=(const file_hasher&) = delete;
  void add(std::span<const std::byte> bytes);
  digest finish();

 private:
  void* context_;
};

uint64_t pieces_of(uint64_t file_bytes, uint64_t object_bytes);
std::vector<digest> piece_digests(const digest& key, uint64_t pieces);

/// magic "TERRFILE", version, size, little-endian; the rest is zero.
void write_file_header(std::span<std::byte> piece, uint64_t file_bytes);

/// Returns the file's size; nullopt if the piece does not begin with a header.
std::optional<uint64_t> read_file_header(std::span<const std::byte> piece);

/// Parses 64 hexadecimal digits.
outcome<digest> parse_file_key(const std::string& text);

} // namespace terrace::cli
