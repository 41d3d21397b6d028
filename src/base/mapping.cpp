#include "base/mapping.hpp"

#include "base/large_pages.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace terrace {

namespace {

/// At an address where large pages of the file can be mapped as such. The kernel chooses one by itself only where it makes
/// them by itself.
void* map_shared(int fd, uint64_t bytes, int access) {
  const uint64_t room = bytes >= large_page_bytes ? bytes + large_page_bytes : bytes;
  if (room < bytes || room == bytes)
    return ::mmap(nullptr, bytes, access, MAP_SHARED, fd, 0);
  void* reserved = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return MAP_FAILED;
  auto* begin = static_cast<std::byte*>(reserved);
  const uint64_t before = -reinterpret_cast<uintptr_t>(reserved) % large_page_bytes;
  void* data = ::mmap(begin + before, bytes, access, MAP_SHARED | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    const int reason = errno;
    ::munmap(reserved, room);
    errno = reason;
    return MAP_FAILED;
  }
  constexpr uint64_t page = 4096;
  const uint64_t end = before + (bytes + page - 1) / page * page;
  if (before != 0)
    ::munmap(begin, before);
  if (end < room)
    ::munmap(begin + end, room - end);
  return data;
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
