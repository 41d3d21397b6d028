// When what a tier has is written to a tier below it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace terrace {

enum class demotion_mode : uint8_t {
  write_through, ///< once it is stored
  write_back,    ///< when it is evicted, which waits until it is written
  selective,     ///< at its second use, and when it is evicted if it was used and is no longer below
  off,           ///< never
};

/// In the order of the enumeration; also the values of settings.
constexpr std::array<std::string_view, 4> demotion_modes{"write_through", "write_back", "selective", "off"};

constexpr std::string_view to_string(demotion_mode mode) { return demotion_modes[static_cast<size_t>(mode)]; }

/// Objects are written long after they were stored: their tier keeps their origins (tier/objects/origins.hpp).
constexpr bool needs_origins(demotion_mode mode) {
  return mode == demotion_mode::write_back || mode == demotion_mode::selective;
}

} // namespace terrace
