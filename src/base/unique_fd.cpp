#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace terrace {

void unique_fd::reset(int fd) {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = fd;
}

void occupy_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) // `open` takes the lowest free number, which is this one
      (void) !::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

} // namespace terrace
