// A folder that lives as long as its test.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace terrace::test {

/// Removed with its contents at the end. Other users may enter it.
class temporary_folder {
 public:
  explicit temporary_folder(const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
    path_ = in / "terrace-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot make a folder in " + in.string());
    ::chmod(path_.c_str(), 0755);
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::string& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path(path_) / name;
  }

 private:
  std::string path_;
};

} // namespace terrace::test
