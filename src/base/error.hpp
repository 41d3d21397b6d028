// Errors are values: a code of the protocol and a text that says what was expected, what came and what to do.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace terrace {

/// The codes that cross the wire (docs/protocol.md lists them). The numbers are part of the protocol.
enum class errc : uint8_t {
  ok = 0,
  busy = 1,        ///< a bound is reached; the same request may succeed later
  not_found = 2,   ///< the named thing does not exist
  gone = 3,        ///< the named thing existed and has ended (a lease, a region, a truncated file)
  deadline = 4,    ///< the request's deadline passed
  cancelled = 5,   ///< the client cancelled the request, or its connection ended
  no_space = 6,    ///< nothing can be evicted; the text names what holds the memory
  bad_request = 7, ///< the request contradicts the protocol or itself
  denied = 8,      ///< the peer or its trust group may not do this
  unsupported = 9, ///< valid, but not with this daemon, kernel or build
  internal = 10,   ///< our own mistake
};

constexpr std::string_view to_string(errc code) {
  constexpr std::string_view names[] = {"ok",       "busy",        "not_found", "gone",
                                        "deadline", "cancelled",   "no_space",  "bad_request",
                                        "denied",   "unsupported", "internal"};
  auto i = static_cast<size_t>(code);
  return i < std::size(names) ? names[i] : "unknown";
}

struct error {
  errc code = errc::ok;
  std::string text;

  friend bool operator==(const error&, const error&) = default;
};

template <class T>
using result = tl::expected<T, error>;

/// `return fail(errc::bad_request, "...")` from any function that returns a result.
inline tl::unexpected<error> fail(errc code, std::string text) {
  return tl::unexpected<error>(error{code, std::move(text)});
}

} // namespace terrace
