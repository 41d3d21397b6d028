// host.staging_only: host memory keeps what is held, and the disk keeps everything else.
#include "workload.hpp"

namespace terrace::e2e {
namespace staging_only_test {

constexpr uint32_t chunks = 6;

daemon_options staging(const std::string& demotion) {
  return {.host_bytes = 32 * mebibyte,
          .host = "staging_only = true\n",
          .disk_bytes = 64 * mebibyte,
          .disk = "demotion = \"" + demotion + "\"\n"};
}

class StagingOnly : public testing::TestWithParam<const char*> {
 protected:
  StagingOnly() : daemon_(staging(GetParam())) {
    EXPECT_TRUE(daemon_.await_log("joined"));
    EXPECT_EQ(client_.store(chain), chunks);
    EXPECT_TRUE(host_has(0)) << "what is written down leaves";
  }
  bool host_has(uint64_t objects) {
    return eventually([&] { return client_.tier("host").objects == objects; });
  }

  daemon_under_test daemon_;
  tester client_{daemon_.socket()};
  std::vector<digest> chain = chain_of(1, chunks);
};

TEST_P(StagingOnly, WhatIsStoredIsOnDiskAloneAndLoadsFromThere) {
  auto found = client_.lookup(chain);
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(chunks, tier_kind::disk));
  EXPECT_EQ(client_.load_and_check(chain), chunks);
  EXPECT_TRUE(host_has(0)) << "what was loaded leaves again";
  EXPECT_EQ(client_.load_and_check(chain), chunks);
}

TEST_P(StagingOnly, WhatALeaseIsReadThroughStaysUntilItIsReleased) {
  auto found = client_.lookup(chain, true);
  ASSERT_EQ(found.found_chunks, chunks);
  auto places = client_->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), chunks);
  for (size_t i = 0; i < chunks; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
  EXPECT_EQ(client_.tier("host").objects, chunks);
  found.held.release();
  EXPECT_TRUE(host_has(0));
}

TEST_P(StagingOnly, ManyMoreBytesThanHostMemoryPassThroughIt) {
  for (uint64_t seed = 2; seed < 10; ++seed)
    EXPECT_EQ(client_.store(chain_of(seed, chunks)), chunks);
  for (uint64_t seed = 2; seed < 10; ++seed)
    EXPECT_EQ(client_.load_and_check(chain_of(seed, chunks)), chunks);
  EXPECT_TRUE(host_has(0));
}

TEST_P(StagingOnly, APrefetchIsRefusedBecauseNothingWouldStay) {
  auto refused =
      client_->prefetch({.in = client_.space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  EXPECT_NE(refused.error().text.find("host.staging_only"), std::string::npos) << refused.error().text;
  auto moved = client_->admin().move({.in = client_.space(), .what = client::prefix::of_digests(chain)},
                                     tier_kind::host, patiently());
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, errc::unsupported);
}

TEST_P(StagingOnly, ARestartFindsEverything) {
  EXPECT_EQ(daemon_.terminate(), 0);
  daemon_.start();
  EXPECT_TRUE(daemon_.await_log("6 objects found"));
  EXPECT_EQ(tester(daemon_.socket()).load_and_check(chain), chunks);
}

INSTANTIATE_TEST_SUITE_P(Demotion, StagingOnly, ::testing::Values("write_through", "write_back"),
                         [](const auto& of) { return std::string(of.param); });

TEST(StagingOnlyWithoutWritingDown, IsAMistake) {
  temporary_folder folder;
  for (const char* mode : {"off", "selective"}) {
    write_file(folder / "some.toml",
               std::string("[host]\nstaging_only = true\n[disk]\ndemotion = \"") + mode + "\"\n");
    auto checked = run({program("TERRACED"), "--check", "--config", folder / "some.toml"});
    EXPECT_EQ(checked.exit_code, 2);
    EXPECT_NE(checked.err.find("\"write_through\" or \"write_back\" with it"), std::string::npos)
        << checked.err;
  }
}

TEST(StagingOnlyWithoutADisk, IsAMistake) {
  temporary_folder folder;
  write_file(folder / "some.toml", "[host]\nstaging_only = true\n[disk]\nbytes = 0\n");
  auto checked = run({program("TERRACED"), "--check", "--config", folder / "some.toml"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_NE(checked.err.find("host.staging_only is true; expected disk.bytes"), std::string::npos)
      << checked.err;
}

} // namespace staging_only_test
} // namespace terrace::e2e
