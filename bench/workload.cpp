#include "bench/workload.hpp"
#include "bench/sizes.hpp"

#include "bench/harness.hpp"
#include "bench/sizes.hpp"

#include <cstring>
#include <random>
#include <thread>

namespace terrace::bench {

namespace {
constexpr double workload_patience_seconds = 60;
} // namespace

client::space_spec space_of(uint64_t object_bytes) {
  client::space_spec spec;
  spec.model = "bench";
  spec.dtype = "bf16";
  spec.layout = "opaque";
  spec.pools = {{.name = "kv", .object_bytes = object_bytes}};
  return spec;
}

std::vector<digest> digests_of(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<digest> out(count);
  for (digest& d : out)
    for (size_t i = 0; i < digest::max_size; i += sizeof(uint64_t)) {
      uint64_t word = random();
      std::memcpy(d.bytes.data() + i, &word, sizeof word);
    }
  return out;
}

client::connection connect(const std::string& socket_path) {
  return must(client::connection::connect({.path = socket_path, .name = "terrace-bench"}), "connecting");
}

void store_chain(client::connection& to, const client::space& in, const std::vector<digest>& chain,
                 const client::registered_region& region, uint64_t object_bytes) {
  // All chunks have the same bytes, because their content does not matter here.
  std::vector<client::run> runs(chain.size(), {.offset = 0, .bytes = object_bytes, .stride = 0, .count = 1});
  client::store_request request;
  request.in = in;
  request.what = client::prefix::of_digests(chain);
  request.region = &region;
  request.runs = runs;
  auto stored = must(to.store(request), "storing");
  if (stored.stored_chunks + stored.present_chunks != chain.size())
    give_up("not every chunk was stored");
}

void store_small(const std::string& socket_path, const client::space_spec& spec,
                 const std::vector<digest>& chain) {
  auto connection = connect(socket_path);
  auto space = must(connection.open_space(spec), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  store_chain(connection, space, chain, region, small_object);
  wait_until_written(connection);
}

void wait_for_disk(client::connection& to, double workload_patience_seconds) {
  for (double begin = seconds_now(); tier_of(to, "disk").state != "ready";
       std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (seconds_now() - begin > workload_patience_seconds)
      give_up("the disk tier is not ready: " + tier_of(to, "disk").reason);
}

void wait_until_written(client::connection& to) {
  for (double begin = seconds_now(); tier_of(to, "host").leased_objects != 0;
       std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (seconds_now() - begin > workload_patience_seconds)
      give_up("what was stored is still not on disk");
}

client::tier_status tier_of(client::connection& from, const std::string& tier) {
  auto status = must(from.admin().status(), "asking for the status");
  for (auto& group : status.groups)
    for (auto& t : group.tiers)
      if (t.tier == tier)
        return t;
  give_up("the daemon has no tier " + tier);
}

} // namespace terrace::bench
