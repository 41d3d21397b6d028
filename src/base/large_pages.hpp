// Large pages of shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace {

constexpr uint64_t large_page_bytes = 2 << 20;

/// Makes the parts of shared memory of which nothing is in memory, as large pages: each whole 2 MiB at such an address,
/// in a mapping that begins at one (as a `mapping` does where it can). Zeroed and mapped, in a tenth of the time that small pages take, and
/// as many bytes. What is in memory in part is left alone, and so is everything where the kernel has no large pages to give,
/// or does not know how (before Linux 6.1): pages that are not made here come with the first access. Returns how
/// many bytes were made.
///
/// The kernel does this whatever transparent_hugepage/shmem_enabled says, except `deny`. Any number of threads and
/// processes may access the memory meanwhile.
uint64_t make_large_pages(std::byte* data, uint64_t bytes);

} // namespace terrace
