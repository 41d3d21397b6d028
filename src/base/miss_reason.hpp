// Why an object that somebody asks for is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace terrace {

enum class miss_reason : uint8_t {
  not_stored, ///< nothing is known of it: it was never stored, or it left so long ago that this is forgotten
  evicted,    ///< to make room for others
  cleared,    ///< its space or its trust group was cleared
  removed,    ///< an operator or a client removed it, or stored another object in its place
  damaged,    ///< its bytes were wrong or unreadable
  incomplete, ///< other objects of its chunk are there, but not this one: a rank or a pool is missing
  retired,    ///< its memory was taken out of the tier, or the tier keeps only objects that are in use
  out_of_service, ///< it is in a tier that cannot be read now
};
inline constexpr size_t miss_reasons = 8;

/// The name of the reason on the wire and in metrics.
constexpr std::string_view to_string(miss_reason why) {
  switch (why) {
    case miss_reason::not_stored: return "not_stored";
    case miss_reason::evicted: return "evicted";
    case miss_reason::cleared: return "cleared";
    case miss_reason::removed: return "removed";
    case miss_reason::damaged: return "damaged";
    case miss_reason::incomplete: return "incomplete";
    case miss_reason::retired: return "retired";
    case miss_reason::out_of_service: return "out_of_service";
  }
  return "unknown";
}

} // namespace terrace
