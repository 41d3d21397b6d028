// Why an object that somebody asks for is not there, and why a tier did not take it.
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
  out_of_service,    ///< it is in a tier that cannot be read now
  not_admitted,      ///< a tier was offered it and did not take it, and no other has it
  left_to_recompute, ///< it is in a tier, and the client computes it sooner than it is read from there
  pending,           ///< it is in a remote store, and had not come when the lookup's time was over
};
inline constexpr size_t miss_reasons = 11;

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
    case miss_reason::not_admitted: return "not_admitted";
    case miss_reason::left_to_recompute: return "left_to_recompute";
    case miss_reason::pending: return "pending";
  }
  return "unknown";
}

/// Why a tier did not take an object that it was offered.
enum class refusal_reason : uint8_t {
  admission,  ///< rejected by the admission rule
  endurance,  ///< the write budget is used up
  degraded,   ///< the device is out of service, or the tier has not joined yet
  failed,     ///< it could not be written
  no_room,    ///< no eviction that is allowed would have made room
  quota,      ///< its tenant may have no more
  second_use, ///< it left the tier above before its second use. Not counted: the tier was not asked
};
inline constexpr size_t refusal_reasons = 6; ///< those that are counted

/// The name of the reason in metrics.
constexpr std::string_view to_string(refusal_reason why) {
  switch (why) {
    case refusal_reason::admission: return "admission";
    case refusal_reason::endurance: return "endurance";
    case refusal_reason::degraded: return "degraded";
    case refusal_reason::failed: return "failed";
    case refusal_reason::no_room: return "no_room";
    case refusal_reason::quota: return "quota";
    case refusal_reason::second_use: return "second_use";
  }
  return "unknown";
}

/// Returns the rest of a sentence about the tier, for people.
constexpr std::string_view described(refusal_reason why) {
  switch (why) {
    case refusal_reason::admission: return "its admission rule rejected it";
    case refusal_reason::endurance: return "its write budget was used up";
    case refusal_reason::degraded: return "its device was out of service";
    case refusal_reason::failed: return "it could not be written there";
    case refusal_reason::no_room: return "there was no room, and nothing could be evicted for it";
    case refusal_reason::quota: return "its tenant may have no more there";
    case refusal_reason::second_use: return "it was not used a second time";
  }
  return "";
}

} // namespace terrace
