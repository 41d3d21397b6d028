// Whether the file of a path is still the one that was opened, as its name shows. Pure: the disk actor asks the kernel
// for the file's attributes from time to time and passes the answer here.
#pragma once

#include <cstdint>
#include <string>

namespace terrace {

struct file_attributes {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
};

enum class file_damage : uint8_t { none, deleted, replaced, truncated };

class file_watch {
 public:
  /// `opened`: as the file was when it was opened.
  explicit file_watch(std::string path = {}, const file_attributes& opened = {})
      : path_(std::move(path)), opened_(opened) {}

  enum class news : uint8_t {
    none,
    again,  ///< as the last look found, but it was cleared since
    changed ///< differs from the last look
  };
  /// What its name shows now: 0 and its attributes, or an errno. Other errors than a missing file say nothing.
  news look(int error_number, const file_attributes& seen);

  /// It was verified in another way. `look` may find otherwise later.
  void clear() { now_ = file_damage::none; }

  file_damage now() const { return now_; }
  std::string reason() const; ///< empty if nothing is wrong

 private:
  std::string path_;
  file_attributes opened_;
  file_damage now_ = file_damage::none;
  file_damage found_ = file_damage::none; ///< by the last look
  uint64_t bytes_ = 0;                    ///< when it was found truncated
};

} // namespace terrace
