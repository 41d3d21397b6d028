#include "workload.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace terrace::e2e {

namespace {

uint64_t mixed(uint64_t x) { // the finalizer of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t seed_of(const digest& chunk) {
  uint64_t seed;
  std::memcpy(&seed, chunk.bytes.data(), sizeof seed);
  return seed;
}

} // namespace

client::space_spec test_space() {
  client::space_spec spec;
  spec.model = "test";
  spec.dtype = "u8";
  spec.layout = "opaque";
  spec.chunk_tokens = space_chunk_tokens;
  spec.pools = {{.name = "kv", .object_bytes = object_bytes}};
  return spec;
}

std::vector<digest> chain_of(uint64_t seed, size_t count) {
  std::vector<digest> chain(count);
  for (size_t i = 0; i < count; ++i)
    for (size_t w = 0; w < digest::max_size / 8; ++w) {
      uint64_t word = mixed(seed * 1'000'003 + i * 8 + w + 1);
      std::memcpy(chain[i].bytes.data() + w * 8, &word, 8);
    }
  return chain;
}

void fill_content(const digest& chunk, std::span<uint8_t> memory) {
  uint64_t seed = seed_of(chunk);
  for (size_t at = 0; at + 8 <= memory.size(); at += 8) {
    uint64_t word = mixed(seed + at);
    std::memcpy(memory.data() + at, &word, 8);
  }
}

bool has_content(const digest& chunk, std::span<const uint8_t> memory) {
  std::vector<uint8_t> expected(memory.size());
  fill_content(chunk, expected);
  return std::memcmp(expected.data(), memory.data(), memory.size()) == 0;
}

uint64_t objects_in(uint64_t host_bytes) {
  constexpr uint64_t header_bytes = 4096; // in front of every object, see docs/disk-format.md
  return host_bytes / (object_bytes + header_bytes);
}

tester::tester(const std::string& socket, const std::string& name, uint64_t region_bytes,
               client::space_spec spec)
    : daemon_(client::connection::connect({.path = socket, .name = name}, patiently())) {
  if (!daemon_)
    throw std::runtime_error("connecting: " + daemon_.error().text);
  auto opened = daemon_->open_space(spec, patiently());
  if (!opened)
    throw std::runtime_error("opening the space: " + opened.error().text);
  space_ = *opened;
  memory_ = client::region::create("test", region_bytes).value();
  auto registered = daemon_->register_region(memory_, patiently());
  if (!registered)
    throw std::runtime_error("registering the region: " + registered.error().text);
  region_ = std::move(*registered);
}

client::store_request tester::store_of(const std::vector<digest>& chain, client::chunk_range range) {
  size_t count = range.count != 0 ? range.count : chain.size() - range.first;
  runs_.clear();
  for (size_t i = 0; i < count; ++i)
    runs_.push_back({.offset = i * object_bytes, .bytes = object_bytes});
  client::store_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(chain);
  request.range = range;
  request.region = &region_;
  request.runs = runs_;
  return request;
}

client::load_request tester::load_of(const std::vector<digest>& chain, client::chunk_range range,
                                     size_t first_piece) {
  client::store_request same = store_of(chain, range);
  for (client::run& run : runs_)
    run.offset += first_piece * object_bytes;
  client::load_request request;
  request.in = same.in;
  request.what = same.what;
  request.range = range;
  request.region = &region_;
  request.runs = same.runs;
  return request;
}

client::lookup_request tester::lookup_of(const std::vector<digest>& chain, bool lease, uint32_t tiers) const {
  client::lookup_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(chain);
  request.lease = lease;
  request.tiers = tiers;
  return request;
}

uint32_t tester::store(const std::vector<digest>& chain) {
  uint32_t stored = 0;
  auto at_a_time = static_cast<uint32_t>(memory_.size() / object_bytes);
  for (uint32_t first = 0; first < chain.size(); first += at_a_time) {
    uint32_t count = std::min(at_a_time, static_cast<uint32_t>(chain.size()) - first);
    for (uint32_t i = 0; i < count; ++i)
      fill_content(chain[first + i], piece(i));
    auto answer = daemon_->store(store_of(chain, {first, count}), patiently());
    EXPECT_TRUE(answer) << answer.error().text;
    if (!answer)
      break;
    stored += answer->stored_chunks;
  }
  return stored;
}

uint32_t tester::load_and_check(const std::vector<digest>& chain) {
  uint32_t delivered = 0;
  auto at_a_time = static_cast<uint32_t>(memory_.size() / object_bytes);
  for (uint32_t first = 0; first < chain.size(); first += at_a_time) {
    uint32_t count = std::min(at_a_time, static_cast<uint32_t>(chain.size()) - first);
    std::memset(memory_.data(), 0, memory_.size());
    auto answer = daemon_->load(load_of(chain, {first, count}), patiently());
    EXPECT_TRUE(answer) << answer.error().text;
    if (!answer)
      break;
    for (uint32_t i = 0; i < answer->delivered_chunks; ++i)
      EXPECT_TRUE(has_content(chain[first + i], piece(i))) << "chunk " << first + i << " has wrong bytes";
    delivered += answer->delivered_chunks;
    if (answer->delivered_chunks != count)
      break;
  }
  return delivered;
}

client::lookup_result tester::lookup(const std::vector<digest>& chain, bool lease, uint32_t tiers) {
  auto found = daemon_->lookup(lookup_of(chain, lease, tiers), patiently());
  EXPECT_TRUE(found) << found.error().text;
  return found ? std::move(*found) : client::lookup_result{};
}

client::daemon_status tester::status() {
  auto answer = daemon_->admin().status(patiently());
  EXPECT_TRUE(answer) << answer.error().text;
  return answer ? *answer : client::daemon_status{};
}

client::tier_status tester::tier(const std::string& name) {
  for (const auto& group : status().groups)
    for (const auto& tier : group.tiers)
      if (tier.tier == name)
        return tier;
  ADD_FAILURE() << "the daemon has no tier " << name;
  return {};
}

slow_client::slow_client(const std::string& socket, const std::string& name, uint64_t piece_bytes)
    : pieces_{.offset = 0,
              .bytes = piece_bytes,
              .stride = 2 * piece_bytes,
              .count = object_bytes / piece_bytes},
      by_(socket, name), memory_(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (::ftruncate(memory_.get(), 2 * object_bytes) != 0)
    throw std::runtime_error("making a region");
  region_ = by_->register_region(memory_.get(), 2 * object_bytes, patiently());
  if (!region_)
    throw std::runtime_error("registering a region: " + region_.error().text);
}

std::vector<client::ticket<client::store_result>> slow_client::store(uint64_t seed, size_t chunks) {
  std::vector<client::ticket<client::store_result>> tickets;
  for (size_t i = 0; i < chunks; ++i) {
    auto one = chain_of(seed + i, 1);
    auto request = by_.store_of(one);
    request.region = &*region_;
    request.runs = {&pieces_, 1};
    auto ticket = by_->async().store(request, patiently());
    EXPECT_TRUE(ticket) << ticket.error().text;
    if (ticket)
      tickets.push_back(std::move(*ticket));
  }
  return tickets;
}

std::vector<client::ticket<client::load_result>> slow_client::load(const digest& chunk, size_t times) {
  std::vector<client::ticket<client::load_result>> tickets;
  std::vector<digest> one{chunk};
  for (size_t i = 0; i < times; ++i) {
    auto request = by_.load_of(one);
    request.region = &*region_;
    request.runs = {&pieces_, 1};
    auto ticket = by_->async().load(request, patiently());
    EXPECT_TRUE(ticket) << ticket.error().text;
    if (ticket)
      tickets.push_back(std::move(*ticket));
  }
  return tickets;
}

uint64_t leased_objects(tester& by, uint64_t expected) {
  uint64_t leased = 0;
  (void) eventually([&] {
    leased = by.tier("host").leased_objects;
    return leased == expected || ::testing::Test::HasFailure();
  });
  return leased;
}

bool stored_when_free(tester& by, const std::vector<digest>& chain) {
  auto until = patiently();
  for (size_t i = 0; i < chain.size(); ++i)
    fill_content(chain[i], by.piece(i));
  while (std::chrono::steady_clock::now() < *until) {
    auto answer = by->store(by.store_of(chain), patiently());
    if (answer)
      return answer->stored_chunks == chain.size();
    EXPECT_EQ(answer.error().code, errc::no_space) << answer.error().text;
    if (answer.error().code != errc::no_space)
      return false;
  }
  return false;
}

std::vector<client::lease> occupy(tester& by, uint64_t seed, uint64_t objects) {
  std::vector<client::lease> held;
  for (uint64_t i = 0; i < objects; ++i) {
    auto one = chain_of(seed + i, 1);
    // The last requests of a client that has just died may evict what nobody leases yet.
    client::lookup_result found;
    for (int tries = 0; tries < 100 && found.found_chunks == 0; ++tries) {
      if (!stored_when_free(by, one))
        break;
      found = by.lookup(one, true, on_host);
    }
    if (found.found_chunks != 1)
      break;
    held.push_back(std::move(found.held));
  }
  EXPECT_EQ(held.size(), objects) << "memory that should be free is still held";
  return held;
}

} // namespace terrace::e2e
