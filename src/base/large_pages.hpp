// Large pages of shared memory.
#pragma once

#include <array>
#include <chrono>
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

enum class large_page_answer : uint8_t {
  made,
  slow,       ///< made, in a longer time than small pages take
  refused,    ///< the kernel has none to give now
  impossible, ///< in this mapping, or on this kernel
};
constexpr size_t large_page_answers = 4;
constexpr std::array<const char*, large_page_answers> large_page_answer_names{"made", "slow", "refused",
                                                                              "impossible"};

/// What 512 first accesses to small pages take, about.
constexpr auto large_page_patience = std::chrono::milliseconds(1);

/// One of them, at a multiple of 2 MiB, of a unit of which nothing is in memory; if something is, it becomes part of the page, which takes
/// longer. One that is not made may leave its first small page.
large_page_answer make_large_page(std::byte* unit);

/// What it was, when it took so long; and what the kernel means by this errno.
large_page_answer large_page_made(std::chrono::nanoseconds took);
large_page_answer large_page_refusal(int error);

} // namespace terrace
