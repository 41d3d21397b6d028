// Large pages of shared memory.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace {

// Process memory for large tables.

/// A private, zeroed range of memory, a multiple of 2 MiB and aligned to 2 MiB. `huge`: uses transparent huge
/// pages where the kernel provides them on request (otherwise ordinary pages, silently), so that random
/// access to a table costs one cache miss without a page table walk. Pages are committed on first access.
class huge_memory {
 public:
  static constexpr size_t unit = size_t{2} << 20;

  huge_memory() = default;
  /// Throws std::bad_alloc, like `new`. Precondition: `bytes` is a multiple of `unit`.
  huge_memory(size_t bytes, bool huge);
  huge_memory(huge_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  huge_memory& operator=(huge_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~huge_memory();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

constexpr uint64_t large_page_bytes = 2 << 20;

/// Fills the parts of shared memory that have no pages yet with large pages: each 2 MiB unit that has no page at all,
/// at addresses that are multiples of 2 MiB, in a mapping that begins at such an address (as a `mapping` does where it
/// can). The pages are zeroed and mapped in a tenth of the time that small pages take, and use as many bytes. Units
/// that are partly in memory are left alone. Nothing happens where the kernel has no large pages to give or does not
/// know how (before Linux 6.1): the first access makes the missing pages. Returns how many bytes were made.
///
/// The kernel does this whatever transparent_hugepage/shmem_enabled says, except `deny`. Any number of threads and
/// processes may access the memory meanwhile.
uint64_t make_large_pages(std::byte* data, uint64_t bytes);

enum class large_page_answer : uint8_t {
  made,
  slow,       ///< made, but it took longer than small pages take
  refused,    ///< the kernel has none to give now
  impossible, ///< never possible in this mapping, or on this kernel
};
constexpr size_t large_page_answers = 4;
constexpr std::array<const char*, large_page_answers> large_page_answer_names{"made", "slow", "refused",
                                                                              "impossible"};

/// About the time that 512 first accesses to small pages take.
constexpr auto large_page_patience = std::chrono::milliseconds(1);

/// Makes one large page at `unit`, a multiple of 2 MiB where no page is in memory yet. If there is one, it
/// becomes part of the large page, which takes longer. If the large page is not made, the unit's first small
/// page may be left in memory.
large_page_answer make_large_page(std::byte* unit);

/// Classifies a large page that was made by the time that it took, and a failure by the kernel's errno.
large_page_answer large_page_made(std::chrono::nanoseconds took);
large_page_answer large_page_refusal(int error);

} // namespace terrace
