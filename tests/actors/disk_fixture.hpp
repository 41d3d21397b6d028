// A trust group whose objects lie on disk alone, and the state of that disk.
#pragma once

#include "group_fixture.hpp"

namespace terrace::actors::test {

struct disk_fixture : group_fixture {
  /// Stores objects, so that they are on disk and nowhere else.
  void on_disk(uint64_t first, size_t count) {
    EXPECT_EQ(store(first, count).stored_chunks, count);
    EXPECT_EQ(present(disk_tier(), first, count), count);
    forget_host(first, count);
    EXPECT_EQ(present(group->host, first, count), 0u);
  }
};

} // namespace terrace::actors::test
