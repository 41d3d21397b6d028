// What one client asks for does not hold up another.
#include "workload.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace terrace::e2e {
namespace {

uint32_t in_flight(tester& by, const std::string& name) {
  for (const auto& client : by.status().clients)
    if (client.name == name)
      return client.requests_in_flight;
  return 0;
}

/// Loads in pieces of two bytes through a descriptor: eight million system calls in eight requests.
TEST(Fairness, TinyPiecesOfOneClientDoNotHoldUpTheLoadsOfAnother) {
  daemon_under_test daemon;
  tester greedy(daemon.socket(), "greedy");
  tester other(daemon.socket(), "other");
  auto chain = chain_of(1, 4);
  EXPECT_EQ(other.store(chain), 4U);

  unique_fd memory(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), 2 * object_bytes), 0);
  auto region = greedy->register_region(memory.get(), 2 * object_bytes, patiently());
  ASSERT_TRUE(region) << region.error().text;
  std::vector<digest> one{chain[0]};
  client::run run{.offset = 0, .bytes = 2, .stride = 4, .count = object_bytes / 2};
  auto request = greedy.load_of(one);
  request.region = &*region;
  request.runs = {&run, 1};
  std::vector<client::ticket<client::load_result>> tickets;
  for (int i = 0; i < 8; ++i) {
    auto ticket = greedy->submit_load(request, patiently());
    ASSERT_TRUE(ticket) << ticket.error().text;
    tickets.push_back(std::move(*ticket));
  }
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(other.load_and_check(chain), 4U);
  EXPECT_GE(in_flight(other, "greedy"), 4U) << "ten loads of the other client took as long as most of these";
  for (auto& ticket : tickets) {
    auto loaded = greedy->wait(ticket, patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, 1U);
  }
}

} // namespace
} // namespace terrace::e2e
