// Errors are values: a protocol code and a text with what was expected, what was received and how to fix it.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace terrace {

/// The codes used on the wire (docs/protocol.md lists them). The numbers are part of the protocol.
enum class errc : uint8_t {
  ok = 0,
  busy = 1,        ///< a limit is reached; the same request may succeed later
  not_found = 2,   ///< the named object does not exist
  gone = 3,        ///< the named object existed and is gone (a lease, a region, a truncated file)
  deadline = 4,    ///< the request's deadline has passed
  cancelled = 5,   ///< the client cancelled the request, or its connection closed
  no_space = 6,    ///< nothing can be evicted; the text says what holds the memory
  bad_request = 7, ///< the request violates the protocol or contradicts itself
  denied = 8,      ///< the client or its trust group is not allowed to do this
  unsupported = 9, ///< valid, but not supported by this daemon, kernel or build
  internal = 10,   ///< a bug in Terrace
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

} // namespace terrace

namespace tl {

/// What `value()` of a result without one throws says why there is none. It has what the class of other errors has.
template <>
class bad_expected_access<terrace::error> : public std::exception {
 public:
  explicit bad_expected_access(terrace::error why) : why_(std::move(why)) {
    said_ = why_.text + " (" + std::string(terrace::to_string(why_.code)) + ")";
  }
  const char* what() const noexcept override { return said_.c_str(); }
  const terrace::error& error() const& { return why_; }
  terrace::error& error() & { return why_; }
  terrace::error&& error() && { return std::move(why_); }

 private:
  terrace::error why_;
  std::string said_;
};

} // namespace tl

namespace terrace {

template <class T>
using result = tl::expected<T, error>;

/// Lets any function that returns a result say `return fail(errc::bad_request, "...")`.
inline tl::unexpected<error> fail(errc code, std::string text) {
  return tl::unexpected<error>(error{code, std::move(text)});
}

} // namespace terrace
