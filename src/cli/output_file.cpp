#include "cli/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace terrace::cli {

namespace {

constexpr unsigned permission_bits = 07777, new_file_mode = 0666;

bool leads_to_standard_output(const struct stat& found, console& to) {
  struct stat out {};
  return ::fstat(::fileno(to.out), &out) == 0 && out.st_dev == found.st_dev && out.st_ino == found.st_ino;
}

} // namespace

tl::unexpected<failure> output_file::cannot_be_written() const {
  return failed(name_ + ": cannot be written: " + std::strerror(errno));
}

outcome<output_file> output_file::open(const std::string& path, console& to) {
  output_file file;
  file.name_ = file.path_ = path;
  struct stat found {};
  bool exists = ::stat(path.c_str(), &found) == 0;
  if (path == "-" || (exists && leads_to_standard_output(found, to))) {
    file.standard_output_ = &to;
    return file;
  }
  std::error_code none;
  bool dangling = !exists && std::filesystem::is_symlink(path, none);
  if (dangling || (exists && (!S_ISREG(found.st_mode) || found.st_nlink > 1))) {
    file.fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, new_file_mode));
    if (!file.fd_)
      return file.cannot_be_written();
    return file;
  }
  if (exists)
    file.path_ = std::filesystem::canonical(path, none).string();
  file.part_ = file.path_ + ".part";
  file.fd_.reset(::open(file.part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, new_file_mode));
  if (!file.fd_ || (exists && ::fchmod(file.fd_.get(), found.st_mode & permission_bits) != 0))
    return file.cannot_be_written();
  return file;
}

output_file::~output_file() {
  if (!part_.empty())
    ::unlink(part_.c_str());
}

outcome<void> output_file::write(std::span<const std::byte> bytes) {
  if (is_standard_output()) {
    standard_output_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return {};
  }
  while (!bytes.empty()) {
    ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      return cannot_be_written();
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
}

outcome<void> output_file::keep() {
  if (is_standard_output()) {
    standard_output_->flush();
    return {};
  }
  if (::close(fd_.release()) != 0) // some file systems report a full disk only here
    return cannot_be_written();
  if (!part_.empty() && ::rename(part_.c_str(), path_.c_str()) != 0)
    return cannot_be_written();
  part_.clear();
  return {};
}

} // namespace terrace::cli
