// Regions are mapped in advance of copies, as a client sees it.
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

namespace terrace::e2e {
namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t gibibyte = 1ULL << 30;

/// Returns a sealed memfd without a page.
unique_fd empty_memory(uint64_t bytes) {
  unique_fd fd(::memfd_create("touched", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  return fd;
}

uint64_t bytes_that_exist(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(FirstTouch, ASparseRegionStaysSparse) {
  daemon_under_test daemon;
  auto memory = empty_memory(64 * gibibyte);
  for (uint64_t at : {uint64_t{0}, 3 * gibibyte, 64 * gibibyte - page})
    ASSERT_EQ(::pwrite(memory.get(), "kv", 2, static_cast<off_t>(at)), 2);
  {
    tester client(daemon.socket());
    auto chain = chain_of(1, 8);
    std::vector<client::registered_region> regions;
    for (int i = 0; i < 4; ++i) // each is mapped and looked through, and some end before that
      if (auto region = client->register_region(memory.get(), 64 * gibibyte, patiently()); i % 2 == 0)
        regions.push_back(std::move(region.value()));
    EXPECT_EQ(client.store(chain), 8U);
    EXPECT_EQ(client.load_and_check(chain), 8U);
  }
  EXPECT_EQ(daemon.terminate(), 0); // from here on nobody maps anything
  EXPECT_EQ(bytes_that_exist(memory.get()), 3 * page);
}

TEST(FirstTouch, WhatIsWrittenAfterTheRegistrationIsStoredAsItIs) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tester client(daemon.socket(), "client", 16 * object_bytes);
  for (uint64_t round = 1; round <= 4; ++round) { // loads into a growing part of one region
    auto chain = chain_of(round, 4 * round);
    EXPECT_EQ(client.store(chain), 4 * round);
    EXPECT_EQ(client.load_and_check(chain), 4 * round);
  }
}

/// Objects of several large pages each, stored from memory that was written before, and loaded into memory
/// that never was.
class LargeObjects : public ::testing::Test {
 protected:
  static constexpr uint64_t large_bytes = 4 * mebibyte + 8 * page;
  static constexpr uint32_t objects = 3;

  LargeObjects() {
    for (uint64_t i = 0; i < objects * large_bytes; ++i)
      memory_.data()[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
    space_ = client_->open_space(spec(), patiently()).value();
    auto source = client_->register_region(memory_, patiently()).value();
    client::store_request request;
    request.in = space_;
    request.what = client::prefix::of_digests(chain_);
    request.region = &source;
    std::vector<client::run> runs;
    for (uint32_t i = 0; i < objects; ++i)
      runs.push_back({.offset = i * large_bytes, .bytes = large_bytes});
    request.runs = runs;
    auto stored = client_->store(request, patiently());
    EXPECT_TRUE(stored) << stored.error().text;
  }

  static client::space_spec spec() {
    auto made = test_space();
    made.model = "large";
    made.pools = {{.name = "kv", .object_bytes = large_bytes}};
    return made;
  }

  void load(uint32_t chunk, const client::registered_region& into, client::run at) {
    client::load_request request;
    request.in = space_;
    request.what = client::prefix::of_digests(chain_);
    request.range = {.first = chunk, .count = 1};
    request.region = &into;
    request.runs = {&at, 1};
    auto loaded = client_->load(request, patiently());
    EXPECT_TRUE(loaded && loaded->delivered_chunks == 1) << (loaded ? "" : loaded.error().text);
  }

  bool has(const std::byte* at, uint32_t chunk) const {
    return std::memcmp(at, memory_.data() + chunk * large_bytes, large_bytes) == 0;
  }

  /// Returns the large pages that loads asked the kernel for.
  double large_pages(const std::string& outcome) const {
    return test::number_behind(test::scrape(port_),
                               "terrace_region_large_pages_total{outcome=\"" + outcome + "\"}");
  }

  uint16_t port_ = test::free_port();
  daemon_under_test daemon_{{.host_bytes = 64 * mebibyte, .metrics = "127.0.0.1:" + std::to_string(port_)}};
  tester client_{daemon_.socket()};
  client::region memory_ = client::region::create("written", objects* large_bytes).value();
  client::space space_;
  std::vector<digest> chain_ = chain_of(5, objects);
};

TEST_F(LargeObjects, ALoadMakesThePagesThatItWritesAndNoOthers) {
  auto memory = empty_memory(64 * mebibyte);
  auto region = client_->register_region(memory.get(), 64 * mebibyte, patiently()).value();
  const std::array<uint64_t, objects> places{0, 9 * mebibyte + page, 64 * mebibyte - large_bytes};
  for (uint32_t i = 0; i < objects; ++i)
    load(i, region, {.offset = places[i], .bytes = large_bytes});
  auto seen = mapping::map(memory.get(), 64 * mebibyte, false).value();
  EXPECT_EQ(bytes_that_exist(memory.get()), objects * large_bytes);
  for (uint32_t i = 0; i < objects; ++i)
    EXPECT_TRUE(has(seen.data() + places[i], i)) << i;
  // The kernel may have given none, or taken so long that it was not asked for all.
  EXPECT_GE(large_pages("made") + large_pages("slow") + large_pages("refused") + large_pages("impossible"),
            1);
}

/// Some pages exist, some do not, and the client writes others meanwhile.
TEST_F(LargeObjects, ALoadLeavesWhatTheClientWritesBesideIt) {
  auto memory = empty_memory(64 * mebibyte);
  auto own = mapping::map(memory.get(), 64 * mebibyte, true).value();
  auto region = client_->register_region(memory.get(), 64 * mebibyte, patiently()).value();
  for (uint64_t round = 0; round < 6; ++round) {
    const uint64_t place = round * 10 * mebibyte + round * 777;
    std::memset(own.data() + place, 0x11, 100);
    std::thread writer([&] { std::memset(own.data() + place + large_bytes, 0x22, 3 * mebibyte); });
    load(0, region, {.offset = place, .bytes = large_bytes});
    writer.join();
    EXPECT_TRUE(has(own.data() + place, 0)) << round;
    const std::byte* beside = own.data() + place + large_bytes;
    EXPECT_TRUE(
        std::all_of(beside, beside + 3 * mebibyte, [](std::byte each) { return each == std::byte{0x22}; }));
  }
}

TEST_F(LargeObjects, ACommittedRegionIsStoredAndLoadedAsItIs) {
  auto target = client::region::create("committed", 32 * mebibyte).value();
  ASSERT_TRUE(target.commit());
  auto region = client_->register_region(target, patiently()).value();
  for (uint32_t i = 0; i < objects; ++i) {
    const uint64_t place = 10 * mebibyte * i + 5;
    load(i, region, {.offset = place, .bytes = large_bytes});
    EXPECT_TRUE(has(reinterpret_cast<const std::byte*>(target.data()) + place, i)) << i;
    EXPECT_EQ(target.data()[place + large_bytes], 0);
  }
}

/// The client's region, or the whole client, ends while loads make the pages that they write.
TEST_F(LargeObjects, AClientMayGoDuringItsFirstLoads) {
  for (int round = 0; round < 10; ++round) {
    tester other(daemon_.socket(), "other");
    auto space = other->open_space(spec(), patiently()).value();
    auto memory = empty_memory(64 * mebibyte);
    auto region = other->register_region(memory.get(), 64 * mebibyte, patiently()).value();
    std::vector<client::run> runs;
    for (uint32_t i = 0; i < objects; ++i)
      runs.push_back({.offset = i * large_bytes, .bytes = large_bytes});
    client::load_request request;
    request.in = space;
    request.what = client::prefix::of_digests(chain_);
    request.region = &region;
    request.runs = runs;
    ASSERT_TRUE(other->async().load(request));
    if (round % 2 == 0)
      region = {}; // before the load ends
    auto own = empty_memory(16 * mebibyte);
    auto beside = client_->register_region(own.get(), 16 * mebibyte, patiently()).value();
    load(1, beside, {.offset = 2 * mebibyte, .bytes = large_bytes});
    EXPECT_TRUE(has(mapping::map(own.get(), 16 * mebibyte, false)->data() + 2 * mebibyte, 1));
  }
}

/// Large pages are missing where the administrator forbids them or the kernel does not have them.
TEST(FirstTouch, ALoadDoesWithoutLargePagesWhereThereAreNone) {
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0); // the daemon inherits this
  const uint16_t port = test::free_port();
  daemon_under_test daemon({.host_bytes = 64 * mebibyte,
                            .metrics = "127.0.0.1:" + std::to_string(port),
                            .more = "[copier]\nthreads = 1\n"});
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  tester client(daemon.socket());
  auto chain = chain_of(1, 8);
  ASSERT_EQ(client.store(chain), chain.size());
  tester other(daemon.socket(), "other"); // a client that has not written to its region
  ASSERT_TRUE(other->load(other.load_of(chain), patiently()));
  for (size_t i = 0; i < chain.size(); ++i)
    EXPECT_TRUE(has_content(chain[i], other.piece(i))) << i;
  const std::string seen = test::scrape(port);
  EXPECT_EQ(test::number_behind(seen, "terrace_region_large_pages_total{outcome=\"impossible\"}"), 1);
  EXPECT_EQ(test::number_behind(seen, "terrace_region_large_pages_total{outcome=\"made\"}"), 0);
}

} // namespace
} // namespace terrace::e2e
