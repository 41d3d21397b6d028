#include "driver_fixture.hpp"

#include <sys/mman.h>

namespace terrace::cuda {

host_pages::host_pages(size_t bytes)
    : data_(static_cast<std::byte*>(
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
      bytes_(bytes) {}

host_pages::~host_pages() { munmap(data_, bytes_); }

void fill(std::span<std::byte> bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = pattern(seed, i);
}

testing::AssertionResult has_pattern(std::span<const std::byte> bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(seed, i))
      return testing::AssertionFailure() << "byte " << i << " of " << bytes.size() << " is another";
  return testing::AssertionSuccess();
}

} // namespace terrace::cuda
