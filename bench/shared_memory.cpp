#include "bench/shared_memory.hpp"

#include "bench/harness.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace terrace::bench {

shared_memory::shared_memory(size_t bytes) : fd_(::memfd_create("terrace-bench", MFD_CLOEXEC)), size_(bytes) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    give_up("memfd_create failed");
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED)
    give_up("cannot map " + std::to_string(bytes) + " bytes");
  data_ = static_cast<uint8_t*>(at);
  (void) ::madvise(data_, bytes, MADV_HUGEPAGE); // as the daemon asks for its arenas
  std::memset(data_, 0x5a, bytes);
}

shared_memory::~shared_memory() { ::munmap(data_, size_); }

} // namespace terrace::bench
