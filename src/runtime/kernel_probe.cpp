#include "runtime/uring.hpp"

#include "base/printable.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

namespace terrace::runtime {

namespace {
constexpr auto needed_profile =
    "use a seccomp profile that allows io_uring_setup, io_uring_enter and io_uring_register";
} // namespace

std::string ring_features::describe() const {
  auto word = [](bool granted, const char* name) {
    return (granted ? std::string{} : std::string{"no "}) + name;
  };
  return word(single_issuer, "single issuer") + ", " + word(defer_taskrun, "deferred task work") + ", " +
         word(registered_buffers, "registered buffers");
}

std::string kernel_report::describe() const {
  auto limit = memlock_bytes == std::numeric_limits<uint64_t>::max() ? std::string{"unlimited"}
                                                                     : readable_bytes(memlock_bytes);
  return "Linux " + release + ", io_uring with " + features.describe() + ", memlock " + limit;
}

namespace {

/// Describes the limit if it is lower than what the rings of a few workers take.
std::string locked_memory() {
  constexpr rlim_t enough = 1 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur >= enough)
    return {};
  return ": this kernel charges rings to the limit on locked memory, which is " +
         readable_bytes(limit.rlim_cur);
}

} // namespace

std::string explain_ring_error(const std::string& call, int error_number) {
  std::string text = "io_uring is not available: " + call + " failed with ";
  switch (error_number) {
    case EPERM:
    case EACCES:
      return text +
             "EPERM (permission denied); set the sysctl kernel.io_uring_disabled to 0 and, in a container, " +
             needed_profile + " (the default profiles deny them)";
    case ENOSYS:
      return text +
             "ENOSYS (not implemented); Linux 5.15 or newer with CONFIG_IO_URING is needed, and in a "
             "container " +
             needed_profile + "; the sysctl kernel.io_uring_disabled must be 0";
    case ENOMEM:
      return text + "ENOMEM (out of memory)" + locked_memory() +
             "; raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK= in systemd) or the container's memory limit";
    case EMFILE:
    case ENFILE:
      return text + "EMFILE (no descriptors left); raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE= in systemd)";
    default:
      return text + "errno " + std::to_string(error_number) + " (" +
             std::system_category().message(error_number) + "); Linux 5.15 or newer is needed";
  }
}

namespace {

/// Submits and awaits one operation as a worker does. Returns the errno of the kernel's refusal, or 0.
int try_operation(ring& kernel) {
  operation nothing;
  kernel.start(nothing);
  if (int refused = kernel.enter())
    return refused;
  std::array<completion, 1> done;
  while (kernel.reap(done) == 0)
    if (int refused = kernel.wait())
      return refused;
  kernel.wake(); // without it the wait would have no end
  return kernel.wait();
}

} // namespace

result<kernel_report> probe_kernel() {
  runtime_options small;
  small.ring_entries = 8;
  small.buffer_slots = 1;
  auto ring = make_uring(small);
  if (!ring)
    return tl::unexpected(ring.error());
  if (int refused = try_operation(**ring))
    return fail(errc::unsupported, explain_ring_error("io_uring_enter", refused));
  kernel_report report;
  utsname name{};
  if (::uname(&name) == 0)
    report.release = name.release;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    report.memlock_bytes =
        limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<uint64_t>::max() : limit.rlim_cur;
  constexpr size_t page = 4096;
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED && (*ring)->register_arena(memory, page) >= 0)
    (void) (*ring)->wait(); // the wait registers the page
  report.features = (*ring)->features();
  (*ring)->close();
  if (memory != MAP_FAILED)
    ::munmap(memory, page);
  return report;
}

} // namespace terrace::runtime
