// The identity of one store: chosen at random when its file is first made.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace terrace {

/// 128 random bits. Every object header repeats them, so that bytes of another store (a copied or swapped
/// file) are recognised instead of misread.
struct store_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const store_id&, const store_id&) = default;
};

store_id random_store_id();

/// 32 lower-case hexadecimal digits.
std::string to_hex(const store_id& id);

} // namespace terrace
