#include "storage/volume_reader.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace terrace {

result<void> file_reader::read(uint64_t file_offset, std::span<std::byte> into) {
  while (!into.empty()) {
    ssize_t n = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(file_offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail(
          errc::internal,
          "reading " + std::to_string(into.size()) + " bytes at " + std::to_string(file_offset) +
              " of the volume: " + (n == 0 ? "the file ends there" : std::generic_category().message(errno)));
    into = into.subspan(static_cast<size_t>(n));
    file_offset += static_cast<uint64_t>(n);
  }
  return {};
}

} // namespace terrace
