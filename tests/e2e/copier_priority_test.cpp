// The copying threads have a lower priority than the rest of the daemon.
#include "workload.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace terrace::e2e {
namespace {

/// Returns how many threads of the process have this nice value: the 19th field of their stat, which follows
/// the name in parentheses.
int threads_with(pid_t process, int nice) {
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    auto after_name = line.rfind(')');
    if (after_name == std::string::npos)
      continue; // the thread has just ended
    std::istringstream fields(line.substr(after_name + 1));
    std::string skipped;
    for (int field = 3; field < 19; ++field)
      fields >> skipped;
    int value = 0;
    fields >> value;
    threads += value == nice ? 1 : 0;
  }
  return threads;
}

/// The nice value that this process gives to the daemon, and what copying threads add to it.
int expected_nice() { return std::min(::getpriority(PRIO_PROCESS, 0) + 10, 19); }

/// The thread that maps clients' regions in advance has the priority of copiers.
constexpr int populates = 1;

TEST(CopierPriority, IsLowerThanThatOfTheRest) {
  daemon_under_test daemon({.more = "[copier]\nthreads = 3\n"});
  EXPECT_TRUE(eventually([&] { return threads_with(daemon.pid(), expected_nice()) == 3 + populates; }));
  EXPECT_EQ(tester(daemon.socket()).store(chain_of(1, 2)), 2U);
}

} // namespace
} // namespace terrace::e2e
