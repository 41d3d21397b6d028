// A file that lives as long as its test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace terrace::cli {

class temporary_file {
 public:
  explicit temporary_file(const std::string& text = {}) {
    std::string pattern = (std::filesystem::temp_directory_path() / "terrace-test-XXXXXX").string();
    close(mkstemp(pattern.data()));
    path_ = pattern;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

} // namespace terrace::cli
