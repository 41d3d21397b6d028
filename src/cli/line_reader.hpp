// Lines of a text file, plain or gzipped.
#pragma once

#include "cli/failure.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

struct gzFile_s;

namespace terrace::cli {

/// Reads forward only, in pieces of 256 KiB. Gzip is detected from the first bytes, not from the name.
class line_reader {
 public:
  static constexpr size_t line_bytes_max = 32U << 20;

  /// Fails with usage if the file cannot be opened.
  static outcome<line_reader> open(const std::string& path);

  line_reader(line_reader&&) noexcept;
  line_reader& operator=(line_reader&&) noexcept;
  ~line_reader();

  /// The next line without its end, or nullopt at the end of the file. A truncated or damaged archive and a
  /// line over the limit are failures with file and line.
  outcome<std::optional<std::string>> next();

  /// The number of the line last returned by next(); the first is 1.
  size_t line_number() const { return line_number_; }
  const std::string& path() const { return path_; }

 private:
  struct closer {
    void operator()(gzFile_s* file) const;
  };

  line_reader(std::string path, gzFile_s* file);
  outcome<bool> fill();

  std::string path_;
  std::unique_ptr<gzFile_s, closer> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t line_number_ = 0;
};

} // namespace terrace::cli
