#include "runtime/runtime_options.hpp"

#include <gtest/gtest.h>

namespace terrace::runtime {
namespace {

TEST(RuntimeOptions, DefaultsAreValid) { EXPECT_TRUE(runtime_options{}.validate()); }

TEST(RuntimeOptions, OneWorkerUpToFourCoresThenAQuarterOfThemAtMostFour) {
  runtime_options options;
  EXPECT_EQ(options.effective_workers(0), 1u);
  EXPECT_EQ(options.effective_workers(2), 1u);
  EXPECT_EQ(options.effective_workers(4), 1u);
  EXPECT_EQ(options.effective_workers(8), 2u);
  EXPECT_EQ(options.effective_workers(64), 4u);
  options.workers = 3;
  EXPECT_EQ(options.effective_workers(64), 3u);
}

TEST(RuntimeOptions, ValidateNamesEveryMistakeAtOnce) {
  runtime_options options{.workers = 65,
                          .transfer_workers = 1,
                          .ring_entries = 1,
                          .max_throughput = 0,
                          .slice_us = 7,
                          .busy_poll_us = 1001,
                          .buffer_slots = 0};
  auto checked = options.validate();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, errc::bad_request);
  for (auto* name : {"runtime.workers is 65", "runtime.transfer_workers is 1", "runtime.ring_entries is 1",
                     "runtime.max_throughput is 0", "runtime.slice_us is 7",
                     "runtime.busy_poll_us is 1001, expected 0 (off) to 1000",
                     "runtime.buffer_slots is 0, expected 1 to 16384"})
    EXPECT_NE(checked.error().text.find(name), std::string::npos) << checked.error().text;
}

} // namespace
} // namespace terrace::runtime
