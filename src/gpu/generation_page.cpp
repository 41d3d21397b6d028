#include "gpu/generation_page.hpp"

#include <climits>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace::gpu {

namespace {

// The futex is not private: the waiter may be another process.
void futex(uint32_t* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

} // namespace

result<generation_page> generation_page::make(uint32_t slots) {
  if (slots == 0 || slots > slots_max)
    return fail(errc::bad_request, "a page has 1 to " + std::to_string(slots_max) + " generations, not " +
                                       std::to_string(slots));
  unique_fd descriptor(memfd_create("terrace-generations", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor || ftruncate(descriptor.get(), static_cast<off_t>(slots * sizeof(uint32_t))) != 0 ||
      fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(errc::no_space, "no memory for a page of generations");
  return open(std::move(descriptor));
}

result<generation_page> generation_page::open(unique_fd descriptor) {
  struct stat about = {};
  int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(descriptor.get(), &about) != 0)
    return fail(errc::denied, "a page of generations is a memfd that is sealed against shrinking");
  auto bytes = static_cast<uint64_t>(about.st_size);
  if (bytes < sizeof(uint32_t) || bytes > slots_max * sizeof(uint32_t))
    return fail(errc::bad_request, "a page of generations of " + std::to_string(bytes) + " bytes");
  auto memory = mapping::map(descriptor.get(), bytes, true);
  if (!memory)
    return tl::unexpected(memory.error());
  return generation_page(std::move(descriptor), std::move(*memory));
}

void generation_page::write(generation next) const {
  word(next.slot).store(next.value, std::memory_order_release);
  wake(next.slot);
}

void generation_page::advance(generation next) const {
  auto now = word(next.slot).load(std::memory_order_relaxed);
  while (!reached(now, next.value))
    if (word(next.slot).compare_exchange_weak(now, next.value, std::memory_order_release,
                                              std::memory_order_relaxed))
      break;
  wake(next.slot);
}

void generation_page::wake(uint32_t slot) const {
  futex(reinterpret_cast<uint32_t*>(memory_.data()) + slot, FUTEX_WAKE, INT_MAX);
}

void generation_page::wait(generation wanted) const {
  for (;;) {
    auto now = value(wanted.slot);
    if (reached(now, wanted.value))
      return;
    // Sleeps only while the slot still has the value read before.
    futex(reinterpret_cast<uint32_t*>(memory_.data()) + wanted.slot, FUTEX_WAIT, now);
  }
}

} // namespace terrace::gpu
