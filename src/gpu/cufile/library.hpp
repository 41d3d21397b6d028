// cuFile, loaded at run time: one binary runs with and without it.
#pragma once

#include "base/error.hpp"
#include "gpu/cufile/cufile_functions.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace terrace::cufile {

/// A loaded library. Immutable, safe on all threads. Never unloaded, because the real one keeps threads.
class library {
 public:
  /// Errors: `unsupported` if there is no such library, or it lacks a required function; the text says which.
  static result<std::shared_ptr<const library>> open(const std::string& name = "libcufile.so.0");

  const functions& api() const { return api_; }
  /// 1000 * major + 10 * minor; 0: the library does not say.
  int version() const { return version_; }

  /// Returns no error, or `code` as an error: `unsupported`, or `internal`. The text contains `what` and the code.
  static result<void> check(status code, std::string_view what);

 private:
  library() = default;

  functions api_;
  int version_ = 0;
};

/// Returns a line with the version, or with the reason why there is no library.
std::string report(const result<std::shared_ptr<const library>>& found);

} // namespace terrace::cufile
