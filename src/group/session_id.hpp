// The name of a session.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>

namespace terrace {

/// 128 unguessable bits. Anyone who has the id may use the session within its trust group.
struct session_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const session_id&, const session_id&) = default;
  bool empty() const { return *this == session_id{}; }
};

} // namespace terrace

template <>
struct std::hash<terrace::session_id> {
  size_t operator()(const terrace::session_id& id) const noexcept {
    size_t h;
    std::memcpy(&h, id.bytes.data(), sizeof h); // the bits are random: any eight bytes are a hash
    return h;
  }
};
