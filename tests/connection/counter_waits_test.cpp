#include "connection/counter_waits.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace terrace;

namespace {

struct some_memory final : device_memory {};

struct CounterWaits : testing::Test {
  using region_ptr = std::shared_ptr<const client_region>;

  static region_ptr region(uint64_t bytes, bool sealed = true) {
    unique_fd memory(::memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, sealed ? F_SEAL_SHRINK : 0), 0);
    return client_region::open(std::move(memory), bytes).value();
  }
  static void write(const region_ptr& in, size_t number, uint32_t value) {
    std::atomic_ref(reinterpret_cast<uint32_t*>(in->data())[number]).store(value);
  }
  context_ptr wait(const region_ptr& in, uint64_t number, uint32_t value,
                   device_memory_ptr memory = nullptr) {
    auto context = std::make_shared<request_context>();
    waits.add({client_counter::in(in, number * 4).value(), value, std::move(memory), context,
               [this, number](const error&) { told.push_back(number); }});
    return context;
  }
  std::vector<uint64_t> tell(std::vector<counter_waits::wait> taken) {
    told.clear();
    for (auto& each : taken)
      each.then({});
    return told;
  }

  counter_waits waits;
  std::vector<uint64_t> told;
};

} // namespace

using numbers = std::vector<uint64_t>;

TEST_F(CounterWaits, ThoseWhoseCountersHaveBeenReachedGoOnInTheOrderInWhichTheyCame) {
  auto page = region(4096);
  for (uint64_t number : {5, 3, 7, 1})
    wait(page, number, 10);
  EXPECT_EQ(tell(waits.take_reached()), numbers{});
  write(page, 1, 10);
  write(page, 3, 9);
  write(page, 5, 11);
  EXPECT_EQ(tell(waits.take_reached()), (numbers{5, 1}));
  EXPECT_EQ(waits.size(), 2U);
  EXPECT_EQ(tell(waits.take_all()), (numbers{3, 7}));
  EXPECT_EQ(waits.size(), 0U);
}

TEST_F(CounterWaits, CountersWrapAround) {
  auto page = region(4096);
  auto counter = client_counter::in(page, 0).value();
  write(page, 0, 0xffff'fff0);
  EXPECT_TRUE(counter.has(0xffff'fff0));
  EXPECT_FALSE(counter.has(2));
  write(page, 0, 2);
  EXPECT_TRUE(counter.has(0xffff'fff0));
  EXPECT_TRUE(counter.has(2));
  EXPECT_FALSE(counter.has(3));
}

TEST_F(CounterWaits, RequestsThatEndAreTakenAndNoOthers) {
  auto page = region(4096);
  auto first = wait(page, 0, 1), second = wait(page, 1, 1);
  EXPECT_TRUE(waits.take_ended().empty());
  second->ended = errc::cancelled;
  EXPECT_EQ(tell(waits.take_ended()), numbers{1});
  EXPECT_EQ(waits.size(), 1U);
}

TEST_F(CounterWaits, TheyEndWithTheRegionOfTheirCounterAndWithTheirMemory) {
  auto page = region(4096), other = region(4096);
  auto memory = std::make_shared<some_memory>(), another = std::make_shared<some_memory>();
  wait(page, 0, 1, memory);
  wait(other, 1, 1, memory);
  wait(other, 2, 1, another);
  EXPECT_EQ(tell(waits.take_counted_in(*page)), numbers{0});
  EXPECT_EQ(tell(waits.take_for(*memory)), numbers{1});
  EXPECT_TRUE(waits.take_for(*memory).empty());
  EXPECT_EQ(waits.size(), 1U);
}

TEST_F(CounterWaits, ACounterIsFourBytesOfMappedMemoryOfTheHost) {
  auto page = region(64);
  EXPECT_TRUE(client_counter::in(page, 60));
  for (uint64_t offset : {2ULL, 61ULL, 62ULL, 64ULL, ~0ULL, ~3ULL}) {
    auto counter = client_counter::in(page, offset);
    ASSERT_FALSE(counter) << offset;
    EXPECT_EQ(counter.error().code, errc::bad_request);
  }
  EXPECT_FALSE(client_counter::in(region(3), 0));
  auto unsealed = client_counter::in(region(64, false), 0);
  ASSERT_FALSE(unsealed) << "its owner could shrink it";
  EXPECT_NE(unsealed.error().text.find("mapped"), std::string::npos) << unsealed.error().text;
  auto on_device = client_counter::in(client_region::of_device(std::make_shared<some_memory>(), 64, {}), 0);
  ASSERT_FALSE(on_device);
  EXPECT_EQ(on_device.error().code, errc::bad_request);
}
