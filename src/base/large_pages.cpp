#include "base/large_pages.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace terrace {

namespace {

constexpr uint64_t small_page_bytes = 4096;
constexpr uint64_t units_at_once = 128; ///< nothing can interrupt a call, so it is kept short

#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25; // C libraries before 2.37 have no name for it
#endif

bool nothing_in_memory(std::byte* unit) {
  std::array<unsigned char, large_page_bytes / small_page_bytes> in_memory;
  return ::mincore(unit, large_page_bytes, in_memory.data()) == 0 &&
         std::none_of(in_memory.begin(), in_memory.end(), [](unsigned char page) { return (page & 1) != 0; });
}

/// Brings the first small page into memory: the kernel makes a large page out of one small page or more, but
/// not out of none. The page is only read, because another process may write to it.
bool make_first_small_page(std::byte* unit) {
  return ::madvise(unit, small_page_bytes, MADV_POPULATE_READ) == 0;
}

} // namespace

uint64_t make_large_pages(std::byte* data, uint64_t bytes) {
  const uint64_t before = -reinterpret_cast<uintptr_t>(data) % large_page_bytes;
  const uint64_t units = bytes > before ? (bytes - before) / large_page_bytes : 0;
  std::byte* begin = data + before;
  uint64_t made = 0;
  for (uint64_t unit = 0; unit < units;) {
    uint64_t end = unit;
    while (end < std::min(units, unit + units_at_once) && nothing_in_memory(begin + end * large_page_bytes)) {
      if (!make_first_small_page(begin + end * large_page_bytes))
        return made;
      ++end;
    }
    // One call makes several units, because each call waits once for every processor.
    if (end > unit) {
      const uint64_t all = (end - unit) * large_page_bytes;
      if (::madvise(begin + unit * large_page_bytes, all, collapse) != 0)
        return made;
      made += all;
    }
    unit = std::max(end, unit + 1);
  }
  return made;
}

large_page_answer make_large_page(std::byte* unit) {
  const auto begin = std::chrono::steady_clock::now();
  if (!make_first_small_page(unit) || ::madvise(unit, large_page_bytes, collapse) != 0)
    return large_page_refusal(errno);
  return large_page_made(std::chrono::steady_clock::now() - begin);
}

large_page_answer large_page_made(std::chrono::nanoseconds took) {
  return took <= large_page_patience ? large_page_answer::made : large_page_answer::slow;
}

large_page_answer large_page_refusal(int error) {
  // The kernel has no memory in one piece, somebody else holds a page, or the memory cgroup has no room
  // (madvise(2)); these may change. All other errors will be the same the next time: kernels before 6.1 do
  // not know the call, and some mappings cannot have large pages.
  return error == ENOMEM || error == EAGAIN || error == EBUSY ? large_page_answer::refused
                                                              : large_page_answer::impossible;
}

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
