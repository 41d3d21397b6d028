#include "cli/line_reader.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace terrace::cli {

namespace {
constexpr size_t buffer_bytes = 256U << 10;
}

void line_reader::closer::operator()(gzFile_s* file) const { gzclose_r(file); }

line_reader::line_reader(std::string path, gzFile_s* file)
    : path_(std::move(path)), file_(file), buffer_(buffer_bytes) {}
line_reader::line_reader(line_reader&&) noexcept = default;
line_reader& line_reader::operator=(line_reader&&) noexcept = default;
line_reader::~line_reader() = default;

outcome<line_reader> line_reader::open(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return bad_usage(fmt::format("{}: expected a file, found a directory", path));
  gzFile file = gzopen(path.c_str(), "rbe"); // reads plain files as they are
  if (file == nullptr)
    return bad_usage(fmt::format("{}: expected a readable file: {}", path, std::strerror(errno)));
  gzbuffer(file, buffer_bytes);
  return line_reader(path, file);
}

outcome<bool> line_reader::fill() {
  int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* text = gzerror(file_.get(), &code);
  if (count < 0 || (count == 0 && code == Z_BUF_ERROR))
    return bad_usage(
        fmt::format("{}:{}: expected a complete gzip archive, but it is damaged or truncated ({})", path_,
                    line_number_ + 1, code == Z_ERRNO ? std::strerror(errno) : text));
  begin_ = 0;
  end_ = static_cast<size_t>(count);
  return count > 0;
}

outcome<std::optional<std::string>> line_reader::next() {
  std::string line;
  bool any = false;
  for (;;) {
    if (begin_ == end_) {
      auto more = fill();
      if (!more)
        return tl::unexpected(more.error());
      if (!*more)
        break;
    }
    any = true;
    const char* first = buffer_.data() + begin_;
    const void* newline = std::memchr(first, '\n', end_ - begin_);
    size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - first) : end_ - begin_;
    if (line.size() + length > line_bytes_max)
      return bad_usage(
          fmt::format("{}:{}: expected a line of at most {} bytes", path_, line_number_ + 1, line_bytes_max));
    line.append(first, length);
    begin_ += length;
    if (newline != nullptr) {
      ++begin_;
      break;
    }
  }
  if (!any)
    return std::nullopt;
  ++line_number_;
  if (!line.empty() && line.back() == '\r')
    line.pop_back();
  return line;
}

} // namespace terrace::cli
