#include "simulated_calls.hpp"

#include "simulated_sockets.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace terrace::simulation {

namespace {

constexpr std::chrono::hours monotonic_at_start{1000};
constexpr std::chrono::seconds wall_clock_at_start{1'700'000'000};

thread_local simulated_calls* running = nullptr;

constexpr pthread_t ended_thread = 1; ///< no real one has this address

/// The C library's own function, or a sanitizer's.
template <class F>
F* real_call(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

} // namespace

simulated_calls::simulated_calls(scheduler& events, uint64_t seed) : events_(events), random_(seed) {
  running = this;
}

simulated_calls::~simulated_calls() { running = nullptr; }

simulated_calls* simulated_calls::of_this_thread() { return running; }

bool simulated_calls::is_simulated(const char* path) {
  size_t length = std::strlen(folder);
  return std::strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

void simulated_calls::tell_time(clockid_t clock, timespec& time) const {
  std::chrono::nanoseconds now = events_.now();
  if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
    now = {}; // computing takes no time here
  else if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    now += wall_clock_at_start;
  else
    now += monotonic_at_start;
  time.tv_sec = static_cast<time_t>(now.count() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(now.count() % 1'000'000'000);
}

void simulated_calls::fill(void* to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(random_.next());
}

const simulated_peer* simulated_calls::peer_of(int socket) const {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      length <= offsetof(sockaddr_un, sun_path) + 1 || address.sun_path[0] != '\0')
    return nullptr;
  auto found = peers_.find(std::string(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1));
  return found == peers_.end() ? nullptr : &found->second;
}

int simulated_calls::close(int descriptor) {
  positions_.erase(descriptor);
  return disk()->close(descriptor);
}

namespace {

/// The answer of a system call for that of the disk.
template <class Number>
Number answered(Number result) {
  if (result >= 0)
    return result;
  errno = static_cast<int>(-result);
  return -1;
}

simulated_calls* with(const char* path) { return simulated_calls::is_simulated(path) ? running : nullptr; }
simulated_calls* with(int descriptor) {
  return simulated_calls::is_simulated(descriptor) ? running : nullptr;
}

void describe(const file_facts& facts, struct stat& out) {
  out = {};
  out.st_mode = facts.directory ? S_IFDIR | 0700 : S_IFREG | 0600;
  out.st_ino = facts.inode;
  out.st_size = static_cast<off_t>(facts.bytes);
  out.st_blocks = static_cast<blkcnt_t>(facts.allocated_bytes / sector_bytes);
  out.st_nlink = 1;
}

int open_file(const char* path, int flags, mode_t mode) {
  if (auto* of = with(path))
    return answered(of->disk()->open(path, flags));
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int examine(const char* path, struct stat& out) {
  auto* of = with(path);
  if (of == nullptr)
    return static_cast<int>(::syscall(SYS_newfstatat, AT_FDCWD, path, &out, 0));
  file_facts facts;
  int found = of->disk()->stat(path, facts);
  describe(facts, out);
  return answered(found);
}

} // namespace

} // namespace terrace::simulation

// ---- the calls, under their names in the C library ----

using namespace terrace::simulation;

#define SIMULATED_CALL(name) __asm__(name) __attribute__((used))

extern "C" {

int simulated_clock_gettime(clockid_t, timespec*) SIMULATED_CALL("clock_gettime");
int simulated_clock_gettime(clockid_t clock, timespec* time) {
  auto* of = simulated_calls::of_this_thread();
  if (of == nullptr)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  of->tell_time(clock, *time);
  return 0;
}

ssize_t simulated_getrandom(void*, size_t, unsigned) SIMULATED_CALL("getrandom");
ssize_t simulated_getrandom(void* to, size_t bytes, unsigned flags) {
  auto* of = simulated_calls::of_this_thread();
  if (of == nullptr)
    return ::syscall(SYS_getrandom, to, bytes, flags);
  of->fill(to, bytes);
  return static_cast<ssize_t>(bytes);
}

int simulated_getsockopt(int, int, int, void*, socklen_t*) SIMULATED_CALL("getsockopt");
int simulated_getsockopt(int socket, int level, int name, void* value, socklen_t* length) {
  constexpr int peer_pidfd = 77;
  auto* of = simulated_calls::of_this_thread();
  const bool asks_for_peer =
      of != nullptr && level == SOL_SOCKET && (name == SO_PEERCRED || name == peer_pidfd);
  const auto* peer = asks_for_peer ? of->peer_of(socket) : nullptr;
  if (peer == nullptr) {
    int status = static_cast<int>(::syscall(SYS_getsockopt, socket, level, name, value, length));
    if (asks_for_peer && name == SO_PEERCRED && status == 0) // an operator's connection
      static_cast<ucred*>(value)->uid = simulated_calls::user;
    return status;
  }
  if (name == SO_PEERCRED)
    *static_cast<ucred*>(value) = {peer->pid, peer->uid, peer->gid};
  else
    *static_cast<int*>(value) = ::fcntl(peer->ends->get(), F_DUPFD_CLOEXEC, 0);
  return 0;
}

uid_t simulated_geteuid() SIMULATED_CALL("geteuid");
uid_t simulated_geteuid() {
  return simulated_calls::of_this_thread() != nullptr ? simulated_calls::user
                                                      : static_cast<uid_t>(::syscall(SYS_geteuid));
}

int simulated_shutdown(int, int) SIMULATED_CALL("shutdown");
int simulated_shutdown(int socket, int how) {
  simulated_sockets::touch();
  return static_cast<int>(::syscall(SYS_shutdown, socket, how));
}

// ---- threads: one that is started has done its work before its starter goes on ----

int simulated_pthread_create(pthread_t*, const pthread_attr_t*, void* (*) (void*), void*)
    SIMULATED_CALL("pthread_create");
int simulated_pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*work)(void*),
                             void* argument) {
  auto* of = simulated_calls::of_this_thread();
  if (of == nullptr || !of->threads_work_at_once())
    return real_call<decltype(::pthread_create)>("pthread_create")(id, attributes, work, argument);
  work(argument);
  *id = ended_thread;
  return 0;
}

int simulated_pthread_join(pthread_t, void**) SIMULATED_CALL("pthread_join");
int simulated_pthread_join(pthread_t id, void** value) {
  return id == ended_thread ? 0 : real_call<decltype(::pthread_join)>("pthread_join")(id, value);
}

// ---- files ----

int simulated_open64(const char*, int, ...) SIMULATED_CALL("open64");
int simulated_open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  auto mode = static_cast<mode_t>((flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, unsigned) : 0);
  va_end(more);
  return open_file(path, flags, mode);
}

int simulated_close(int) SIMULATED_CALL("close");
int simulated_close(int descriptor) {
  if (auto* of = with(descriptor))
    return answered(of->close(descriptor));
  simulated_sockets::touch();
  return static_cast<int>(::syscall(SYS_close, descriptor));
}

ssize_t simulated_read(int, void*, size_t) SIMULATED_CALL("read");
ssize_t simulated_read(int descriptor, void* to, size_t bytes) {
  auto* of = with(descriptor);
  if (of == nullptr)
    return ::syscall(SYS_read, descriptor, to, bytes);
  uint64_t& at = of->position(descriptor);
  auto count = answered(of->disk()->read(descriptor, at, {static_cast<std::byte*>(to), bytes}));
  at += count > 0 ? static_cast<uint64_t>(count) : 0;
  return count;
}

ssize_t simulated_write(int, const void*, size_t) SIMULATED_CALL("write");
ssize_t simulated_write(int descriptor, const void* from, size_t bytes) {
  auto* of = with(descriptor);
  if (of == nullptr) {
    simulated_sockets::touch(); // it may be an eventfd
    return ::syscall(SYS_write, descriptor, from, bytes);
  }
  uint64_t& at = of->position(descriptor);
  auto count = answered(of->disk()->write(descriptor, at, {static_cast<const std::byte*>(from), bytes}));
  at += count > 0 ? static_cast<uint64_t>(count) : 0;
  return count;
}

ssize_t simulated_pread64(int, void*, size_t, off_t) SIMULATED_CALL("pread64");
ssize_t simulated_pread64(int descriptor, void* to, size_t bytes, off_t at) {
  if (auto* of = with(descriptor))
    return answered(
        of->disk()->read(descriptor, static_cast<uint64_t>(at), {static_cast<std::byte*>(to), bytes}));
  return ::syscall(SYS_pread64, descriptor, to, bytes, at);
}

ssize_t simulated_pwrite64(int, const void*, size_t, off_t) SIMULATED_CALL("pwrite64");
ssize_t simulated_pwrite64(int descriptor, const void* from, size_t bytes, off_t at) {
  if (auto* of = with(descriptor))
    return answered(of->disk()->write(descriptor, static_cast<uint64_t>(at),
                                      {static_cast<const std::byte*>(from), bytes}));
  return ::syscall(SYS_pwrite64, descriptor, from, bytes, at);
}

int simulated_fsync(int) SIMULATED_CALL("fsync");
int simulated_fsync(int descriptor) {
  if (auto* of = with(descriptor))
    return answered(of->disk()->fsync(descriptor));
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int simulated_ftruncate64(int, off_t) SIMULATED_CALL("ftruncate64");
int simulated_ftruncate64(int descriptor, off_t bytes) {
  if (auto* of = with(descriptor))
    return answered(of->disk()->ftruncate(descriptor, static_cast<uint64_t>(bytes)));
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, bytes));
}

int simulated_fallocate64(int, int, off_t, off_t) SIMULATED_CALL("fallocate64");
int simulated_fallocate64(int descriptor, int mode, off_t at, off_t bytes) {
  if (auto* of = with(descriptor))
    return answered(mode != 0 || at != 0 ? -EOPNOTSUPP
                                         : of->disk()->fallocate(descriptor, static_cast<uint64_t>(bytes)));
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, at, bytes));
}

int simulated_fstat64(int, struct stat*) SIMULATED_CALL("fstat64");
int simulated_fstat64(int descriptor, struct stat* out) {
  auto* of = with(descriptor);
  if (of == nullptr)
    return static_cast<int>(::syscall(SYS_fstat, descriptor, out));
  file_facts facts;
  int found = of->disk()->fstat(descriptor, facts);
  describe(facts, *out);
  return answered(found);
}

int simulated_fstatvfs64(int, struct statvfs*) SIMULATED_CALL("fstatvfs64");
int simulated_fstatvfs64(int descriptor, struct statvfs* out) {
  auto* of = with(descriptor);
  *out = {};
  out->f_frsize = out->f_bsize = sector_bytes;
  out->f_bfree = out->f_bavail = of != nullptr ? of->disk()->free_bytes() / sector_bytes : 0;
  return of != nullptr ? 0 : answered(-ENOSYS);
}

int simulated_flock(int, int) SIMULATED_CALL("flock");
int simulated_flock(int descriptor, int how) {
  return with(descriptor) != nullptr ? 0 : static_cast<int>(::syscall(SYS_flock, descriptor, how));
}

int simulated_fcntl64(int, int, ...) SIMULATED_CALL("fcntl64");
int simulated_fcntl64(int descriptor, int command, ...) {
  va_list more;
  va_start(more, command);
  long argument = va_arg(more, long);
  va_end(more);
  auto* of = with(descriptor);
  if (of == nullptr)
    return static_cast<int>(::syscall(SYS_fcntl, descriptor, command, argument));
  if (command == F_SETFL)
    return answered(of->disk()->set_direct(descriptor, (argument & O_DIRECT) != 0));
  return command == F_GETFL ? O_RDWR : answered(-EINVAL);
}

int simulated_stat(const char*, struct stat*) SIMULATED_CALL("stat");
int simulated_stat(const char* path, struct stat* out) { return examine(path, *out); }

int simulated_access(const char*, int) SIMULATED_CALL("access");
int simulated_access(const char* path, int how) {
  struct stat out {};
  return simulated_calls::is_simulated(path) ? examine(path, out)
                                             : static_cast<int>(::syscall(SYS_access, path, how));
}

int simulated_unlink(const char*) noexcept SIMULATED_CALL("unlink");
int simulated_unlink(const char* path) noexcept {
  if (auto* of = with(path))
    return answered(of->disk()->unlink(path));
  return static_cast<int>(::syscall(SYS_unlink, path));
}

int simulated_rename(const char*, const char*) noexcept SIMULATED_CALL("rename");
int simulated_rename(const char* from, const char* to) noexcept {
  if (auto* of = with(from))
    return answered(of->disk()->rename(from, to));
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

int simulated_mkdir(const char*, mode_t) noexcept SIMULATED_CALL("mkdir");
int simulated_mkdir(const char* path, mode_t mode) noexcept {
  if (auto* of = with(path))
    return answered(of->disk()->mkdir(path));
  return static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

} // extern "C"
