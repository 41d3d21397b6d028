#include "cli/run_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace run_program_test {

TEST(RunProgram, ReturnsBothStreamsAndTheExitCode) {
  auto ended = run_program({"sh", "-c", "echo $NAME; echo wrong >&2; exit 7"}, {"NAME=value"});
  ASSERT_TRUE(ended) << ended.error().text;
  EXPECT_EQ(ended->output, "value\nwrong\n");
  EXPECT_EQ(ended->code, 7);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"})->code, 128 + 9);
}

TEST(RunProgram, OneThatIsNotThereIsAFailure) {
  auto missing = run_program({"/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text, ::testing::HasSubstr("/no/such/program cannot be started: No such file"));
}

} // namespace run_program_test
} // namespace terrace::cli
