#include "gpu/process/device_child.hpp"

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/host/host_engine.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace terrace::gpu {

namespace {

/// The terms on which a child begins: the socket has its number, and no signal is blocked.
struct spawn_terms {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  explicit spawn_terms(int socket) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, socket, process_socket);
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~spawn_terms() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  spawn_terms(const spawn_terms&) = delete;
  spawn_terms& operator=(const spawn_terms&) = delete;
};

} // namespace

result<device_child> device_child::start(const std::string& device) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(errc::no_space, std::string("no socket for the process of a GPU: ") + std::strerror(errno));
  device_child made;
  made.socket_ = std::make_shared<unique_fd>(ends[0]);
  unique_fd theirs(ends[1]);
  std::string program = "terraced", option = "--gpu", name = device;
  char* arguments[] = {program.data(), option.data(), name.data(), nullptr};
  spawn_terms terms(theirs.get());
  pid_t pid = 0;
  // Starts the running binary, even if its file was replaced since.
  int failed = ::posix_spawn(&pid, "/proc/self/exe", &terms.files, &terms.attributes, arguments, environ);
  if (failed != 0)
    return fail(errc::no_space,
                std::string("the process of a GPU cannot be started: ") + std::strerror(failed));
  made.pid_ = pid;
  made.pidfd_ = unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!made.pidfd_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    made.pid_ = 0;
    return fail(errc::no_space,
                std::string("no descriptor for the process of a GPU: ") + std::strerror(errno));
  }
  ::fcntl(made.pidfd_.get(), F_SETFD, FD_CLOEXEC);
  return made;
}

device_child& device_child::operator=(device_child&& other) noexcept {
  kill();
  pid_ = std::exchange(other.pid_, 0);
  pidfd_ = std::move(other.pidfd_);
  socket_ = std::move(other.socket_);
  return *this;
}

void device_child::kill() {
  if (pidfd_)
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

std::string device_child::reap() {
  siginfo_t how{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG) != 0)
    return "it ended";
  pidfd_.reset();
  pid_ = 0;
  if (how.si_code == CLD_EXITED)
    return "it ended with code " + std::to_string(how.si_status);
  return std::string("it was ended by signal ") + std::to_string(how.si_status);
}

result<std::string> canonical_device_name(const std::string& name) {
  if (name == host_device_name)
    return name;
  auto uuid = cuda::parse_uuid(name);
  if (!uuid)
    return fail(errc::bad_request, "a device \"" + name + "\": expected \"host\" or the UUID of a GPU (" +
                                       uuid.error().text + ")");
  return cuda::to_text(*uuid);
}

result<opened_device> open_device(const std::string& name) {
  if (name == host_device_name) {
    auto made = make_host_device();
    if (!made)
      return tl::unexpected(made.error());
    return opened_device{std::move(*made), "host memory, copied by threads"};
  }
  auto found = cuda::locate(name);
  if (!found)
    return tl::unexpected(found.error());
  const auto& about = found->properties;
  // Other devices may read memory that the process allocates: by a descriptor it outlives this process.
  cuda_device_options options;
  options.virtual_memory = about.virtual_memory;
  auto made = make_cuda_device(found->by, about.uuid, options);
  if (!made)
    return tl::unexpected(made.error());
  int version = found->by->version();
  std::string text = about.name + ", driver for CUDA " + std::to_string(version / 1000) + "." +
                     std::to_string(version % 1000 / 10);
  text += about.ipc ? ", handles" : ", no handles";
  text += about.virtual_memory ? ", descriptors" : ", no descriptors";
  if (!about.stream_memory_ops)
    text += ", no stream memory operations";
  return opened_device{std::move(*made), std::move(text)};
}

} // namespace terrace::gpu
