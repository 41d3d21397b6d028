// A file that a command writes because a person named it.
#pragma once

#include "base/unique_fd.hpp"
#include "cli/console.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace terrace::cli {

/// A plain file is written under a temporary name beside it, and takes its place when it is complete, so that a failure
/// leaves no file that looks valid. A symbolic link stays, and the file behind it is replaced. Anything else is written
/// in place and never replaced: standard output ("-", or a path that leads there), a device, a fifo, a file that has
/// several names.
class output_file {
 public:
  /// Failures begin with the path. A fifo waits for its reader.
  static outcome<output_file> open(const std::string& path, console& to);

  output_file(output_file&& other) noexcept
      : name_(std::move(other.name_)), path_(std::move(other.path_)), part_(std::exchange(other.part_, {})),
        fd_(std::move(other.fd_)), standard_output_(other.standard_output_) {}
  output_file& operator=(output_file&&) = delete;
  ~output_file();

  outcome<void> write(std::span<const std::byte> bytes);

  /// The file is complete. A file that is destroyed without it is removed if it was not written in place.
  outcome<void> keep();

  bool in_place() const { return part_.empty(); }
  bool is_standard_output() const { return standard_output_ != nullptr; }

 private:
  output_file() = default;
  tl::unexpected<failure> cannot_be_written() const;

  std::string name_; ///< as it was given, for messages
  std::string path_; ///< without links
  std::string part_; ///< empty if written in place, or kept
  unique_fd fd_;
  console* standard_output_ = nullptr;
};

} // namespace terrace::cli
