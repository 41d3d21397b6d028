#include "bench/disk_group.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>
#include <vector>

namespace terrace::bench {

namespace {

constexpr uint64_t disk_group_header_bytes = 4096; // header in front of each object

/// Adds what the store itself needs of its file: superblock, journal and checkpoints take less than 1 %.
uint64_t with_metadata(uint64_t bytes) { return bytes / 4096 * 41 / 40 * 4096 + (8ULL << 20); }

constexpr double disk_group_patience_seconds = 60;

void a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

} // namespace

disk_group::disk_group(const settings& options, uint64_t object_bytes, size_t disk_objects,
                       uint64_t host_bytes)
    : object_bytes_(object_bytes), host_bytes_(host_bytes),
      daemon_(options,
              {.host_bytes = host_bytes,
               .disk_bytes = with_metadata(disk_objects * (object_bytes + disk_group_header_bytes))}),
      connection_(connect(daemon_.socket())),
      space_(must(connection_.open_space(space_of(object_bytes)), "opening a space")),
      memory_(must(client::region::create("terrace-bench", disk_depth * object_bytes), "making a region")) {
  std::memset(memory_.data(), 0x3c, memory_.size());
  region_ = must(connection_.register_region(memory_), "registering a region");
}

double disk_group::store(size_t objects, std::vector<digest>* names) {
  auto fresh = digests_of(objects, ++seed_);
  uint64_t total = objects * object_bytes_;
  uint64_t before = tier_of(connection_, "disk").bytes_written;
  double begin = seconds_now();
  std::deque<client::ticket<client::store_result>> under_way;
  for (size_t i = 0; i < objects; ++i) {
    if (under_way.size() == disk_depth) {
      must(under_way.front().wait(), "storing");
      under_way.pop_front();
    }
    client::run run{.offset = i % disk_depth * object_bytes_, .bytes = object_bytes_};
    client::store_request request;
    request.in = space_;
    request.what = client::prefix::of_digests({&fresh[i], 1});
    request.region = &region_;
    request.runs = {&run, 1};
    under_way.push_back(must(connection_.async().store(request), "storing"));
  }
  for (auto& ticket : under_way)
    must(ticket.wait(), "storing");
  wait_for_written(before, total);
  double seconds = seconds_now() - begin;
  if (names)
    *names = std::move(fresh);
  return static_cast<double>(total) / seconds;
}

std::vector<digest> disk_group::store_chain(client::connection& client, const client::space& in,
                                            const client::registered_region& region,
                                            std::span<const client::run> runs) {
  auto chain = digests_of(runs.size(), ++seed_);
  uint64_t before = tier_of(connection_, "disk").bytes_written;
  client::store_request request;
  request.in = in;
  request.what = client::prefix::of_digests(chain);
  request.region = &region;
  request.runs = runs;
  must(client.store(request), "storing");
  wait_for_written(before, runs.size() * object_bytes_);
  return chain;
}

// A store is answered when host memory has it; the disk follows. Polling once per millisecond adds a fraction
// of a percent.
void disk_group::wait_for_written(uint64_t before, uint64_t bytes) {
  double begin = seconds_now();
  for (uint64_t written = 0; written < bytes; written = tier_of(connection_, "disk").bytes_written - before) {
    if (seconds_now() - begin > disk_group_patience_seconds)
      give_up("the disk tier has written " + std::to_string(written) + " of " + std::to_string(bytes) +
              " bytes that were stored");
    a_moment();
  }
}

double disk_group::load(const std::vector<digest>& names) {
  struct one {
    client::lease held;
    client::ticket<client::located_objects> reading;
  };
  uint64_t total = names.size() * object_bytes_;
  uint64_t before = tier_of(connection_, "disk").bytes_read;
  double seconds = seconds_of([&] {
    // Lookups go ahead of the reads, so that no round trip stands between two reads. A finished read makes
    // way for the next, in any order, as in the bare loop. The daemon keeps `disk_depth` reads at the device,
    // as the bare loop does; further ones are in transit. Chunks that were looked up are leased: together
    // with those being read they must take less than leases may hold (lease.host_percent).
    size_t in_host = host_bytes_ / object_bytes_;
    size_t reading_most = std::clamp<size_t>(in_host * 2 / 5, 1, 2 * disk_depth);
    size_t looking_most = std::clamp<size_t>(in_host / 8, 1, 2 * disk_depth);
    std::deque<client::ticket<client::lookup_result>> looking;
    std::vector<one> reading;
    size_t next = 0;
    while (next < names.size() || !looking.empty() || !reading.empty()) {
      for (; next < names.size() && looking.size() < looking_most; ++next)
        looking.push_back(
            must(connection_.async().lookup(
                     {.in = space_, .what = client::prefix::of_digests({&names[next], 1}), .lease = true}),
                 "looking up"));
      size_t done = std::erase_if(reading, [&](one& each) {
        return each.reading.ready() && (must(each.reading.wait(), "reading"), true);
      });
      for (; reading.size() < reading_most && !looking.empty() && looking.front().ready(); ++done) {
        auto hit = must(looking.front().wait(), "looking up");
        looking.pop_front();
        if (hit.found_chunks != 1)
          give_up("an object that was written to disk was not found");
        auto ticket = must(connection_.async().read_lease(hit.held.id()), "reading");
        reading.push_back({std::move(hit.held), std::move(ticket)});
      }
      if (done == 0)
        must(connection_.poll({}), "waiting");
    }
  });
  // Reads end in any order, so a few objects of the previous pass may still be in host memory; they do not
  // count.
  uint64_t read = tier_of(connection_, "disk").bytes_read - before;
  if (read < total / 2)
    give_up("objects came from host memory, not from disk");
  return static_cast<double>(read) / seconds;
}

uint64_t disk_group::extents_begin() const {
  constexpr std::streamoff in_superblock = 192;
  unsigned char bytes[8] = {};
  std::ifstream in(file(), std::ios::binary);
  if (!in.seekg(in_superblock).read(reinterpret_cast<char*>(bytes), sizeof bytes))
    give_up("cannot read the superblock of " + file());
  uint64_t begin = 0;
  for (int i = 7; i >= 0; --i)
    begin = begin << 8 | bytes[i];
  return begin;
}

void disk_group::drain() { wait_until_written(connection_); }

} // namespace terrace::bench
