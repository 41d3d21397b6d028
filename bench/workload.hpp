// What the benchmarks store and look for.
#pragma once

#include "base/digest.hpp"
#include "client/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::bench {

/// A space of one pool with objects of this size.
client::space_spec space_of(uint64_t object_bytes);

/// Digests that nobody has met: random ones, the same for the same seed.
std::vector<digest> digests_of(size_t count, uint64_t seed);

/// Ends the benchmark when there is no connection to be had.
client::connection connect(const std::string& socket_path);

/// A chain of objects from the region's begin, stored at once. Every chunk's bytes are the region's first.
void store_chain(client::connection& to, const client::space& in, const std::vector<digest>& chain,
                 const client::registered_region& region, uint64_t object_bytes);

/// The same with a connection and a region that end with the call: for clients without libterrace to find. Objects of 4 KiB.
void store_small(const std::string& socket_path, const client::space_spec& spec,
                 const std::vector<digest>& chain);

/// Until the disk is in service: the daemon serves before it is, and what is stored meanwhile stays in host memory alone.
void wait_for_disk(client::connection& to, double patience_seconds = 60);

/// Until what was stored is on disk.
void wait_until_written(client::connection& to);

/// The disk or host tier as status tells it.
client::tier_status tier_of(client::connection& from, const std::string& tier);

} // namespace terrace::bench
