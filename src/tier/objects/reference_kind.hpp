// Who keeps holds from one request to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace terrace {

/// Owners that can be asked. Whoever else keeps holds from one request to the next gets a kind here, a name in
/// `reference_names`, and tells them where the check asks for them (actors/check/check_actor.cpp). What is held beyond
/// these belongs to requests in progress.
enum class reference_kind : uint8_t {
  lease,   ///< of a client
  session, ///< a held session, between its turns, or whoever still reads under what it held
  pin,     ///< of an operator
  reading, ///< objects that a client was given the places of, to read them there
};
constexpr std::array<const char*, 4> reference_names = {"leases", "sessions", "pins", "readings"};
constexpr size_t reference_kinds = reference_names.size();

} // namespace terrace
