#include "transfer/arrival_counters.hpp"

#include "tests/support/counters.hpp"
#include "transfer/copy_queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

using values = std::vector<uint32_t>;

error refusal(const client_counters& client, uint64_t offset, size_t count) {
  auto counters = arrival_counters::in(client.region, offset, count);
  EXPECT_FALSE(counters);
  return counters ? error{} : counters.error();
}

} // namespace

TEST(ArrivalCounters, AreRaisedTogetherOrOneByOne) {
  client_counters client;
  auto counters = client.first(3);
  EXPECT_EQ(counters->count(), 3u);
  counters->add(0, 3, 2);
  counters->add(1, 1, 5);
  EXPECT_EQ(client.values(4), (values{2, 7, 2, 0}));
}

TEST(ArrivalCounters, KeepWhatTheClientHasSetInTheHighestBit) {
  client_counters client;
  auto* word = reinterpret_cast<uint32_t*>(client.region->data());
  *word = 1U << 31;
  client.first(1)->add(0, 1, 3);
  EXPECT_EQ(*word, 1U << 31 | 3);
}

TEST(ArrivalCounters, LieAnywhereInTheRegionUpToItsEnd) {
  client_counters client;
  auto last = arrival_counters::in(client.region, client_counters::bytes - 8, 2);
  ASSERT_TRUE(last);
  (*last)->add(1, 1, 9);
  EXPECT_EQ(client.values(1024).back(), 9u);
  auto text = refusal(client, client_counters::bytes - 4, 2).text;
  EXPECT_NE(text.find("expected 2 counters of arrivals inside the region of 4096 bytes, got offset 4092"),
            std::string::npos)
      << text;
  EXPECT_EQ(refusal(client, UINT64_MAX - 3, 1).code, errc::bad_request);
}

TEST(ArrivalCounters, AreAligned) {
  client_counters client;
  auto why = refusal(client, 6, 1);
  EXPECT_EQ(why.code, errc::bad_request);
  EXPECT_NE(why.text.find("multiple of 4, got 6"), std::string::npos) << why.text;
}

TEST(ArrivalCounters, NeedMappedMemoryThatMayBeWritten) {
  client_counters sealed(F_SEAL_WRITE);
  EXPECT_EQ(refusal(sealed, 0, 1).code, errc::denied);
  unique_fd fd(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  client_counters unmapped;
  unmapped.region = client_region::open(std::move(fd), 4096).value();
  auto why = refusal(unmapped, 0, 1);
  EXPECT_EQ(why.code, errc::bad_request);
  EXPECT_NE(why.text.find("expected arrivals in a region that is mapped"), std::string::npos) << why.text;
}

TEST(ArrivalCounters, AreRaisedOnceEverythingIsCopied) {
  client_counters client;
  copy_queue line(4096);
  auto context = std::make_shared<request_context>();
  for (bool cancelled : {false, true}) {
    std::vector<std::byte> from(8192), into(8192);
    std::vector<region_run> runs{{0, 8192, 0, 1}};
    std::vector<uint64_t> bytes{8192};
    copy_request request;
    request.direction = copy_direction::out_of_arena;
    request.outside = {into.data(), -1, into.size(), nullptr};
    request.runs =
        std::make_shared<const scatter_gather>(scatter_gather::make(runs, {}, bytes, 8192).value());
    request.objects = {{from.data(), 0}};
    request.context = context;
    request.arrived = {client.first(2), 1, 1, 4};
    context->ended = cancelled ? errc::cancelled : errc::ok;
    line.add(std::move(request), [&](const copy_answer& done) {
      EXPECT_EQ(done.failure.code, cancelled ? errc::cancelled : errc::ok);
    });
    while (!line.empty())
      line.serve();
    EXPECT_EQ(client.values(2), (values{0, 4})) << "the cancelled copy does not count";
  }
}
