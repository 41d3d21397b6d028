#include "base/mapping.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace terrace {

result<mapping> mapping::map(int fd, uint64_t bytes, bool writable) {
  if (bytes == 0)
    return fail(errc::bad_request, "cannot map 0 bytes");
  void* data = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
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
