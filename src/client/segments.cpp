#include "client/segments.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>

namespace terrace::client::detail {

segments::~segments() {
  for (auto& [id, mapped] : mapped_)
    ::munmap(mapped.data, mapped.bytes);
}

result<void> segments::map(uint32_t id, const unique_fd& memory, uint64_t bytes, bool writable) {
  struct stat info {};
  auto name = "segment " + std::to_string(id);
  if (::fstat(memory.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes)
    return fail(errc::internal, "expected " + name + " to have " + std::to_string(bytes) +
                                    " bytes, got a file of " + std::to_string(info.st_size));
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED)
    return fail(errc::no_space,
                "cannot map " + name + " of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  mapped_.emplace(id, mapping{static_cast<uint8_t*>(data), bytes, writable});
  return {};
}

result<std::span<uint8_t>> segments::at(uint32_t id, uint64_t offset, uint64_t bytes,
                                        bool for_writing) const {
  auto found = mapped_.find(id);
  if (found == mapped_.end())
    return fail(errc::internal, "segment " + std::to_string(id) + " is not mapped");
  const auto& mapped = found->second;
  if (bytes > mapped.bytes || offset > mapped.bytes - bytes)
    return fail(errc::internal, "expected a location inside segment " + std::to_string(id) + " of " +
                                    std::to_string(mapped.bytes) + " bytes, got " + std::to_string(bytes) +
                                    " bytes at " + std::to_string(offset));
  if (for_writing && !mapped.writable)
    return fail(errc::internal,
                "expected a writable segment for a reservation, got segment " + std::to_string(id));
  return std::span<uint8_t>(mapped.data + offset, bytes);
}

} // namespace terrace::client::detail
