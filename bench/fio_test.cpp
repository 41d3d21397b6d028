#include "bench/fio.hpp"

#include <gtest/gtest.h>

namespace terrace::bench {
namespace {

TEST(Fio, ItsRateIsReadFromItsOutput) {
  std::string text = R"({"fio version":"fio-3.33","jobs":[{"jobname":"x",
    "read":{"io_bytes":8,"bw_bytes":1500},"write":{"io_bytes":0,"bw_bytes":0}}]})";
  EXPECT_EQ(rate_in_fio_output(text, false), 1500);
  EXPECT_EQ(rate_in_fio_output(text, true), std::nullopt) << "nothing was written";
}

TEST(Fio, WhatIsNoOutputHasNoRate) {
  for (const char* text :
       {"", "fio: not found", "{}", R"({"jobs":[]})", R"({"jobs":[{"read":{"bw_bytes":"9"}}]})"})
    EXPECT_EQ(rate_in_fio_output(text, false), std::nullopt) << text;
}

TEST(Fio, AFileThatIsMissingHasNoRate) {
  EXPECT_EQ(fio_rate({.file = "/nobody/has/this", .bytes = 4096, .block_bytes = 4096}), std::nullopt);
}

} // namespace
} // namespace terrace::bench
