// NUMA nodes, and memory bound to one of them.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace terrace {

/// Returns the nodes with memory, from /sys/devices/system/node; only node 0 if the kernel has no NUMA support.
std::vector<uint32_t> numa_nodes();

/// Parses the kernel's list format: "0-3,8" is 0, 1, 2, 3, 8. Stops at anything that is not a number.
std::vector<uint32_t> parse_node_list(std::string_view text);

/// Makes pages of [data, data + bytes) that are committed from now on come from `node` only (MPOL_BIND;
/// mbind(2), "Memory policy for shared memory": for a memfd this holds for every process that touches them).
/// `data` is page-aligned. Errors: `bad_request` for a node that does not exist, `denied` if a sandbox
/// forbids the call, `unsupported` for a kernel without NUMA.
result<void> bind_to_node(std::byte* data, uint64_t bytes, uint32_t node);

} // namespace terrace
