#include "base/mapping.hpp"

#include "base/large_pages.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

namespace terrace {

namespace {

/// Returns an address, a multiple of `large_page_bytes`, where `bytes` could be mapped a moment ago. Null:
/// let the kernel choose.
void* aligned_hole(uint64_t bytes) {
  const uint64_t room = bytes + large_page_bytes;
  if (bytes < large_page_bytes || room < bytes)
    return nullptr;
  void* reserved = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return nullptr;
  ::munmap(reserved, room);
  return static_cast<std::byte*>(reserved) + -reinterpret_cast<uintptr_t>(reserved) % large_page_bytes;
}

/// Maps the file at an address where its large pages can be mapped as such; the kernel chooses such an
/// address by itself only where it makes large pages by itself. The address is a wish: if another thread has
/// taken it, the mapping is elsewhere.
void* map_shared(int fd, uint64_t bytes, int access) {
  return ::mmap(aligned_hole(bytes), bytes, access, MAP_SHARED, fd, 0);
}

} // namespace

result<mapping> mapping::map(int fd, uint64_t bytes, bool writable) {
  if (bytes == 0)
    return fail(errc::bad_request, "cannot map 0 bytes");
  void* data = map_shared(fd, bytes, PROT_READ | (writable ? PROT_WRITE : 0));
  if (data == MAP_FAILED) {
    int reason = errno;
    errc code = reason == EPERM || reason == EACCES ? errc::denied
                : reason == ENOMEM                  ? errc::no_space
                                                    : errc::internal;
    return fail(code, "cannot map " + std::to_string(bytes) + " bytes " +
                          (writable ? "for writing: " : "for reading: ") + std::strerror(reason));
  }
  return mapping(static_cast<std::byte*>(data), bytes);
}

void mapping::reset() {
  if (data_ != nullptr)
    ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

namespace {

constexpr uint32_t nodes_max = 1024; // the kernel's largest configuration

std::string describe(const std::vector<uint32_t>& nodes) {
  std::string text;
  for (uint32_t node : nodes)
    text += (text.empty() ? "" : ", ") + std::to_string(node);
  return text;
}

} // namespace

std::vector<uint32_t> parse_node_list(std::string_view text) {
  std::vector<uint32_t> nodes;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    uint32_t first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc())
      break;
    uint32_t last = first;
    if (read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    for (uint32_t node = first; node <= std::min(last, nodes_max - 1); ++node)
      nodes.push_back(node);
    at = read.ptr != end && *read.ptr == ',' ? read.ptr + 1 : end;
  }
  return nodes;
}

std::vector<uint32_t> numa_nodes() {
  for (const char* list : {"has_memory", "online"}) {
    std::ifstream file(std::string("/sys/devices/system/node/") + list);
    std::string line;
    if (std::getline(file, line))
      if (auto nodes = parse_node_list(line); !nodes.empty())
        return nodes;
  }
  return {0};
}

result<void> bind_to_node(std::byte* data, uint64_t bytes, uint32_t node) {
  auto nodes = numa_nodes();
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end())
    return fail(errc::bad_request, "numa_node is " + std::to_string(node) +
                                       ": expected a node of this machine with memory: " + describe(nodes));
  constexpr size_t word_bits = 8 * sizeof(unsigned long);
  unsigned long mask[nodes_max / word_bits] = {};
  mask[node / word_bits] = 1UL << (node % word_bits);
  // Calls the kernel directly, because libnuma would be a dependency for one call.
  if (::syscall(SYS_mbind, data, bytes, MPOL_BIND, mask, nodes_max + 1, MPOL_MF_STRICT) == 0)
    return {};
  int reason = errno;
  std::string text = "cannot bind memory to NUMA node " + std::to_string(node) + ": " + std::strerror(reason);
  if (reason == EPERM)
    return fail(errc::denied, text + "; allow mbind in the sandbox (CAP_SYS_NICE in a container), or leave "
                                     "numa_node out");
  if (reason == ENOSYS)
    return fail(errc::unsupported, text + "; the kernel was built without NUMA: leave numa_node out");
  return fail(errc::internal, text);
}

} // namespace terrace
