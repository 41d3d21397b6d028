#include "run_bounds.hpp"

#include <gtest/gtest.h>

namespace terrace::simulation {
namespace {

TEST(RunBounds, AreReadAsTheyAreWritten) {
  run_bounds bounds{.seed = 17, .lives = 1, .clients = std::set<uint32_t>{0, 2}, .deeds = 14, .events = 90};
  bounds.without = {"pin", "disk_faults"};
  EXPECT_EQ(bounds.text(), "seed=17 lives=1 clients=0,2 deeds=14 events=90 without=disk_faults,pin");
  EXPECT_EQ(run_bounds::parse(bounds.text()), bounds);
  EXPECT_EQ(run_bounds::parse("seed=3"), run_bounds{.seed = 3});
}

TEST(RunBounds, OtherTextsAreRefused) {
  for (const char* text : {"seed", "seed=x", "seed=3x", "size=4", "without=luck", "clients=0,0", "clients=a"})
    EXPECT_EQ(run_bounds::parse(text), std::nullopt) << text;
}

TEST(RunBounds, WhatAFailureDoesNotNeedIsLeftOut) {
  auto fails = [](const run_bounds& tried) {
    return tried.acts(1) && tried.acts(4) && tried.deeds >= 23 && tried.lives >= 1 && tried.events >= 1000 &&
           tried.has("store") && tried.has("clear_all") && tried.has("disk_faults");
  };
  run_bounds least = reduce({.seed = 9}, fails);
  EXPECT_TRUE(fails(least));
  EXPECT_EQ(least.clients, (std::set<uint32_t>{1, 4}));
  EXPECT_EQ(least.deeds, 23U);
  EXPECT_EQ(least.lives, 1U);
  EXPECT_EQ(least.events, 1000U);
  EXPECT_EQ(least.without.size(), deed_names.size() + run_bounds::hardships.size() - 3);
}

} // namespace
} // namespace terrace::simulation
