// The identity of a volume, chosen at random when its file is created.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace terrace {

/// 128 random bits. Every object header contains them, so that bytes of another volume (a copied or swapped
/// file) are recognized.
struct volume_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const volume_id&, const volume_id&) = default;
};

volume_id random_volume_id();

/// 32 lower-case hexadecimal digits.
std::string to_hex(const volume_id& id);

} // namespace terrace
