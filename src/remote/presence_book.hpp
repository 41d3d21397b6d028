// What a remote store may hold. Others write to the store and evict from it, so this is a belief: an answer that was
// true once, with its age. Nothing is promised on it. A wrong one costs a request that misses, or a hit that is not
// found.
//
//   unknown  nobody asked, the answer is too old, or it was replaced: ask the store
//   present  the store said so, or took the object
//   absent   the store said so
//   failed   the last read failed; nobody asks again until the pause is over, which doubles with each failure in a row
//
// The book never grows: it has room for a number of keys, in groups of eight, and a new key replaces the oldest of its
// group. Keys are known by 64 bits of their text. Pure, one thread; the time is passed in and does not go backwards.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::remote {

enum class belief : uint8_t { unknown, present, absent, failed };

struct presence_options {
  uint64_t keys_max = 1 << 20; ///< 16 bytes each; at least 8
  std::chrono::milliseconds present_for{60'000};
  std::chrono::milliseconds absent_for{5'000};
  std::chrono::milliseconds first_pause{5'000}; ///< after a failed read; doubled with each further one
  std::chrono::milliseconds longest_pause{60'000};
};

class presence_book {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit presence_book(const presence_options& options = {});

  belief of(std::string_view key, time_point now) const { return of(name_of(key), now); }
  /// For many keys: they are read from memory at the same time, not one after the other.
  std::vector<belief> of(std::span<const std::string> keys, time_point now) const;

  void is_present(std::string_view key, time_point now) { note(key, belief::present, now); }
  void is_absent(std::string_view key, time_point now) { note(key, belief::absent, now); }
  void has_failed(std::string_view key, time_point now) { note(key, belief::failed, now); }

  /// The store says that the key has changed.
  void forget(std::string_view key);
  /// The store may have changed in any way: the connection that would have told is lost, or the store began anew.
  void forget_all();

  uint64_t capacity() const { return 8 * groups_; } ///< keys
  uint64_t bytes() const { return capacity() * sizeof(entry); }

 private:
  static constexpr size_t group_size = 8;
  struct entry {
    uint64_t name = 0;
    uint32_t since = 0; ///< ticks of 100 ms since the first call
    belief what = belief::unknown;
    uint8_t failures = 0; ///< in a row
  };
  static_assert(sizeof(entry) == 16);

  static uint64_t name_of(std::string_view key);
  belief of(uint64_t name, time_point now) const;
  void note(std::string_view key, belief what, time_point now);
  entry* group_of(uint64_t name) const { return &entries_[name % groups_ * group_size]; }
  entry* find(uint64_t name) const;
  uint32_t ticks(time_point now) const;
  std::chrono::milliseconds lasts(const entry& of) const;

  presence_options options_;
  uint64_t groups_;
  std::unique_ptr<entry[]> entries_;
  mutable time_point first_{}; ///< tick 0
};

// How many chunks of a chain a store has from the first on, if each question costs a request: few chunks are asked for, and in few
// rounds. The first round has those at distances 1, 2, 4, ... and the last; each later one divides what is left between the last that is
// there and the first that is missing.
//
//   prefix_probe plan(chunks);
//   while (!plan.next().empty())
//     plan.answered(...);  // all that `next` named
//
// A chunk that was not asked for is believed to be there if a later one is, because chains are written from their begin on. It may be
// missing nevertheless: then its read is a miss, and what is before it is delivered. Pure, one thread.
class prefix_probe {
 public:
  static constexpr size_t divides_by = 32; ///< so a later round asks for 31 at most

  explicit prefix_probe(size_t chunks) : missing_(chunks) {}

  /// The chunks to ask for now, by their numbers from 0 on, in their order. Empty: it is over.
  std::vector<size_t> next() const;
  /// `what`: of these chunks. One that is unknown, because it could not be asked for in time, ends the search.
  void answered(const std::vector<belief>& what);

  /// The chunk was not asked for, and is known to be missing.
  void is_missing(size_t chunk);

  /// Chunks that are there, as far as is known; more may be found by further rounds.
  size_t found() const { return found_; }
  /// The first chunk that is missing, as far as is known; the number of chunks: none is.
  size_t missing() const { return missing_; }

 private:
  size_t found_ = 0, missing_;
  bool first_ = true, unknown_ = false;
};

} // namespace terrace::remote
