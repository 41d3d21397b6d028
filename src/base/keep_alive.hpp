// Shared ownership of something that must not end yet.
#pragma once

#include <memory>

namespace terrace {

/// Keeps an object alive until a message, and everything it started, is done.
using keep_alive = std::shared_ptr<const void>;

} // namespace terrace
