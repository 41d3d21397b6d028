// The 256 bytes in front of every value in a remote store.
//
// A store is shared with other writers and may lose, mix or damage what it holds. So a value says what it is, and a
// reader believes nothing before it has verified the header, the identity and the payload: whatever does not verify is
// a miss. The checksums detect damage, not forgery: who may write to the store may forge. A value that is encrypted
// (value_cipher.hpp) is authentic as well; its digest is another one than the chunk's, and it has no checksum of the payload, which would
// tell equal payloads.
//
// A value of 16-bit floats may be compressed (value_compression.hpp), and then encrypted. Its header says so by another version, because
// daemons without compression take a value for theirs if they know the version. Every reader accepts both kinds.
//
// An object whose payload is longer than `part_bytes` (in a bucket or with a plugin `bulk_part_bytes`) is several values, so that a store serves other requests in
// between. All parts carry the writer's generation; parts of two writers do not make an object.
//
//   offset  bytes  field (little-endian)
//        0      8  magic "TERRRMT\0"
//        8      4  version: 1; 2: encrypted; 3: compressed; 4: compressed and encrypted
//       12      2  pool
//       14      2  rank
//       16     16  space, as in the key (remote/realm.hpp)
//       32     32  digest of the chunk, padded with zeros
//       64      1  significant bytes of the digest: 8 to 32
//       65      7  0
//       72      8  epoch token of the space
//       80      8  generation: random, chosen by the writer, equal in all parts of an object
//       88      8  bytes of the object's payload
//       96      4  part, from 0 on
//      100      4  compressed: number of bytes behind the header; otherwise 0
//      104      8  XXH3 (64 bits, seed 0) of the bytes behind the header; encrypted: 0
//      112      8  XXH3 of these 256 bytes, with this field 0
//      120     32  encrypted: random number of the writer's run; otherwise 0
//      152     12  encrypted: nonce; otherwise 0
//      164      4  0
//      168     16  encrypted: tag; otherwise 0
//      184     72  0
//
// The bytes behind the header are those of the payload from part * part_bytes on, encrypted as many, compressed fewer. Pure.
#pragma once

#include "remote/realm.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace terrace::remote {

constexpr size_t value_header_bytes = 256;
constexpr uint32_t value_header_version = 1, sealed_value_header_version = 2;
constexpr uint32_t packed_value_header_version = 3, packed_sealed_value_header_version = 4;
constexpr uint64_t part_bytes =
    1 << 20; ///< of payload in one value, in a server that answers one after the other
constexpr uint64_t bulk_part_bytes =
    8 << 20; ///< the same in a bucket or with a plugin, where each value costs a request

/// How a value was encrypted. None of it is secret.
struct value_seal {
  std::array<uint8_t, 32> writer{};
  std::array<uint8_t, 12> nonce{};
  std::array<uint8_t, 16> tag{};

  friend bool operator==(const value_seal&, const value_seal&) = default;
};

struct value_header {
  remote_identity identity;
  uint64_t generation = 0;
  uint64_t payload_bytes = 0; ///< of the whole object
  uint32_t part = 0;
  uint32_t packed_bytes = 0; ///< of this part behind the header; 0: they are not compressed
  uint64_t checksum = 0;     ///< of this part's bytes behind the header; 0 if they are encrypted
  std::optional<value_seal> seal{};

  friend bool operator==(const value_header&, const value_header&) = default;
};

/// Number of values that an object takes; one if it is empty. `each`: bytes of the payload in a value.
constexpr uint64_t parts_of(uint64_t payload_bytes, uint64_t each = part_bytes) {
  return payload_bytes == 0 ? 1 : (payload_bytes + each - 1) / each;
}

/// Bytes of the payload in this part.
constexpr uint64_t bytes_of_part(uint64_t payload_bytes, uint64_t part, uint64_t each = part_bytes) {
  uint64_t begin = part * each;
  return payload_bytes <= begin ? 0 : payload_bytes - begin < each ? payload_bytes - begin : each;
}

/// The header must be valid (asserted): a digest of 8 to 32 bytes, a part that the payload has, an epoch that is not 0.
void encode(const value_header& header, std::span<std::byte, value_header_bytes> out);

/// Why a value is not used. Each is counted apart, because each has another cause.
enum class value_fault : uint8_t {
  not_ours,         ///< no header: somebody else writes to this prefix
  other_version,    ///< written by a newer or older Terrace
  damaged,          ///< the header's checksum or its fields are wrong
  other_object,     ///< another space, pool, rank, chunk or epoch
  other_length,     ///< the payload has another size
  other_part,       ///< parts in another order, or of two writers
  wrong_payload,    ///< the payload's checksum is wrong
  other_encryption, ///< it is not encrypted where it has to be, or the reverse
  not_authentic,    ///< it was not encrypted with this realm's key, or was changed since then
};
constexpr size_t value_faults = 9;

const char* to_string(value_fault fault);

struct rejected_value {
  value_fault fault{};
  std::string text; ///< what was expected, and what was found
};

/// Returns what the tag of an encrypted value authenticates beside its payload: all of the header but the tag and the checksum of
/// the header.
std::array<std::byte, value_header_bytes>
authenticated_part(std::span<const std::byte, value_header_bytes> header);

/// Decodes the header of one value. Nothing has been compared with the expected object yet.
tl::expected<value_header, rejected_value>
decode_value_header(std::span<const std::byte, value_header_bytes> bytes);

/// Describes what a reader expects of one value.
struct expected_part {
  remote_identity identity;
  uint64_t payload_bytes = 0; ///< of the whole object, as the space asks for it
  uint32_t part = 0;
  std::optional<uint64_t> generation{}; ///< that of the object's other parts, once one has been verified
  bool encrypted = false;
  uint64_t bytes_of_each = part_bytes; ///< of the payload in a value
};

/// Returns true if a value with this header has so many bytes behind it, whatever else the header says. A value without a valid header
/// has as many as the part.
bool has_length(std::span<const std::byte, value_header_bytes> header, uint64_t bytes,
                const expected_part& expected);

/// Compares the header of one value, which has so many bytes behind it, with what is expected: everything but these bytes.
tl::expected<value_header, rejected_value>
verify_header(std::span<const std::byte, value_header_bytes> header, uint64_t bytes,
              const expected_part& expected);

/// Verifies the bytes behind the header of one value, which is not encrypted, before one of them is used. Returns its generation, or why it is
/// not the expected part. It takes the time of a checksum over one part. The value is compressed if it has fewer bytes than the part.
tl::expected<uint64_t, rejected_value> verify(std::span<const std::byte, value_header_bytes> header,
                                              std::span<const std::byte> bytes,
                                              const expected_part& expected);

} // namespace terrace::remote
