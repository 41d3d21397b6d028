// Names the owners that keep holds from one request to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace terrace {

/// Owners that can be asked. Any other owner that keeps holds from one request to the next gets a kind here
/// and a name in `reference_names`, and reports its holds where the check asks for them
/// (actors/check/check_actor.cpp). Holds beyond these belong to requests in progress.
enum class reference_kind : uint8_t {
  lease,   ///< a client's lease
  session, ///< a held session, between its turns, or a reader of objects that it held
  pin,     ///< an operator's pin
  reading, ///< objects whose places a client was given, so that it reads them there
};
constexpr std::array<const char*, 4> reference_names = {"leases", "sessions", "pins", "readings"};
constexpr size_t reference_kinds = reference_names.size();

} // namespace terrace
