#include "base/mapping.hpp"

#include "base/large_pages.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace terrace {

namespace {

/// Returns an address, a multiple of `large_page_bytes`, where `bytes` could be mapped a moment ago. Null:
/// let the kernel choose.
void* aligned_hole(uint64_t bytes) {
  const uint64_t room = bytes + large_page_bytes;
  if (bytes < large_page_bytes || room < bytes)
    return nullptr;
  void* reserved = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return nullptr;
  ::munmap(reserved, room);
  return static_cast<std::byte*>(reserved) + -reinterpret_cast<uintptr_t>(reserved) % large_page_bytes;
}

/// Maps the file at an address where its large pages can be mapped as such; the kernel chooses such an
/// address by itself only where it makes large pages by itself. The address is a wish: if another thread has
/// taken it, the mapping is elsewhere.
void* map_shared(int fd, uint64_t bytes, int access) {
  return ::mmap(aligned_hole(bytes), bytes, access, MAP_SHARED, fd, 0);
}

} // namespace

result<mapping> mapping::map(int fd, uint64_t bytes, bool writable) {
  if (bytes == 0)
    return fail(errc::bad_request, "cannot map 0 bytes");
  void* data = map_shared(fd, bytes, PROT_READ | (writable ? PROT_WRITE : 0));
  if (data == MAP_FAILED) {
    int reason = errno;
    errc code = reason == EPERM || reason == EACCES ? errc::denied
                : reason == ENOMEM                  ? errc::no_space
                                                    : errc::internal;
    return fail(code, "cannot map " + std::to_string(bytes) + " bytes " +
                          (writable ? "for writing: " : "for reading: ") + std::strerror(reason));
  }
  return mapping(static_cast<std::byte*>(data), bytes);
}

void mapping::reset() {
  if (data_ != nullptr)
    ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

} // namespace terrace
