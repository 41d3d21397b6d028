// Clients with a space and a region, and contents that can be checked byte by byte.
#pragma once

#include "base/unique_fd.hpp"
#include "client/client.hpp"
#include "daemon_under_test.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace::e2e {

constexpr uint64_t object_bytes = mebibyte;
constexpr uint32_t space_chunk_tokens = 16;

/// Deadline for every call that must succeed: a call that exceeds it has failed.
inline client::deadline patiently() { return client::within(std::chrono::milliseconds(patience_ms)); }

/// Asks again until the answer is true. Returns false if it was not by the deadline of `patiently`.
template <class F>
bool eventually(F&& holds) {
  auto until = patiently();
  while (!holds())
    if (std::chrono::steady_clock::now() >= *until)
      return false;
  return true;
}

client::space_spec test_space();

/// Returns a chain of `count` chunks that no other seed has.
std::vector<digest> chain_of(uint64_t seed, size_t count);

/// Fills the memory with the content of the chunk's object.
void fill_content(const digest& chunk, std::span<uint8_t> memory);
bool has_content(const digest& chunk, std::span<const uint8_t> memory);

/// Returns how many objects of `object_bytes` a host arena takes at a time.
uint64_t objects_in(uint64_t host_bytes);

/// A connection with the space open and a region registered; any step that fails fails the test.
class tester {
 public:
  explicit tester(const std::string& socket, const std::string& name = "tester",
                  uint64_t region_bytes = 8 * object_bytes, client::space_spec spec = test_space());

  client::connection& operator*() { return *daemon_; }
  client::connection* operator->() { return &*daemon_; }
  const client::space& space() const { return space_; }
  const client::region& memory() const { return memory_; }
  std::span<uint8_t> piece(size_t i) const { return memory_.bytes().subspan(i * object_bytes, object_bytes); }

  /// Requests over the whole region; the i-th chunk of the range lies in piece i. They point to `chain`, and
  /// to runs that are kept until the next one is made.
  client::store_request store_of(const std::vector<digest>& chain, client::chunk_range range = {});
  /// `first_piece`: the piece for the first chunk.
  client::load_request load_of(const std::vector<digest>& chain, client::chunk_range range = {},
                               size_t first_piece = 0);
  client::lookup_request lookup_of(const std::vector<digest>& chain, bool lease = false,
                                   uint32_t tiers = 0) const;

  /// Stores the chain's contents, a regionful at a time; returns how many chunks were new.
  uint32_t store(const std::vector<digest>& chain);

  /// Loads the chain and checks every byte. Returns how many chunks were delivered.
  uint32_t load_and_check(const std::vector<digest>& chain);

  client::lookup_result lookup(const std::vector<digest>& chain, bool lease = false, uint32_t tiers = 0);

  client::daemon_status status();
  client::tier_status tier(const std::string& name);

 private:
  result<client::connection> daemon_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<client::run> runs_;
};

/// Loads that take about a second for each object, and stores that take as long beside them: they copy in
/// tiny pieces through a descriptor, with system calls for each.
class slow_client {
 public:
  slow_client(const std::string& socket, const std::string& name, uint64_t piece_bytes = 2);

  client::connection& operator*() { return *by_; }
  client::connection* operator->() { return by_.operator->(); }

  /// Makes stores that store one chunk each, and hold the memory for it meanwhile.
  std::vector<client::ticket<client::store_result>> store(uint64_t seed, size_t chunks);
  std::vector<client::ticket<client::load_result>> load(const digest& chunk, size_t times);

 private:
  client::run pieces_;
  tester by_;
  unique_fd memory_;
  result<client::registered_region> region_;
};

/// Returns the leased objects of host memory. Asks again until they are `expected`, because messages give
/// back what a lease held.
uint64_t leased_objects(tester& by, uint64_t expected);

/// Stores the chain, which fits the region. A store is refused at once if only leases hold memory, so this
/// asks again until they have ended. Returns false if the chain was present, or there was never room.
bool stored_when_free(tester& by, const std::vector<digest>& chain);

/// Takes leases that together hold all of a host arena. Each chunk is stored while all before it are leased,
/// so the call succeeds if and only if everything else in the arena can be freed. Fails the test otherwise.
std::vector<client::lease> occupy(tester& by, uint64_t seed, uint64_t objects);

constexpr uint32_t on_host = 1U << static_cast<unsigned>(tier_kind::host);
constexpr uint32_t on_disk = 1U << static_cast<unsigned>(tier_kind::disk);

} // namespace terrace::e2e
