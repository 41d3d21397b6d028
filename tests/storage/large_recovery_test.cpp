// Recovery of many objects, written as a daemon writes them.
#include "base/unique_fd.hpp"
#include "bench/generated_index.hpp"
#include "storage/recovery.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace terrace {
namespace {

void recover_all(uint64_t objects) {
  std::string path = (std::filesystem::temp_directory_path() / "terrace-recovery-XXXXXX").string();
  unique_fd file(::mkstemp(path.data()));
  ::unlink(path.c_str());
  file_device device(path, file.get());
  auto made = bench::generated_index::write(device, objects);
  ASSERT_TRUE(made) << made.error().text;
  recovered_volume found = recover(device, made->block(), made->arena_bytes());
  ASSERT_EQ(found.objects.size(), objects);
  EXPECT_EQ(found.spaces.size(), bench::generated_index::spaces);
  EXPECT_EQ(found.counts.damaged_blocks + found.counts.missing_blocks + found.counts.overlapping, 0u);
  uint64_t wrong = 0;
  uint64_t last = 0;
  for (const index_record& object : found.objects) {
    uint64_t place = object.offset / bench::generated_index::object_bytes;
    wrong += object.generation <= last || object != made->expected(place);
    last = object.generation;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(LargeRecovery, FindsAHundredThousandObjects) { recover_all(100'000); }

TEST(LargeRecovery, SlowFindsTenMillionObjects) {
  if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
    GTEST_SKIP() << "takes 3 GiB of memory and 2 GiB of disk; set TERRACE_SLOW_TESTS to run it";
  recover_all(10'000'000);
}

} // namespace
} // namespace terrace
