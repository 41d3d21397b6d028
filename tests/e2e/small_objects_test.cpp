// Many small objects across an orderly restart: the index on disk keeps them, or reports what it will lose.
#include "workload.hpp"

#include "base/printable.hpp"

#include <cstdlib>

namespace terrace::e2e {
namespace small_objects_test {

constexpr uint64_t small_bytes = 5000;
constexpr uint32_t at_a_time = 1000;

client::space_spec small_space() {
  client::space_spec spec = test_space();
  spec.pools = {{.name = "kv", .object_bytes = small_bytes}};
  return spec;
}

uint32_t store_small(tester& client, uint64_t seed) {
  auto chain = chain_of(seed, at_a_time);
  std::vector<client::run> runs;
  for (uint32_t i = 0; i < at_a_time; ++i)
    runs.push_back({.offset = i * small_bytes, .bytes = small_bytes});
  auto request = client.store_of({});
  request.what = client::prefix::of_digests(chain);
  request.runs = runs;
  auto stored = client->store(request, patiently());
  EXPECT_TRUE(stored) << stored.error().text;
  return stored ? stored->stored_chunks : 0;
}

/// Stores `chains` of a thousand objects, 12 KiB each on disk, ends the daemon in order and counts them
/// again.
void expect_all_back(uint64_t disk_bytes, uint64_t chains) {
  daemon_under_test daemon({.disk_bytes = disk_bytes, .disk = "admission = \"always\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  {
    tester client(daemon.socket(), "small", 8 * object_bytes, small_space());
    for (uint64_t seed = 0; seed < chains; ++seed)
      ASSERT_EQ(store_small(client, seed), at_a_time);
  }
  ASSERT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(daemon.log().find("will not be found"), std::string::npos);
  daemon.start();
  EXPECT_TRUE(daemon.await_log(format_count(chains * at_a_time) + " objects found"));
}

TEST(SmallObjects, AllComeBackAfterAnOrderlyRestart) {
  expect_all_back(384 * mebibyte, 20); // far more than one object per 48 KiB of the disk
}

TEST(SmallObjectsSlow, AGibibyteOfThemComesBackAfterAnOrderlyRestart) {
  if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
    GTEST_SKIP() << "takes 1 GiB of disk; set TERRACE_SLOW_TESTS to run it";
  expect_all_back(1024 * mebibyte, 68);
}

TEST(SmallObjects, WhatAnIndexHasNoRoomForIsToldAndResizingMakesRoom) {
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  ASSERT_EQ(daemon.terminate(), 0);
  std::string file = daemon.state() + "/terrace.extents";
  auto resize = [&](const char* objects) {
    return run(
        {program("TERRACE"), "disk", "resize", file, std::to_string(64 * mebibyte), "--objects", objects});
  };
  auto resized = resize("1000");
  ASSERT_EQ(resized.exit_code, 0) << resized.err;
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  {
    tester client(daemon.socket(), "small", 8 * object_bytes, small_space());
    ASSERT_EQ(store_small(client, 1), at_a_time);
    ASSERT_EQ(store_small(client, 2), at_a_time);
    ASSERT_TRUE(daemon.await_log("objects will not be found after a restart"));
    // Status reports what the last checkpoint left out, which may have been in the middle of a store.
    EXPECT_TRUE(eventually([&] {
      return client.tier("disk").notice.find(" objects will not be found") != std::string::npos;
    })) << client.tier("disk").notice;
    EXPECT_NE(client.tier("disk").notice.find("has room for 1,008 records"), std::string::npos);
    EXPECT_EQ(client.tier("disk").state, "ready");
  }
  ASSERT_EQ(daemon.terminate(), 0);
  // The log reports it, too. One of 1,008 records is that of the space.
  EXPECT_NE(daemon.log().rfind("993 objects will not be found after a restart"), std::string::npos)
      << daemon.log();
  daemon.start();
  ASSERT_TRUE(
      daemon.await_log("1,007 objects found")); // whole blocks: 1,008 records, one of them of the space
  ASSERT_EQ(daemon.terminate(), 0);
  resized = resize("6000");
  ASSERT_EQ(resized.exit_code, 0) << resized.err;
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  {
    tester client(daemon.socket(), "small", 8 * object_bytes, small_space());
    for (uint64_t seed = 1; seed < 4; ++seed)
      store_small(client, seed);
  }
  ASSERT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(daemon.log().find("will not be found"), std::string::npos) << daemon.log();
  daemon.start();
  EXPECT_TRUE(daemon.await_log("3,000 objects found"));
}

} // namespace small_objects_test
} // namespace terrace::e2e
