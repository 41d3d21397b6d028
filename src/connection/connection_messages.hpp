// Messages to listeners and connections.
#pragma once

#include <functional>
#include <memory>

#include <sys/types.h>

namespace terrace {

/// No new clients and no new requests; the receiver ends when everything in flight is answered.
struct drain_notice {};

/// From a new connection of the process `pid`: the process no longer accesses anything of this one.
struct confirm_notice {
  pid_t pid = 0;
};

/// To a connection that says nothing or only looks: another one needs its place.
struct leave_notice {};

/// To a connection from its creator, once: it is in the directory now.
struct begin_notice {};

/// To a connection: continues work done in slices, or work from another thread.
struct resume_notice {
  std::shared_ptr<std::function<void()>> work;
};

} // namespace terrace
