// NUMA nodes: which there are, and memory that comes from one of them.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace terrace {

/// The nodes with memory, as /sys/devices/system/node tells them; node 0 alone where the kernel knows of none.
std::vector<uint32_t> numa_nodes();

/// The kernel's list format: "0-3,8" is 0, 1, 2, 3, 8. What is not a number ends the list.
std::vector<uint32_t> parse_node_list(std::string_view text);

/// Pages of [data, data + bytes) that are committed from now on come from `node`, and from no other (MPOL_BIND; mbind(2),
/// "Memory policy for shared memory": for a memfd that is so whoever touches them). `data` is a page's begin. Errors:
/// `bad_request` for a node that does not exist, `denied` where a sandbox forbids the call, `unsupported` for a kernel
/// without NUMA.
result<void> bind_to_node(std::byte* data, uint64_t bytes, uint32_t node);

} // namespace terrace
