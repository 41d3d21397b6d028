// The name that a client gives to a lookup of its own.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace terrace {

/// 16 bytes of the client's choice, unique among the lookups of its trust group. Whoever is told them may wait for the
/// lookup and cancel it, so they should be unguessable to those who should not.
struct lookup_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const lookup_id&, const lookup_id&) = default;
  bool empty() const { return *this == lookup_id{}; } ///< none
};

} // namespace terrace
