// The objects that the benchmarks store and look up.
#pragma once

#include "base/digest.hpp"
#include "client/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::bench {

/// Returns a space of one pool with objects of this size.
client::space_spec space_of(uint64_t object_bytes);

/// Returns random digests that nobody has used; equal seeds give equal digests.
std::vector<digest> digests_of(size_t count, uint64_t seed);

/// Ends the benchmark if it cannot connect.
client::connection connect(const std::string& socket_path);

/// Stores a chain of objects at once. Every chunk's bytes are the first ones of the region.
void store_chain(client::connection& to, const client::space& in, const std::vector<digest>& chain,
                 const client::registered_region& region, uint64_t object_bytes);

/// Stores objects of 4 KiB with a connection and a region that end with the call, so that clients without
/// libterrace find them.
void store_small(const std::string& socket_path, const client::space_spec& spec,
                 const std::vector<digest>& chain);

/// Waits until the disk is in service. The daemon serves before that, and objects stored meanwhile stay only
/// in host memory.
void wait_for_disk(client::connection& to, double patience_seconds = 60);

/// Waits until everything stored is on disk.
void wait_until_written(client::connection& to);

/// Returns the disk or host tier from the daemon's status.
client::tier_status tier_of(client::connection& from, const std::string& tier);

} // namespace terrace::bench
