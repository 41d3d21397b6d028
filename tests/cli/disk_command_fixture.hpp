// A volume in a file, for tests of `terrace disk`.
#pragma once

#include "base/unique_fd.hpp"
#include "captured_console.hpp"
#include "cli/app.hpp"
#include "temporary_file.hpp"
#include "tests/support/stored_objects.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>

namespace terrace::cli {

class disk_command_fixture : public ::testing::Test {
 protected:
  static constexpr uint64_t file_bytes = 2 << 20;

  /// Runs with a terminal at which somebody types `answer`, or without one.
  exit_code run(std::vector<std::string> words, const std::string& answer = {}) {
    captured_console to;
    temporary_file typed(answer);
    to.get().in = std::fopen(typed.path().c_str(), "r");
    to.get().in_is_terminal = !answer.empty();
    words.insert(words.begin(), "disk");
    exit_code code = run_app(words, to.get());
    std::fclose(to.get().in);
    out_ = to.out();
    err_ = to.err();
    return code;
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }

  void flip(uint64_t byte) {
    char was = 0;
    ASSERT_EQ(::pread(fd_.get(), &was, 1, static_cast<off_t>(byte)), 1);
    was ^= 1;
    ASSERT_EQ(::pwrite(fd_.get(), &was, 1, static_cast<off_t>(byte)), 1);
  }
  uint64_t place(const index_record& object) { return store_.block().layout.extents_begin + object.offset; }

  temporary_file file_;
  std::string path_ = file_.path();
  unique_fd fd_{::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
  file_device device_{path_, fd_.get()};
  ::terrace::test::volume_builder store_{device_, file_bytes};
  std::string out_, err_;
};

} // namespace terrace::cli
