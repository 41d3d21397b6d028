#include "base/copy_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace terrace;

namespace {

/// Returns a byte that differs from its neighbours and from the byte a part away.
uint8_t byte_at(size_t i) { return static_cast<uint8_t>(i % 251); }

} // namespace

TEST(CopyMemory, CopiesAllBytesAndNoOthers) {
  constexpr size_t part = memory_copy_part_bytes, before = 3, behind = 64;
  for (size_t bytes : {size_t{0}, size_t{1}, part - 1, part, part + 1, 3 * part + 7}) {
    std::vector<uint8_t> from(bytes), to(before + bytes + behind, 0xee);
    for (size_t i = 0; i < bytes; ++i)
      from[i] = byte_at(i);
    copy_memory(to.data() + before, from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + before)) << bytes;
    auto untouched = [](uint8_t value) { return value == 0xee; };
    EXPECT_TRUE(std::all_of(to.begin(), to.begin() + before, untouched)) << bytes;
    EXPECT_TRUE(std::all_of(to.end() - behind, to.end(), untouched)) << bytes;
  }
}
