#include "daemon_heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace terrace::simulation {

namespace {

thread_local bool counted = false;
std::atomic<uint64_t> in_use{0}, most{0};

} // namespace

bool& daemon_heap::counts() { return counted; }
uint64_t daemon_heap::bytes() { return in_use.load(); }
uint64_t daemon_heap::peak() { return most.load(); }
void daemon_heap::begin_peak() { most = in_use.load(); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

bool daemon_heap::is_counted() { return false; }

} // namespace terrace::simulation

#else

bool daemon_heap::is_counted() { return true; }

namespace {

/// In front of each allocation of this program.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) allocation {
  uint64_t bytes = 0; ///< 0: not the daemon's
};

size_t room_before(size_t alignment) { return std::max(alignment, sizeof(allocation)); }

void* allocate(size_t bytes, size_t alignment) {
  size_t before = room_before(alignment);
  size_t all = (before + bytes + alignment - 1) / alignment * alignment;
  void* base = all < bytes                             ? nullptr
               : alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, all)
                                                       : std::malloc(all);
  if (base == nullptr)
    throw std::bad_alloc();
  std::byte* at = static_cast<std::byte*>(base) + before;
  auto* head = new (at - sizeof(allocation)) allocation;
  if (counted) {
    head->bytes = bytes;
    uint64_t now = in_use.fetch_add(bytes) + bytes;
    most = std::max(most.load(), now);
  }
  return at;
}

void release(void* at, size_t alignment) {
  if (at == nullptr)
    return;
  std::byte* bytes = static_cast<std::byte*>(at);
  in_use -= reinterpret_cast<allocation*>(bytes - sizeof(allocation))->bytes;
  std::free(bytes - room_before(alignment));
}

} // namespace

} // namespace terrace::simulation

using terrace::simulation::allocate;
using terrace::simulation::release;

// The other forms call these.
void* operator new(size_t bytes) { return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* at) noexcept { release(at, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void operator delete(void* at, size_t) noexcept { release(at, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void operator delete(void* at, std::align_val_t alignment) noexcept {
  release(at, static_cast<size_t>(alignment));
}
void operator delete(void* at, size_t, std::align_val_t alignment) noexcept {
  release(at, static_cast<size_t>(alignment));
}

#endif
