// Distinct types for identifiers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>

namespace terrace {

// The id that a client may give to a lookup.

/// 16 bytes chosen by the client, unique among the lookups of its trust group. Any client of the group that
/// knows them may await and cancel the lookup, so they should be unguessable.
struct lookup_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const lookup_id&, const lookup_id&) = default;
  bool empty() const { return *this == lookup_id{}; } ///< no id
};

/// Identifies a space within one trust group and one boot of the daemon; 0 is never used.
enum class space_id : uint32_t {};

/// Identifies a region of one connection; 0 is never used.
enum class region_id : uint32_t {};

/// Identifies a segment of a trust group's arena.
enum class segment_id : uint32_t {};

/// A client chooses it, unique among its requests in flight.
using request_id = uint64_t;

/// Identifies a connection for the lifetime of the daemon; 0 is never used.
enum class connection_id : uint64_t {};

/// 128 unguessable bits (src/base/random_id.hpp). Whoever has the id may use the lease within its trust
/// group.
struct lease_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const lease_id&, const lease_id&) = default;
  bool empty() const { return *this == lease_id{}; }
};

/// Identifies one run of a daemon. After a restart, spaces, regions and leases of the previous boot are
/// invalid.
struct boot_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const boot_id&, const boot_id&) = default;
};

/// Where an object can be stored, fastest first. The numbers are part of the protocol. A trust group has at most one tier of each
/// kind; `remote` to `remote3` are its `[[remote]]` sections in their order.
enum class tier_kind : uint8_t {
  gpu = 0,
  host = 1,
  disk = 2,
  remote = 3,
  remote2 = 4,
  remote3 = 5,
  none = 255
};

constexpr const char* to_string(tier_kind tier) {
  switch (tier) {
    case tier_kind::gpu: return "gpu";
    case tier_kind::host: return "host";
    case tier_kind::disk: return "disk";
    case tier_kind::remote: return "remote";
    case tier_kind::remote2: return "remote2";
    case tier_kind::remote3: return "remote3";
    case tier_kind::none: break;
  }
  return "none";
}

} // namespace terrace

template <>
struct std::hash<terrace::lease_id> {
  size_t operator()(const terrace::lease_id& id) const noexcept {
    size_t h;
    std::memcpy(&h, id.bytes.data(), sizeof h); // random bits: any eight bytes are a hash
    return h;
  }
};
