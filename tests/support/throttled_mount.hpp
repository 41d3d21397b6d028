// A folder whose files are read at most at a given speed, for as long as this object lives
// (throttled_disk.cpp).
#pragma once

#include "base/unique_fd.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace terrace::test {

class throttled_mount {
 public:
  /// `program`: the path of throttled_disk; empty: this build has none.
  throttled_mount(const std::string& program, uint64_t read_bytes_per_s);
  /// Unmounts; nothing may be open in it any more.
  ~throttled_mount();
  throttled_mount(const throttled_mount&) = delete;
  throttled_mount& operator=(const throttled_mount&) = delete;

  /// False: this build has no such program, or this machine allows no mount of it.
  bool mounted() const { return mounted_; }
  std::string path() const { return folder_ / "mounted"; }

 private:
  temporary_folder folder_;
  pid_t server_ = -1;
  bool mounted_ = false;
};

} // namespace terrace::test
