// An allocation queue beside the index of its tier, with a policy that names objects in a given order.
#pragma once

#include "tests/tier/objects.hpp"
#include "tier/space/allocation_queue.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace terrace::test {

struct round_fixture : ::testing::Test {
  static constexpr uint64_t page = 4096;
  using numbers = std::vector<uint64_t>;
  using answer_ptr = std::shared_ptr<std::optional<allocate_answer>>;

  std::unique_ptr<allocation_queue> queue = make(8);
  residency objects{tier_kind::host};
  std::shared_ptr<eviction_round> round;   ///< set while it is at the tier
  std::vector<uint64_t> asked;             ///< bytes that the policy was asked for
  std::vector<uint64_t> sizes;             ///< sizes of the objects, by number
  std::function<void()> meanwhile = [] {}; ///< happens once between the policy's answer and the choice

  static std::unique_ptr<allocation_queue> make(uint64_t pages, uint64_t ahead = 0, size_t waiting_max = 8,
                                                uint64_t boundary_pages = 0) {
    auto space = make_allocator("free_list",
                                {.capacity_bytes = pages * page, .boundary_bytes = boundary_pages * page});
    return std::make_unique<allocation_queue>(std::move(*space), ahead, waiting_max);
  }

  answer_ptr ask(const std::vector<uint64_t>& pages, bool may_wait = true, context_ptr of = nullptr) {
    auto answer = std::make_shared<std::optional<allocate_answer>>();
    allocate_request request;
    for (uint64_t count : pages)
      request.sizes.push_back(count * page);
    request.may_wait = may_wait;
    request.context = std::move(of);
    queue->allocate(request, [answer](allocate_answer value) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(value);
    });
    return answer;
  }

  /// Fills extents with published objects, which are numbered in the order of their arrival.
  std::vector<extent> take(const std::vector<uint64_t>& pages) {
    auto answer = ask(pages);
    EXPECT_TRUE(answer->has_value() && (*answer)->failure.code == errc::ok);
    for (const extent& where : (*answer)->extents) {
      acquire_request request;
      request.objects = chain(sizes.size(), 1);
      auto taken = objects.acquire(request, objects.missing(request), {where});
      objects.publish(taken.places, false);
      sizes.push_back(where.size);
    }
    return (*answer)->extents;
  }
  std::vector<object_id> hold(uint64_t number) {
    return {objects.probe({chain(number, 1), true, false}).places.front().id};
  }
  bool may_leave(uint64_t number) const {
    return !objects.departures().offered({to_entry_key(key_of(number))}).extents.empty();
  }
  bool present(uint64_t number) { return objects.probe({chain(number, 1), false, false}).hits == 1; }

  /// Begins a round if the queue wants one. Returns the bytes that are missing, or needed where bytes are
  /// free; 0: it asks for nothing.
  uint64_t wanted() {
    round = queue->begin_round();
    return round ? round->question(tier_kind::host).bytes : 0;
  }

  /// Plays the tier through a round, and begins one if none is in progress: the policy names these objects,
  /// until they have as many bytes as it is asked for. Returns which objects left.
  numbers make_room(const numbers& order) {
    if (!round)
      round = queue->begin_round();
    numbers before, left;
    for (uint64_t number = 0; number < sizes.size(); ++number)
      if (present(number))
        before.push_back(number);
    while (round && round->now() != eviction_round::stage::idle) {
      uint64_t bytes = round->question(tier_kind::host).bytes;
      asked.push_back(bytes);
      victim_answer named;
      for (uint64_t number : order)
        if (named.bytes < bytes && may_leave(number)) {
          named.victims.push_back(to_entry_key(key_of(number)));
          named.above.emplace_back();
          named.bytes += sizes[number];
        }
      std::exchange(meanwhile, [] {})();
      round->offer(std::move(named));
      round->choose(objects);
      if (round->now() == eviction_round::stage::evicting)
        round->evict(objects);
    }
    if (round)
      queue->end_round(std::move(round));
    round = nullptr;
    for (uint64_t number : before)
      if (!present(number))
        left.push_back(number);
    return left;
  }

  uint64_t free_bytes() const { return queue->usage().free_bytes; }
};

} // namespace terrace::test
