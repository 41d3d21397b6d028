#include "base/child_program.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/stat.h>

namespace terrace {
namespace child_program_test {

/// Waits for its end.
void await_end(const child_program& of) {
  pollfd end{of.pidfd()->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, 60'000), 1);
}

std::string received(const child_program& from) {
  char bytes[64];
  const ssize_t count = ::recv(from.socket()->get(), bytes, sizeof bytes, 0);
  return {bytes, count > 0 ? static_cast<size_t>(count) : 0};
}

TEST(ChildProgram, HasItsArgumentsAndASocket) {
  auto made = child_program::start("a test", "/bin/sh", {"named", "-c", "printf \"$0 $1\" >&3", "a", "b"});
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ(received(*made), "a b");
  await_end(*made);
  EXPECT_EQ(made->reap(), "it ended with code 0");
  EXPECT_EQ(made->pid(), 0);
}

TEST(ChildProgram, HasDescriptorsInTheirOrderWhateverTheirNumbersWere) {
  int pipes[2][2];
  for (auto& each : pipes)
    ASSERT_EQ(::pipe2(each, O_CLOEXEC), 0);
  const unique_fd read0(pipes[0][0]), write0(pipes[0][1]), read1(pipes[1][0]), write1(pipes[1][1]);
  const unique_fd high(::fcntl(pipes[0][0], F_DUPFD_CLOEXEC, 100));
  // The ends of the pipes have some of the lowest numbers, in the wrong order.
  auto made = child_program::start(
      "a test", "/bin/sh",
      {"sh", "-c", "printf first >&4; printf second >&5; test -e /proc/$$/fd/$0 || printf none >&3",
       std::to_string(high.get())},
      {write1.get(), write0.get()});
  ASSERT_TRUE(made) << made.error().text;
  char bytes[16];
  EXPECT_EQ(::read(read1.get(), bytes, sizeof bytes), 5);
  EXPECT_EQ(::read(read0.get(), bytes, sizeof bytes), 6);
  EXPECT_EQ(received(*made), "none") << "no other descriptor is passed on";
}

TEST(ChildProgram, IsKilledAndTellsHowItEnded) {
  auto made = child_program::start("a test", "/bin/sleep", {"sleep", "1000"});
  ASSERT_TRUE(made) << made.error().text;
  made->kill();
  await_end(*made);
  EXPECT_EQ(made->reap(), "it was ended by signal 9");
  made->kill(); // which does nothing
}

TEST(ChildProgram, EndsWithItsOwnerAndIsReapedByTheNextStart) {
  unique_fd end;
  {
    auto made = child_program::start("a test", "/bin/sleep", {"sleep", "1000"});
    ASSERT_TRUE(made) << made.error().text;
    end = unique_fd(::dup(made->pidfd()->get()));
    child_program moved = std::move(*made);
    EXPECT_EQ(made->pid(), 0);
    pollfd still{end.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&still, 1, 0), 0);
  }
  pollfd ended{end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
  EXPECT_TRUE(child_program::start("a test", "/bin/true", {"true"}));
  siginfo_t how{};
  EXPECT_NE(::waitid(P_PIDFD, static_cast<id_t>(end.get()), &how, WEXITED | WNOHANG), 0)
      << "nobody is left to be reaped";
}

TEST(ChildProgram, OneThatIsNotThereIsAnError) {
  auto made = child_program::start("the plugin x", "/no/such/program", {"x"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::not_found);
  EXPECT_EQ(made.error().text, "the plugin x cannot be started: /no/such/program: No such file or directory");
}

} // namespace child_program_test
} // namespace terrace
