#include "daemon_under_test.hpp"

#include "client/client.hpp"

#include <chrono>
#include <fstream>
#include <string>

namespace terrace::e2e {

namespace {

/// Returns false for a stopped or ended process.
bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t name = text.rfind(')'); // end of the program's name, which may contain anything
  if (name == std::string::npos || name + 2 >= text.size())
    return false;
  char state = text[name + 2];
  return state != 'T' && state != 't' && state != 'Z' && state != 'X';
}

constexpr std::chrono::seconds check_patience{10};
constexpr int check_attempts = 20; ///< an answered request counts until its answer is in the socket

} // namespace

bool daemon_under_test::check() {
  if (!runs(pid()))
    return false;
  auto until = client::within(check_patience);
  auto daemon = client::connection::connect({.path = socket(), .name = "check", .observes = true}, until);
  if (!daemon)
    return false;
  for (int attempt = 0; attempt < check_attempts; ++attempt) {
    auto found = daemon->admin().check(until);
    if (!found)
      return false;
    for (const std::string& one : found->differences)
      ADD_FAILURE() << "terrace check: " << one;
    if (found->idle || found->count != 0)
      break;
  }
  return true;
}

} // namespace terrace::e2e
