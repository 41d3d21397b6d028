// Python's terrace.Options.
#pragma once

#include "client/client.hpp"

#include <optional>
#include <string>

namespace terrace::python {

/// A request's options, with the text that libterrace's view of them points to.
struct owned_options {
  client::request_options options;
  std::string trace;
};

/// None gives the defaults. The result refers to `given`.
inline client::request_options options_of(std::optional<owned_options*> given) {
  if (!given || *given == nullptr)
    return {};
  client::request_options options = (*given)->options;
  options.trace = (*given)->trace;
  return options;
}

} // namespace terrace::python
