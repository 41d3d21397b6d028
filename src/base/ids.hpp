// Identifiers that must not be mixed up.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>

namespace terrace {

/// Names a space within one trust group and one boot of the daemon; 0 is never given out.
enum class space_id : uint32_t {};

/// Names a region of one connection; 0 is never given out.
enum class region_id : uint32_t {};

/// Names a segment of a trust group's arena.
enum class segment_id : uint32_t {};

/// Chosen by the client, unique among its requests in flight.
using request_id = uint64_t;

/// Names a connection for the life of the daemon; 0 is never given out.
enum class connection_id : uint64_t {};

/// 128 unguessable bits (src/base/random_id.hpp): knowing the id is the right to use the lease in its trust group.
struct lease_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const lease_id&, const lease_id&) = default;
  bool empty() const { return *this == lease_id{}; }
};

/// The boot of a daemon. A new one voids spaces, regions and leases.
struct boot_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const boot_id&, const boot_id&) = default;
};

/// Where an object can be; ordered from the fastest. The numbers are part of the protocol.
enum class tier_kind : uint8_t { gpu = 0, host = 1, disk = 2, remote = 3, none = 255 };

constexpr const char* to_string(tier_kind tier) {
  switch (tier) {
    case tier_kind::gpu: return "gpu";
    case tier_kind::host: return "host";
    case tier_kind::disk: return "disk";
    case tier_kind::remote: return "remote";
    case tier_kind::none: break;
  }
  return "none";
}

} // namespace terrace

template <>
struct std::hash<terrace::lease_id> {
  size_t operator()(const terrace::lease_id& id) const noexcept {
    size_t h;
    std::memcpy(&h, id.bytes.data(), sizeof h); // random bits: any eight of them are a hash
    return h;
  }
};
