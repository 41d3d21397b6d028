// A daemon whose host memory changes its size while clients use it.
#include "base/printable.hpp"
#include "workload.hpp"

namespace terrace::e2e {
namespace memory_change_test {

constexpr uint64_t segment_bytes = 8 * mebibyte;
constexpr uint64_t objects_a_segment = 7; // each object has a header block

class ChangingMemory : public ::testing::Test {
 protected:
  static daemon_options options(uint64_t segments) {
    return {.host_bytes = segments * segment_bytes, .host = "segment_bytes = \"8MiB\"\n"};
  }
  void resize(uint64_t segments) {
    daemon_.configure(options(segments));
    daemon_.signal(SIGHUP);
    EXPECT_TRUE(daemon_.await_log("has " + readable_bytes(segments * segment_bytes) + " of host memory"));
  }

  daemon_under_test daemon_{options(4)};
  tester client_{daemon_.socket(), "client"};
};

TEST_F(ChangingMemory, GrowsWhileItServes) {
  auto first = chain_of(1, 4 * objects_a_segment), second = chain_of(2, 4 * objects_a_segment);
  EXPECT_EQ(client_.store(first), first.size());
  resize(8);
  EXPECT_EQ(client_.tier("host").capacity_bytes, 8 * segment_bytes);
  EXPECT_EQ(client_.store(second), second.size());
  EXPECT_EQ(client_.load_and_check(first), first.size());
  EXPECT_EQ(client_.load_and_check(second), second.size());
}

TEST_F(ChangingMemory, ShrinksUnderResidentsAndLosesNothingLeased) {
  auto kept = chain_of(1, 4), rest = chain_of(2, 3 * objects_a_segment);
  client_.store(kept);
  client_.store(rest);
  auto lease = client_.lookup(kept, true);
  auto places = client_->read_lease(lease.held.id(), {}, patiently()); // maps the first segment
  ASSERT_TRUE(places) << places.error().text;
  resize(2);
  EXPECT_TRUE(daemon_.await_logs({"segment 2 was removed", "segment 3 was removed"}));
  auto host = client_.tier("host");
  EXPECT_EQ(host.capacity_bytes, 2 * segment_bytes);
  EXPECT_EQ(host.leaving_bytes, 0U);
  EXPECT_LE(host.objects, 2 * objects_a_segment);
  EXPECT_GE(host.objects, kept.size());
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(has_content(kept[i], places->objects[i]));
  EXPECT_EQ(client_.load_and_check(kept), kept.size());
  EXPECT_EQ(client_.store(chain_of(3, 2)), 2U);
}

TEST_F(ChangingMemory, KeepsASegmentUntilItsLeasesAndItsClientsEnd) {
  auto all = chain_of(1, 4 * objects_a_segment);
  {
    tester holder(daemon_.socket(), "holder");
    holder.store(all);
    auto lease = holder.lookup(all, true);
    ASSERT_EQ(lease.found_chunks, all.size());
    auto places = holder->read_lease(lease.held.id(), {}, patiently()); // maps all segments
    ASSERT_TRUE(places) << places.error().text;
    resize(2);
    EXPECT_EQ(client_.tier("host").leaving_bytes, 2 * segment_bytes);
    EXPECT_EQ(client_.load_and_check(all), all.size()) << "what is leased is served on";
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(has_content(all[i], places->objects[i]));
    lease.held.release();
    EXPECT_TRUE(daemon_.await_logs({"segment 2 was removed, ", "segment 3 was removed, "}));
    EXPECT_EQ(client_.tier("host").leaving_bytes, 2 * segment_bytes) << "the holder has them mapped";
    EXPECT_EQ(client_.tier("host").capacity_bytes, 2 * segment_bytes);
  }
  while (client_.status().clients.size() > 1) // waits until the daemon has noticed the holder's end
    ;
  EXPECT_EQ(client_.tier("host").leaving_bytes, 0U);
}

TEST_F(ChangingMemory, ComesBackToItsSizeAndIsUsedWhole) {
  client_.store(chain_of(1, 20));
  resize(1);
  resize(4);
  auto leases = occupy(client_, 100, 4 * objects_a_segment);
  EXPECT_EQ(client_.tier("host").leased_objects, 4 * objects_a_segment);
}

TEST_F(ChangingMemory, RefusesWrongValuesWithATextAndKeepsWhatItHas) {
  auto chain = chain_of(1, 4);
  client_.store(chain);
  auto wrong = options(4);
  wrong.host_bytes = 5000;
  daemon_.configure(wrong);
  daemon_.signal(SIGHUP);
  EXPECT_TRUE(daemon_.await_log("was not reloaded"));
  EXPECT_TRUE(daemon_.await_log("host.bytes"));
  daemon_.configure(options(1 << 20)); // 8 TiB in segments of 8 MiB
  daemon_.signal(SIGHUP);
  EXPECT_TRUE(daemon_.await_log("was not reloaded: host.bytes is 8TiB, but"));
  EXPECT_EQ(client_.tier("host").capacity_bytes, 4 * segment_bytes);
  EXPECT_EQ(client_.load_and_check(chain), chain.size());
}

TEST(HugePages, AreReportedWhenTheyAreNotToBeHad) {
  // More than any machine of these tests has reserved; without prefault nothing is committed.
  constexpr uint64_t much = uint64_t{1} << 31;
  daemon_under_test daemon({.host_bytes = much, .host = "huge_pages = true\nprefault = false\n"});
  EXPECT_TRUE(daemon.has_logged("vm.nr_hugepages"));
  tester client(daemon.socket());
  auto host = client.tier("host");
  EXPECT_EQ(host.state, "ready");
  EXPECT_LT(host.huge_page_bytes, much);
  EXPECT_NE(host.notice.find("ordinary pages"), std::string::npos) << host.notice;
}

TEST(NumaNode, IsRefusedAtStartWhenThereIsNone) {
  daemon_under_test daemon;
  EXPECT_EQ(daemon.terminate(), 0);
  daemon.configure({.host = "numa_node = \"1023\"\n"});
  auto checked = run({program("TERRACED"), "--config", daemon.configuration_path()});
  EXPECT_NE(checked.exit_code, 0);
  EXPECT_NE((checked.out + checked.err).find("host.numa_node is \"1023\""), std::string::npos) << checked.err;
}

} // namespace memory_change_test
} // namespace terrace::e2e
