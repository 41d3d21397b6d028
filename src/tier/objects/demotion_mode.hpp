// Says when objects of a tier are written to a tier below it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace terrace {

enum class demotion_mode : uint8_t {
  write_through, ///< when they are stored
  write_back,    ///< when they are evicted, which waits until they are written
  selective,     ///< at their second use, and when they are evicted if they were used and are no longer below
  off,           ///< never
};

/// The names in the order of the enumeration; they are also the values of settings.
constexpr std::array<std::string_view, 4> demotion_modes{"write_through", "write_back", "selective", "off"};

constexpr std::string_view to_string(demotion_mode mode) { return demotion_modes[static_cast<size_t>(mode)]; }

/// True if objects are written long after they were stored: their tier then keeps their origins
/// (tier/objects/origins.hpp).
constexpr bool needs_origins(demotion_mode mode) {
  return mode == demotion_mode::write_back || mode == demotion_mode::selective;
}

} // namespace terrace
