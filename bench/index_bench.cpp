// Memory and time of a tier's residency index with ten million chunks.
#include "bench/benchmark.hpp"
#include "index/resident_table.hpp"
#include "policy/eviction_tracker.hpp"

#include <malloc.h>

#include <algorithm>
#include <memory>
#include <random>

namespace terrace::bench {

namespace {

constexpr uint64_t index_chunks = 10'000'000;
constexpr size_t prefix_chunks = 512;
constexpr int lookups = 2'000; ///< lookups per round

object_key key_of(uint64_t number) {
  object_key made{space_id{1}, 0, 0, {}};
  for (uint64_t word = 0; word < 4; ++word) {
    uint64_t bits = detail::mix64(number * 4 + word + 1);
    std::memcpy(made.chunk.bytes.data() + word * sizeof bits, &bits, sizeof bits);
  }
  return made;
}

/// Returns the bytes that the program has from the allocator, with what the allocator adds to each piece.
double allocated() {
  struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

struct filled {
  resident_table table;
  double bytes_per_chunk = 0;
  double longest_us = 0; ///< longest of all insertions, including time that the kernel takes away
};

std::unique_ptr<filled> fill() {
  auto made = std::make_unique<filled>();
  double before = allocated();
  for (uint64_t n = 0; n < index_chunks; ++n) {
    new_resident object{key_of(n), to_entry_key(key_of(n - 1)), n * 4096, 4096, 4096};
    double begin = seconds_now();
    made->table.publish(made->table.insert(object));
    made->longest_us = std::max(made->longest_us, (seconds_now() - begin) * 1e6);
  }
  double mapped = static_cast<double>(made->table.allocated_bytes()); // added to what the allocator has given
  made->bytes_per_chunk = (allocated() - before + mapped) / static_cast<double>(index_chunks);
  return made;
}

/// Measures what the policy's tracker keeps of each resident, in chains of 64.
double ledger_bytes_per_entry(std::string_view policy) {
  constexpr uint64_t entries = 1'000'000;
  eviction_tracker tracker;
  must(tracker.set_policy(0, policy), "policy");
  for (uint64_t n = 0; n < entries; ++n)
    tracker.insert(
        0, {to_entry_key(key_of(n)), n % 64 == 0 ? entry_key{} : to_entry_key(key_of(n - 1)), 4096}, n);
  return static_cast<double>(tracker.bytes()) / static_cast<double>(entries);
}

/// Reads only the digests in the same disorder, which any index has to do.
using line = std::array<uint64_t, 8>;

/// Returns p50 and p99 of the lookups of a round. Each looks up other chunks than the last, so none is in a
/// cache.
template <class F>
std::vector<double> quantiles(std::mt19937_64& random, F&& look_up) {
  std::vector<uint64_t> numbers(prefix_chunks);
  std::vector<object_key> keys(prefix_chunks);
  std::vector<double> us;
  for (int i = 0; i < lookups; ++i) {
    for (size_t n = 0; n < prefix_chunks; ++n) {
      numbers[n] = random() % index_chunks;
      keys[n] = key_of(numbers[n]);
    }
    us.push_back(seconds_of([&] { look_up(numbers, keys); }) * 1e6);
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100]};
}

} // namespace

void index_cost(const settings& options, const reporter& report) {
  auto index = fill();
  double policy_bytes = 0;
  for (std::string_view name : eviction_policy_names())
    policy_bytes = std::max(policy_bytes, ledger_bytes_per_entry(name));
  figure bytes{.name = "index_cost_table",
               .unit = "bytes a chunk",
               .value = index->bytes_per_chunk,
               .limit = digest::max_size,
               .floor = 80,
               .aim = 80,
               .rounds = 1,
               .absolute = true};
  report(bytes);
  bytes.name = "index_cost_with_policy"; // the most expensive policy
  bytes.value += policy_bytes;
  bytes.floor = bytes.aim = 128;
  report(bytes);
  report({.name = "index_cost_longest_insertion",
          .unit = "us",
          .value = index->longest_us,
          .rounds = 1,
          .absolute = true,
          .bounded = false});

  auto lines = std::make_unique_for_overwrite<line[]>(index_chunks);
  for (uint64_t n = 0; n < index_chunks; ++n)
    lines[n].fill(n);
  std::mt19937_64 random(1);
  std::vector<object_id> ids(prefix_chunks);
  uint64_t sum = 0;
  auto sides = interleave(
      options.rounds,
      [&] {
        return quantiles(random, [&](const auto&, const std::vector<object_key>& keys) {
          index->table.find_published(keys, ids);
          if (std::find(ids.begin(), ids.end(), object_id{}) != ids.end())
            give_up("the index lost a chunk");
        });
      },
      [&] {
        return quantiles(random, [&](const std::vector<uint64_t>& numbers, const auto&) {
          for (uint64_t number : numbers)
            sum += lines[number][0];
        });
      });
  if (sum == 0)
    give_up("nothing was read");
  const char* names[] = {"index_cost_lookup_p50", "index_cost_lookup_p99"};
  for (size_t i = 0; i < 2; ++i)
    report(sides.judged(
        {.name = names[i], .unit = "us for 512 chunks", .floor = 60, .aim = 60, .absolute = true}, i));
}

} // namespace terrace::bench
