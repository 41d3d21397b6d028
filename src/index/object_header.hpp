// The 4 KiB in front of every object on disk (docs/disk-format.md).
//
// Wrong bytes are never served. A reader decodes an object's header (are these the bytes that were written?),
// compares it with the index (are they the bytes of this object?), and then verifies the checksum of the
// payload.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/object_key.hpp"
#include "index/space_registry.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace terrace {

// The identity of a volume, chosen at random when its file is created.

/// 128 random bits. Every object header contains them, so that bytes of another volume (a copied or swapped
/// file) are recognized.
struct volume_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const volume_id&, const volume_id&) = default;
};

volume_id random_volume_id();

/// 32 lower-case hexadecimal digits.
std::string to_hex(const volume_id& id);

/// Objects on disk begin at multiples of this, and their physical sizes are multiples of it, as O_DIRECT
/// requires on all common devices.
constexpr uint64_t disk_alignment_bytes = 4096;
constexpr uint64_t object_header_bytes = 4096;
constexpr uint32_t object_header_version = 1;

/// The fingerprint of all fields of a space. Space ids are assigned anew at each boot and never written to
/// disk.
using space_fingerprint = std::array<uint8_t, 32>;

/// The identity of an object. All of it must match before a byte is used.
struct object_identity {
  space_fingerprint space{};
  uint16_t pool = 0;
  uint16_t rank = 0;
  digest chunk;
  uint8_t digest_width = digest::max_size; ///< significant bytes of `chunk`: 8 to 32
  uint64_t generation = 0; ///< generation of this write; increases with every object written to the volume
  uint64_t epoch = 0;      ///< epoch of the volume; raised whenever objects are forgotten permanently
  volume_id volume;

  friend bool operator==(const object_identity&, const object_identity&) = default;
};

struct object_header {
  object_identity identity;
  uint64_t payload_bytes = 0;    ///< logical size
  uint64_t physical_bytes = 0;   ///< header, payload and padding: `physical_bytes_for(payload_bytes)` or more
  uint64_t payload_checksum = 0; ///< `payload_checksum()` of the payload, without padding

  friend bool operator==(const object_header&, const object_header&) = default;
};

/// The space that an object with this payload takes on disk.
constexpr uint64_t physical_bytes_for(uint64_t payload_bytes) {
  return object_header_bytes +
         (payload_bytes + disk_alignment_bytes - 1) / disk_alignment_bytes * disk_alignment_bytes;
}

/// Fills all of `out`. The header must be valid (asserted): widths in range, a physical size that holds the
/// payload.
void encode(const object_header& header, std::span<std::byte, object_header_bytes> out);

/// Errors: `not_found` if no header was ever written (no magic), `unsupported` for an unknown version,
/// `internal` for a damaged one (a wrong checksum or inconsistent fields).
result<object_header> decode(std::span<const std::byte, object_header_bytes> bytes);

/// Checks that a valid header belongs to the expected object. Error: `gone`, with the first field that
/// differs: the extent was reused, or belongs to another volume, space or epoch.
result<void> matches(const object_header& found, const object_identity& expected);

// A clear that a volume has not made durable, because the volume could not be reached.

struct pending_clear {
  std::optional<space_fingerprint> space{}; ///< nullopt: everything is cleared
  /// The volume whose objects are cleared; zeros: any volume that the file turns out to contain.
  volume_id volume{};
  /// Objects of lower epochs are forgotten; 0: all objects that exist when the volume is opened.
  uint64_t epoch = 0;
  /// A volume that was created in the file after the clear, which therefore does not concern it; zeros: none.
  volume_id made_since{};

  bool concerns(const volume_id& opened) const {
    return (volume == volume_id{} || volume == opened) && made_since != opened;
  }
  friend bool operator==(const pending_clear&, const pending_clear&) = default;
};

// Describes the object that the index expects at a place on disk: a reader compares it before a byte is used.

struct expected_object {
  object_identity identity;
  uint64_t payload_bytes = 0;
};

/// `generation` is that of the object's write to the volume; it contains the epoch.
expected_object expected_of(const opened_space& opened, const volume_id& volume, const object_key& key,
                            uint64_t generation, uint64_t payload_bytes);

/// True if the header is that of the expected object; the caller compares the checksum of the payload.
bool is_expected(const object_header& found, const expected_object& expected);
/// True if the header block is intact, is that of the expected object, and names this checksum of the payload.
bool is_expected(std::span<const std::byte, object_header_bytes> header, const expected_object& expected,
                 uint64_t payload_checksum);

} // namespace terrace
