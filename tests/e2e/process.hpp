// Processes of a test: programs whose output is read, and children forked from the test itself.
#pragma once

#include "base/unique_fd.hpp"

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace terrace::e2e {

/// Far longer than anything here takes: it turns a hang into a failure.
constexpr int patience_ms = 120'000;

/// Path of a program of this build, from the environment variable that meson sets.
std::string program(const char* variable);

struct ended_program {
  int exit_code = -1; ///< 128 + the signal, when one ended it
  std::string out;
  std::string err;
};

/// Runs a program to its end. `words[0]` is its path, or a name to be found in PATH.
ended_program run(const std::vector<std::string>& words, const std::string& input = {});

/// A folder under /tmp that goes with its contents at the end. Others may enter it.
class scratch_folder {
 public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

/// What a forked child may tell its test: one byte at a time, each answering one `await_word`.
class child_voice {
 public:
  explicit child_voice(int fd) : fd_(fd) {}
  void say(char word) const;
  /// Blocks until the test is over or has ended this child.
  void stay() const;

 private:
  int fd_;
};

/// A child of the test that runs `work` and exits with what it returns. Killed at the latest with this object.
class forked_child {
 public:
  explicit forked_child(const std::function<int(const child_voice&)>& work);
  ~forked_child();
  forked_child(const forked_child&) = delete;
  forked_child& operator=(const forked_child&) = delete;

  pid_t pid() const { return pid_; }

  /// The next byte that the child says; 0 when it has ended without one.
  char await_word() const;

  /// Exit code, or 128 + signal.
  int wait();
  int kill();

  /// Ends what `child_voice::stay` waits in, in the child and in children that it left behind.
  void let_go() { ours_.reset(); }

 private:
  unique_fd ours_;
  pid_t pid_ = -1;
};

} // namespace terrace::e2e
