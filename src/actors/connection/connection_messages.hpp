// What is sent to listeners and connections.
#pragma once

#include <functional>
#include <memory>

#include <sys/types.h>

namespace terrace::actors {

/// No new clients, no new requests; whoever gets it ends when what is in flight is answered.
struct drain_notice {};

/// From a new connection of the process `pid`: it touches nothing of this one any more.
struct confirm_notice {
  pid_t pid = 0;
};

/// To a connection from whoever made it, once: it can be found now.
struct begin_notice {};

/// To a connection: goes on with work that it does in slices, or that another thread has for it.
struct resume_notice {
  std::shared_ptr<std::function<void()>> work;
};

} // namespace terrace::actors
