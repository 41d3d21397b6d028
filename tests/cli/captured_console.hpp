// A console that tests can read.
#pragma once

#include "cli/console.hpp"

#include <cstdlib>
#include <string>

namespace terrace::cli {

class captured_console {
 public:
  explicit captured_console(bool terminal = false) {
    console_.out = open_memstream(&out_, &out_size_);
    console_.err = open_memstream(&err_, &err_size_);
    console_.err_is_terminal = terminal;
  }
  ~captured_console() {
    std::fclose(console_.out);
    std::fclose(console_.err);
    std::free(out_);
    std::free(err_);
  }
  captured_console(const captured_console&) = delete;
  captured_console& operator=(const captured_console&) = delete;

  console& get() { return console_; }
  std::string out() {
    std::fflush(console_.out);
    return {out_, out_size_};
  }
  std::string err() {
    std::fflush(console_.err);
    return {err_, err_size_};
  }

 private:
  console console_;
  char* out_ = nullptr;
  char* err_ = nullptr;
  size_t out_size_ = 0;
  size_t err_size_ = 0;
};

} // namespace terrace::cli
