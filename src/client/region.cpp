#include "client/region.hpp"

#include "base/large_pages.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace terrace::client {

namespace {

tl::unexpected<error> failed(const char* text, uint64_t bytes) {
  int reason = errno;
  auto code = reason == ENOMEM || reason == ENOSPC ? errc::no_space : errc::unsupported;
  return fail(code, "cannot " + std::string(text) + " a region of " + std::to_string(bytes) +
                        " bytes: " + std::strerror(reason));
}

} // namespace

// Defined here, because the library exports no other room's functions.
region::region() = default;
region::region(region&& other) noexcept = default;
region& region::operator=(region&& other) noexcept = default;
region::~region() = default;

result<region> region::create(const char* name, uint64_t bytes) {
  if (bytes == 0)
    return fail(errc::bad_request, "expected a region of at least one byte, got 0");
  region made;
  made.fd_ = unique_fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd_)
    return failed("create", bytes);
  if (::ftruncate(made.fd_.get(), static_cast<off_t>(bytes)) != 0)
    return failed("size", bytes);
  if (::fcntl(made.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("seal", bytes);
  auto mapped = mapping::map(made.fd_.get(), bytes, true);
  if (!mapped)
    return tl::unexpected(mapped.error());
  made.memory_ = std::move(*mapped);
  // Asks for fewer and larger pages, here and in the daemon, where the system makes them only automatically
  // (transparent_hugepage/shmem_enabled).
  (void) ::madvise(made.data(), bytes, MADV_HUGEPAGE);
  return made;
}

result<void> region::commit() const {
  if (size() == 0)
    return {};
  make_large_pages(memory_.data(), size());
  if (::madvise(data(), size(), MADV_POPULATE_WRITE) != 0) {
    if (errno == EFAULT)
      errno = ENOMEM;
    return failed("commit", size());
  }
  return {};
}

} // namespace terrace::client
