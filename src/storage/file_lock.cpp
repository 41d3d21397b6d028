#include "storage/file_lock.hpp"

#include "storage/volume_device.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace terrace {

namespace {

std::string name_of(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

} // namespace

std::optional<std::string> lock_holder(int fd, const std::string& locks) {
  struct stat of {};
  if (::fstat(fd, &of) != 0)
    return std::nullopt;
  std::ifstream file(locks);
  for (std::string line; std::getline(file, line);) {
    // Example: 12: FLOCK ADVISORY WRITE 4711 fe:01:1048601 0 EOF
    long pid = 0;
    unsigned major_number = 0, minor_number = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%*d: FLOCK %*s %*s %ld %x:%x:%llu", &pid, &major_number, &minor_number,
                    &inode) != 4)
      continue;
    if (pid <= 0 || inode != of.st_ino || major_number != major(of.st_dev) ||
        minor_number != minor(of.st_dev))
      continue;
    std::string name = name_of(pid);
    // Operations of a killed process keep the file open until the kernel has finished them.
    return "process " + std::to_string(pid) + " (" +
           (name.empty() ? "it has exited; the kernel is finishing its operations" : name) + ")";
  }
  return std::nullopt;
}

result<void> lock_file(const std::string& path, int fd, lock_kind kind) {
  if (::flock(fd, (kind == lock_kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
    return {};
  if (errno != EWOULDBLOCK)
    return fail_system(path, "locking the volume", errno);
  return fail(errc::busy,
              path + ": " + lock_holder(fd).value_or("another process") + " has this volume open");
}

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

std::array<uint8_t, 16> machine_identity(const std::string& path) {
  std::string text;
  std::getline(std::ifstream(path) >> std::ws, text);
  std::array<uint8_t, 16> id{};
  if (text.size() != 2 * id.size())
    return {};
  for (size_t i = 0; i < id.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    auto [end, failed] = std::from_chars(digits, digits + 2, id[i], 16);
    if (failed != std::errc{} || end != digits + 2)
      return {};
  }
  return id;
}

} // namespace terrace
