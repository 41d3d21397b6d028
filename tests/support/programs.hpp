// Runs programs to their end for tests, with the files that they read and write.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace terrace::test {

/// Far longer than anything in a test takes: it turns a hang into a failure.
constexpr int patience_ms = 120'000;

/// Returns the path of a program of this build, from the environment variable that meson sets. Throws if it
/// is not set.
std::string program(const char* variable);

/// Returns whether these programs are built with a sanitizer, `address` for example, or, without a name, with
/// any. Reads the environment variable SANITIZERS that meson sets, because the test itself may be built
/// without.
bool sanitized(const std::string& name = {});

struct ended_program {
  int exit_code = -1; ///< 128 + the signal, if one ended it
  std::string out;
  std::string err;
};

/// Runs a program to its end. `words[0]` is its path, or a name to be found in PATH. `before` runs in the
/// child before the program and may set limits, for example.
ended_program run(const std::vector<std::string>& words, const std::string& input = {},
                  const std::function<void()>& before = {});

/// Starts a program and returns its number; it ends with this one at the latest. `words` and `before` as in `run`: `before` opens or
/// duplicates the program's descriptors.
int start_program(const std::vector<std::string>& words, const std::function<void()>& before);

/// Waits for a child; returns the exit code, or 128 + signal.
int reap(int pid);

void write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

} // namespace terrace::test
