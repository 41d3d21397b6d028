#include "memory/teardown.hpp"

#include "memory/client_mapping.hpp"
#include "memory/segmented_arena.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <vector>

namespace terrace::test {
namespace {

/// Blocks the thread of a teardown until `open` is called.
struct closed_gate {
  explicit closed_gate(teardown& of) {
    of.run([waiting = open_.get_future().share()] { waiting.wait(); });
  }
  ~closed_gate() { open(); }
  void open() {
    if (!std::exchange(is_open_, true))
      open_.set_value();
  }

 private:
  std::promise<void> open_;
  bool is_open_ = false;
};

TEST(Teardown, RunsInOrderOnAThreadOfItsOwnAndFinishesAtItsEnd) {
  std::vector<int> order;
  std::thread::id there;
  {
    teardown away;
    for (int i = 0; i < 100; ++i)
      away.run([&order, i] { order.push_back(i); });
    away.run([&there] { there = std::this_thread::get_id(); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(there, std::this_thread::get_id());
}

TEST(Teardown, WhatTheThreadItselfHandsOverItDoesAtOnce) {
  std::vector<int> order;
  {
    teardown away("away");
    std::promise<void> gate;
    away.run([waiting = gate.get_future().share()] { waiting.wait(); });
    away.run([&] {
      away.run([&] { order.push_back(1); });
      order.push_back(2);
    });
    away.run([&] { order.push_back(3); });
    gate.set_value();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Teardown, DeletesTheLastReferenceOfAnyThread) {
  struct witness {
    std::thread::id& ended_on;
    ~witness() { ended_on = std::this_thread::get_id(); }
  };
  std::thread::id ended_on;
  {
    auto away = std::make_shared<teardown>();
    std::shared_ptr<witness> shared(new witness{ended_on}, deleted_by{away});
    auto other = shared;
    shared.reset();
    EXPECT_EQ(ended_on, std::thread::id());
    other.reset();
  }
  EXPECT_NE(ended_on, std::thread::id());
  EXPECT_NE(ended_on, std::this_thread::get_id());
  std::shared_ptr<witness>(new witness{ended_on}, deleted_by{});
  EXPECT_EQ(ended_on, std::this_thread::get_id());
}

TEST(Teardown, ARegionKeepsItsChargeUntilItIsUnmapped) {
  auto budget = region_budget::make({"the connection", 1 << 20});
  auto away = std::make_shared<teardown>();
  closed_gate gate(*away);
  unique_fd memory(::memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  auto region = client_region::open(std::move(memory), 4096, {budget->take(4096).value(), away}).value();
  ASSERT_TRUE(region->mapped());
  region.reset();
  EXPECT_EQ(budget->bytes(), 4096u);
  gate.open();
  std::promise<void> done;
  away->run([&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(budget->bytes(), 0u);
}

TEST(Teardown, ReleasesDroppedSegments) {
  auto away = std::make_shared<teardown>();
  auto memory =
      segmented_arena::create({.name = "test", .bytes = 8192, .segment_bytes = 4096, .teardown = away})
          .value();
  closed_gate gate(*away);
  memory->retire(1);
  memory->drop(1);
  EXPECT_EQ(memory->segment(1), nullptr);
  EXPECT_EQ(memory->leaving_bytes(), 0u);
}

} // namespace
} // namespace terrace::test
