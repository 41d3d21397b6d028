// Messages to listeners and connections.
#pragma once

#include <functional>
#include <memory>

#include <sys/types.h>

namespace terrace {

/// The receiver accepts no new clients and no new requests, and ends when everything in flight is answered.
struct drain_notice {};

/// A new connection of the process `pid` reports that the process no longer accesses anything of the
/// receiver.
struct confirm_notice {
  pid_t pid = 0;
};

/// Asks a silent connection or an observer to leave, because another connection needs its place.
struct leave_notice {};

/// The creator of a connection tells it, once, that it is in the directory.
struct begin_notice {};

/// Makes a connection continue work that is done in slices or came from another thread.
struct resume_notice {
  std::shared_ptr<std::function<void()>> work;
};

} // namespace terrace
