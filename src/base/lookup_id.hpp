// The id that a client may give to a lookup.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace terrace {

/// 16 bytes chosen by the client, unique among the lookups of its trust group. Any client of the group that
/// knows them may await and cancel the lookup, so they should be unguessable.
struct lookup_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const lookup_id&, const lookup_id&) = default;
  bool empty() const { return *this == lookup_id{}; } ///< no id
};

} // namespace terrace
