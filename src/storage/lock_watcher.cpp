#include "storage/lock_watcher.hpp"

#include <sys/eventfd.h>
#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

namespace terrace {

result<unique_fd> watch_lock(const std::string& path) {
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  unique_fd event(::eventfd(0, EFD_CLOEXEC));
  unique_fd raised(event ? ::fcntl(event.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!file || !raised)
    return fail(errc::internal, path + ": cannot wait for its lock: " + std::strerror(errno));
  try {
    std::thread([file = std::move(file), raised = std::move(raised)]() mutable {
      while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      file.reset(); // the lock is for the next process
      [[maybe_unused]] int written = ::eventfd_write(raised.get(), 1);
    }).detach();
  } catch (const std::system_error& error) {
    return fail(errc::internal, path + ": cannot wait for its lock: " + error.what());
  }
  return event;
}

} // namespace terrace
