#include "memory/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

namespace terrace {

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
  std::string what = "cannot bind memory to NUMA node " + std::to_string(node) + ": " + std::strerror(reason);
  if (reason == EPERM)
    return fail(errc::denied, what + "; allow mbind in the sandbox (CAP_SYS_NICE in a container), or leave "
                                     "numa_node out");
  if (reason == ENOSYS)
    return fail(errc::unsupported, what + "; the kernel was built without NUMA: leave numa_node out");
  return fail(errc::internal, what);
}

} // namespace terrace
