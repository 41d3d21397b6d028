#include "memory/arena.hpp"

#include "base/large_pages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace terrace {

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t huge_page_bytes = 2ULL << 20;

tl::unexpected<error> fail_errno(const std::string& text) {
  int reason = errno;
  return fail(reason == ENOMEM || reason == ENOSPC ? errc::no_space : errc::internal,
              text + ": " + std::strerror(reason));
}

} // namespace

result<void> arena_options::validate() const {
  uint64_t unit = huge_pages ? huge_page_bytes : page_bytes;
  if (bytes == 0 || bytes % unit != 0)
    return fail(errc::bad_request, "an arena of " + std::to_string(bytes) +
                                       " bytes: expected a multiple other than 0 of " + std::to_string(unit));
  if (name.size() > 200)
    return fail(errc::bad_request,
                "an arena's name has at most 200 bytes, not " + std::to_string(name.size()));
  return {};
}

result<arena> arena::create(const arena_options& options) {
  if (auto valid = options.validate(); !valid)
    return tl::unexpected(valid.error());
  if (!options.huge_pages)
    return create_with(options, false);
  auto huge = create_with(options, true);
  if (huge)
    return huge;
  auto ordinary = create_with(options, false);
  if (ordinary)
    ordinary->huge_pages_refusal_ = huge.error().text + "; ordinary pages are used. Expected " +
                                    std::to_string(options.bytes / huge_page_bytes) +
                                    " free pages of 2 MiB: raise vm.nr_hugepages";
  return ordinary;
}

result<arena> arena::create_with(const arena_options& options, bool huge_pages) {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge_pages ? MFD_HUGETLB | MFD_HUGE_2MB : 0u);
  arena made;
  made.client_may_write_ = options.client_may_write;
  made.huge_pages_ = huge_pages;
  made.fd_.reset(::memfd_create(options.name.c_str(), flags));
  if (!made.fd_)
    return fail_errno("memfd_create");
  if (::ftruncate(made.fd_.get(), static_cast<off_t>(options.bytes)) != 0)
    return fail_errno("cannot size the arena to " + std::to_string(options.bytes) + " bytes");
  auto memory = mapping::map(made.fd_.get(), options.bytes, true);
  if (!memory)
    return tl::unexpected(memory.error());
  made.memory_ = std::move(*memory);
  if (options.numa_node)
    if (auto bound = bind_to_node(made.data(), options.bytes, *options.numa_node); !bound)
      return tl::unexpected(bound.error());
  // Uses 2 MiB pages without reserving them where the system allows it (transparent_hugepage/shmem_enabled):
  // a device then gets long contiguous ranges instead of single pages. Not an error elsewhere.
  if (!huge_pages)
    (void) ::madvise(made.data(), options.bytes, MADV_HUGEPAGE);
  int seals =
      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (options.client_may_write ? 0 : F_SEAL_FUTURE_WRITE);
  if (::fcntl(made.fd_.get(), F_ADD_SEALS, seals) != 0)
    return fail_errno("cannot seal the arena");
  // A client that can write could corrupt the data of all clients of the group, so the seal is verified.
  if (!options.client_may_write && mapping::map(made.fd_.get(), options.bytes, true))
    return fail(errc::internal,
                "the arena can still be mapped for writing after F_SEAL_FUTURE_WRITE: expected a kernel "
                "of 5.1 or later (5.13 with huge pages)");
  return made;
}

result<unique_fd> arena::duplicate() const {
  unique_fd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy)
    return fail_errno("cannot duplicate the arena's descriptor");
  return copy;
}

bool all_resident(const std::byte* data, uint64_t bytes) {
  constexpr uint64_t together = 4096; // pages
  unsigned char resident[together];
  for (uint64_t done = 0; done < bytes; done += together * page_bytes) {
    uint64_t some = std::min(bytes - done, together * page_bytes);
    if (::mincore(const_cast<std::byte*>(data + done), some, resident) != 0)
      return false;
    uint64_t pages = (some + page_bytes - 1) / page_bytes;
    if (std::any_of(resident, resident + pages, [](unsigned char page) { return (page & 1) == 0; }))
      return false;
  }
  return true;
}

result<bool> arena::prefault(uint64_t bytes) {
  uint64_t unit = huge_pages_ ? huge_page_bytes : page_bytes;
  uint64_t left = size() - prefaulted_;
  uint64_t step = bytes >= left ? left : std::min(left, (bytes + unit - 1) / unit * unit);
  if (step > 0) {
    if (!huge_pages_)
      make_large_pages(data() + prefaulted_, step);
    // Populating (Linux 5.14) maps the pages and reports a shortage that would otherwise cause SIGBUS on
    // access; older kernels use fallocate.
    bool done = ::madvise(data() + prefaulted_, step, MADV_POPULATE_WRITE) == 0;
    if (!done && errno == EINVAL)
      done = ::fallocate(fd_.get(), 0, static_cast<off_t>(prefaulted_), static_cast<off_t>(step)) == 0;
    if (!done) {
      if (errno == EFAULT || errno == EHWPOISON)
        errno = ENOMEM;
      return fail_errno("cannot commit " + std::to_string(step) + " bytes of the arena at offset " +
                        std::to_string(prefaulted_));
    }
    prefaulted_ += step;
  }
  return prefaulted_ == size();
}

} // namespace terrace
