#include "bench/shared_memory.hpp"

#include "base/large_pages.hpp"
#include "bench/harness.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace terrace::bench {

shared_memory shared_memory::untouched(size_t bytes) {
  shared_memory made;
  made.fd_ = unique_fd(::memfd_create("terrace-bench", MFD_CLOEXEC));
  if (::ftruncate(made.fd_.get(), static_cast<off_t>(bytes)) != 0)
    give_up("memfd_create failed");
  auto mapped = mapping::map(made.fd_.get(), bytes, true);
  if (!mapped)
    give_up("cannot map " + std::to_string(bytes) + " bytes");
  made.memory_ = std::move(*mapped);
  return made;
}

shared_memory::shared_memory(size_t bytes) : shared_memory(untouched(bytes)) {
  (void) ::madvise(memory_.data(), bytes, MADV_HUGEPAGE);
  make_large_pages(memory_.data(), bytes);
  std::memset(memory_.data(), 0x5a, bytes);
}

} // namespace terrace::bench
