// A file descriptor with a single owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <fcntl.h>
#include <initializer_list>
#include <string>
#include <unistd.h>
#include <utility>

namespace terrace {

// Descriptors 0, 1 and 2 of a process that was started without them.

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise a socket or a file of this process would
/// get the number, and receive what is printed. Such a descriptor is open in the wrong direction: reading standard input
/// and writing the other two still fails. Call this first in `main`.
inline void occupy_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) // `open` takes the lowest free number, which is this one
      (void) !::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other)
      reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~unique_fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// A file that other processes read, with the number by which messages refer to it.

/// Safe on all threads.
struct named_file {
  named_file(unique_fd opened, std::string name) : descriptor(std::move(opened)), path(std::move(name)) {}
  named_file(const named_file&) = delete;

  unique_fd descriptor;
  const std::string path;
  const uint64_t number = ++last_number; ///< no other file of this process has it

 private:
  static inline std::atomic<uint64_t> last_number{0};
};

} // namespace terrace
