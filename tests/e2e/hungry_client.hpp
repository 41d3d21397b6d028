// A client whose working set far exceeds its part of host memory. It looks up under a lease, loads, maps,
// stores, prefetches and cancels, and compares every byte that it gets.
#pragma once

#include "workload.hpp"

#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace terrace::e2e {

/// State shared by the clients of one run. Safe on any thread.
struct hungry_course {
  /// The first client that has moved this many ends the run for all; 0: none does.
  uint64_t chunks_wanted = 0;
  std::chrono::steady_clock::time_point until; ///< used without `chunks_wanted`
  bool prefetches = false;                     ///< there is a tier below host memory
  uint64_t seed = 0;
  std::atomic<bool> over = false;
};

class hungry_client {
 public:
  static constexpr uint64_t piece_bytes = 128 << 10;
  static constexpr uint64_t held_bytes = piece_bytes + 4096; ///< bytes of the arena, with the header
  static constexpr size_t chain_lengths[] = {4, 8, 16, 24, 32, 41};
  static constexpr size_t chunks_in_all = 125; ///< chunks of all its chains

  /// Connects. Throws if it cannot.
  hungry_client(const std::string& socket, size_t number, hungry_course& course);

  /// Works until the run is over or a request failed. `between` is called after each piece of work.
  void work(const std::function<void()>& between = {});

  /// Chunks that it stored, or loaded and compared; safe on any thread.
  uint64_t moved() const { return moved_; }
  uint64_t loaded() const { return loaded_; }         ///< the loaded part of `moved`
  uint64_t prefetched() const { return prefetched_; } ///< chunks that its prefetches delivered
  uint64_t cancelled() const { return cancelled_; }   ///< number of cancelled prefetches
  /// The longest time from a request to its answer, and the request.
  std::chrono::duration<double> longest_wait() const { return longest_; }
  const std::string& longest_of() const { return longest_of_; }

 private:
  using chain = std::vector<digest>;

  void turn(const chain& next, const chain& other);
  void load_under_lease(const chain& of, const client::lookup_result& found);
  void map_under_lease(const chain& of, const client::lookup_result& found);
  void store_rest(const chain& of, uint32_t first);
  void prefetch_and_load(const chain& of);
  void all_at_once(const chain& stored, const chain& loaded);
  void compare(const chain& of, uint32_t count, size_t first_piece = 0);
  void add(uint64_t chunks, bool by_a_load);
  std::span<const client::run> runs(size_t count, size_t first_piece);
  std::span<uint8_t> piece(size_t i) { return memory_.bytes().subspan(i * piece_bytes, piece_bytes); }

  /// Returns the answer, and measures its time. An error fails the test unless its code is `may_be`.
  template <class Ask>
  auto asked(const char* what, Ask&& ask, errc may_be = errc::ok) {
    auto begin = std::chrono::steady_clock::now();
    auto answer = ask();
    took(what, std::chrono::steady_clock::now() - begin);
    if (!answer && answer.error().code != may_be)
      failed(what, answer.error());
    return answer;
  }
  void took(const char* what, std::chrono::duration<double> time);
  void failed(const char* what, const error& why);

  hungry_course& course_;
  std::mt19937_64 random_;
  client::connection daemon_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<chain> chains_;
  std::vector<client::run> runs_[2];
  std::atomic<uint64_t> moved_ = 0, loaded_ = 0, prefetched_ = 0, cancelled_ = 0;
  std::atomic<bool> failed_ = false;
  std::chrono::duration<double> longest_{};
  std::string longest_of_;
};

} // namespace terrace::e2e
