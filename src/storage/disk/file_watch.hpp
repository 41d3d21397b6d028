// Tells whether the name of a path still shows the file that was opened. Pure: the disk actor asks the kernel
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
  /// `opened`: the file's attributes when it was opened.
  explicit file_watch(std::string path = {}, const file_attributes& opened = {})
      : path_(std::move(path)), opened_(opened) {}

  enum class news : uint8_t {
    none,
    again,  ///< the same as the last look found, but it was cleared since
    changed ///< differs from the last look
  };
  /// The look-up of the name gave 0 and the attributes, or an errno. Errors other than a missing file say nothing.
  news look(int error_number, const file_attributes& seen);

  /// The file was verified in another way. A later `look` may find damage again.
  void clear() { now_ = file_damage::none; }

  file_damage now() const { return now_; }
  std::string reason() const; ///< empty if nothing is wrong

 private:
  std::string path_;
  file_attributes opened_;
  file_damage now_ = file_damage::none;
  file_damage found_ = file_damage::none; ///< found by the last look
  uint64_t bytes_ = 0;                    ///< size of the file when it was found truncated
};

} // namespace terrace
