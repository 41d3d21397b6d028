// What the handles of the C interface (terrace.h) are, and how errors cross it.
#pragma once

#include "client/client.hpp"
#include "client/terrace.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>

struct terrace_connection {
  terrace::client::connection daemon;
};
struct terrace_space {
  terrace::client::space opened;
};
struct terrace_memory {
  terrace::client::region memory;
};
struct terrace_region {
  terrace::client::registered_region registered;
};
struct terrace_lease {
  terrace::client::lease held;
};
struct terrace_objects {
  terrace::client::located_objects located;
};

namespace terrace::client::detail {

inline terrace_code tell(terrace_error* out, errc code, std::string_view text) noexcept {
  if (out != nullptr) {
    out->code = static_cast<terrace_code>(code);
    size_t kept = std::min(text.size(), sizeof out->text - 1);
    std::memcpy(out->text, text.data(), kept);
    out->text[kept] = 0;
  }
  return static_cast<terrace_code>(code);
}

/// Calls `body`, which returns a result of any type; no exception leaves it.
template <class Body>
terrace_code guarded(terrace_error* out, Body&& body) noexcept {
  try {
    auto done = body();
    return done ? tell(out, errc::ok, {}) : tell(out, done.error().code, done.error().text);
  } catch (const std::bad_alloc&) {
    return tell(out, errc::no_space, "this process has no memory left");
  } catch (...) {
    return tell(out, errc::internal, "an exception in libterrace");
  }
}

inline deadline deadline_of(int64_t timeout_ms) {
  constexpr int64_t longest = int64_t{1000} * 60 * 60 * 24 * 365; // a year, far from the end of the clock
  if (timeout_ms < 0)
    return {};
  return within(std::chrono::milliseconds(std::min(timeout_ms, longest)));
}

inline std::string text_of(const char* given) {
  return given == nullptr ? std::string() : std::string(given);
}

/// A struct as this library knows it: fields that the caller's version does not have are zero.
template <class Struct>
result<Struct> sized(const Struct* given, const char* name) {
  if (given == nullptr || given->size < sizeof(size_t))
    return fail(errc::bad_request, std::string("expected a ") + name +
                                       " whose size is set, as in {.size = sizeof(" + name + ")}");
  Struct taken{};
  std::memcpy(&taken, given, std::min(given->size, sizeof taken));
  return taken;
}

/// Refuses a null pointer by the name of its argument.
template <class... Pointers>
result<void> check_given(const char* names, const Pointers*... given) {
  if (((given == nullptr) || ...))
    return fail(errc::bad_request, std::string("expected ") + names + ", got a null pointer");
  return {};
}

} // namespace terrace::client::detail
