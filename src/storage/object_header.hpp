// The 4 KiB in front of every object on disk (docs/disk-format.md).
//
// Wrong bytes are never served: whoever reads an object decodes its header (are these the bytes that were
// written?), compares it with what the index promised (are they the bytes of this object?), and then checks
// the payload's sum.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "storage/volume_id.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

/// Objects on disk begin at multiples of this, and their physical sizes are multiples of it: what O_DIRECT
/// needs on every common device.
constexpr uint64_t disk_alignment_bytes = 4096;
constexpr uint64_t object_header_bytes = 4096;
constexpr uint32_t object_header_version = 1;

/// The fingerprint of all fields of a space. Space ids are given out anew at each boot and never reach a
/// disk.
using space_fingerprint = std::array<uint8_t, 32>;

/// What makes an object this one and no other. All of it must match before a byte is used.
struct object_identity {
  space_fingerprint space{};
  uint16_t pool = 0;
  uint16_t rank = 0;
  digest chunk;
  uint8_t digest_width = digest::max_size; ///< bytes of `chunk` that count: 8 to 32
  uint64_t generation = 0; ///< of this write; grows with every object that the volume takes in
  uint64_t epoch = 0;      ///< of the volume; raised by whatever forgets objects for good
  volume_id volume;

  friend bool operator==(const object_identity&, const object_identity&) = default;
};

struct object_header {
  object_identity identity;
  uint64_t payload_bytes = 0;    ///< logical
  uint64_t physical_bytes = 0;   ///< header, payload and padding: `physical_bytes_for(payload_bytes)` or more
  uint64_t payload_checksum = 0; ///< `payload_checksum()` of the payload, without padding

  friend bool operator==(const object_header&, const object_header&) = default;
};

/// What an object with so much payload takes on disk.
constexpr uint64_t physical_bytes_for(uint64_t payload_bytes) {
  return object_header_bytes +
         (payload_bytes + disk_alignment_bytes - 1) / disk_alignment_bytes * disk_alignment_bytes;
}

/// Fills all of `out`. The header must be sound (asserted): widths in range, a physical size that holds the
/// payload.
void encode(const object_header& header, std::span<std::byte, object_header_bytes> out);

/// Errors: `not_found` where no header was ever written (no magic), `unsupported` for a version that this
/// build does not know, `internal` for a damaged one (its checksum or a field that contradicts it).
result<object_header> decode(std::span<const std::byte, object_header_bytes> bytes);

/// Whether an intact header is that of the expected object. Error: `gone`, naming the first field that
/// differs: the extent has been reused, or belongs to another volume, space or epoch.
result<void> matches(const object_header& found, const object_identity& expected);

} // namespace terrace
