// Turns libterrace's errors into the Python exceptions of terrace/errors.py.
#pragma once

#include "base/error.hpp"

#include <exception>
#include <string>
#include <utility>

namespace terrace::python {

/// Thrown with and without the GIL; nanobind turns it into an exception when it leaves a bound function.
class failure : public std::exception {
 public:
  explicit failure(error why) : why_(std::move(why)) {}
  const error& why() const { return why_; }
  const char* what() const noexcept override { return why_.text.c_str(); }

 private:
  error why_;
};

template <class T>
T value_of(result<T>&& got) {
  if (!got)
    throw failure(std::move(got.error()));
  if constexpr (!std::is_void_v<T>)
    return std::move(*got);
}

[[noreturn]] inline void refuse(std::string text) { throw failure({errc::bad_request, std::move(text)}); }

/// Makes nanobind turn `failure` into the exceptions of terrace.errors.
void register_failures();

} // namespace terrace::python
