#include "base/huge_memory.hpp"

#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <new>

namespace terrace {

huge_memory::huge_memory(size_t bytes, bool huge) : bytes_(bytes) {
  assert(bytes != 0 && bytes % unit == 0);
  size_t mapped = bytes + unit; // contains a range aligned to a unit
  void* got = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED)
    throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(got);
  size_t before = (unit - reinterpret_cast<uintptr_t>(got) % unit) % unit;
  if (before != 0)
    ::munmap(begin, before);
  if (before != unit)
    ::munmap(begin + before + bytes, unit - before);
  data_ = begin + before;
  if (huge)
    (void) ::madvise(data_, bytes, MADV_HUGEPAGE); // has no effect where the kernel does not support it
}

huge_memory::~huge_memory() {
  if (data_ != nullptr)
    ::munmap(data_, bytes_);
}

} // namespace terrace
