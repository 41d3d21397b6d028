// A daemon in a sandbox that grants a ring and refuses to enter it.
#include "daemon_under_test.hpp"
#include "tests/support/denied_calls.hpp"
#include "tests/support/raw_client.hpp"

#include <cerrno>
#include <optional>
#include <stdexcept>

namespace terrace::e2e {
namespace {

/// Returns the last words of a daemon whose `io_uring_enter` fails if it submits `from` operations or more.
std::string last_words(uint32_t from) {
  daemon_options options;
  options.before_exec = [from] {
    if (!test::deny_call(SYS_io_uring_enter, EPERM, from))
      ::_exit(98);
  };
  try {
    daemon_under_test daemon(options);
    std::optional<test::raw_client> client;
    try {
      client.emplace(daemon.socket());
    } catch (const std::exception&) {
      // the daemon has ended already
    }
    int code = daemon.wait();
    return "its exit code is " + std::to_string(code) + "\n" + daemon.log();
  } catch (const std::runtime_error& before_it_was_ready) {
    return before_it_was_ready.what();
  }
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(DeniedRing, IsFoundAtTheStart) {
  auto said = last_words(0);
  expect_in(said, "its exit code is 1");
  expect_in(said, "io_uring is not available: io_uring_enter failed with EPERM");
  expect_in(said, "seccomp");
}

// The probe at the start enters with one operation, a client's connection with two.
TEST(DeniedRing, EndsADaemonThatHasStarted) {
  auto said = last_words(2);
  expect_in(said, "its exit code is 1");
  expect_in(said, "the daemon ends without shutting down: worker ");
  expect_in(said, "io_uring_enter failed with EPERM");
}

} // namespace
} // namespace terrace::e2e
