// A tier faster than host memory, with a capacity of 4 objects, whose mover copies at once or when it is told to.
#pragma once

#include "disk_fixture.hpp"
#include "runtime/answer.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstring>
#include <functional>
#include <map>

namespace terrace::actors::test {

/// Payloads by offset. With `gated`, reads wait until they are let go.
struct fast_memory {
  std::map<uint64_t, std::vector<std::byte>> at;
  bool gated = false;
  std::vector<std::function<void()>> waiting;
  uint64_t reads = 0; ///< objects
};
using fast_memory_ptr = std::shared_ptr<fast_memory>;

inline move_answer read_from(fast_memory& fast, const read_request& request) {
  move_answer answer;
  for (const moved_object& object : request.objects) {
    auto entry = fast.at.find(object.place.offset);
    if (entry != fast.at.end())
      std::memcpy(object.memory + object_header_bytes, entry->second.data(), entry->second.size());
    answer.outcomes.push_back(entry != fast.at.end() ? move_outcome::done : move_outcome::failed);
    ++fast.reads;
  }
  return answer;
}

using fast_mover_actor = mover_actor::extend<caf::reacts_to<open_gate>>;

inline fast_mover_actor::behavior_type fast_mover(fast_mover_actor::pointer self,
                                                  const fast_memory_ptr& fast) {
  return {
      [self, fast](const read_request& request) -> caf::result<move_answer> {
        auto reply = make_answer<move_answer>(self);
        auto promise = reply.promise();
        auto go = [fast, request, reply]() mutable { reply.deliver(read_from(*fast, request)); };
        if (fast->gated)
          fast->waiting.emplace_back(std::move(go));
        else
          go();
        return promise;
      },
      [fast](const write_request& request) {
        move_answer answer;
        for (const moved_object& object : request.objects) {
          std::byte* begin = object.memory + object_header_bytes;
          fast->at[object.place.offset].assign(begin, begin + object.place.payload_bytes);
          answer.outcomes.push_back(move_outcome::done);
        }
        return answer;
      },
      [](register_memory) {},
      [](const add_memory&) {},
      [](const forget_memory&) { return retire_answer{}; },
      [](const close_mover_request&) { return close_mover_answer{}; },
      [fast](open_gate) {
        fast->gated = false;
        for (auto& each : std::exchange(fast->waiting, {}))
          each();
      },
  };
}

struct fast_tier_fixture : disk_fixture {
  fast_mover_actor mover;
  fast_memory_ptr fast = std::make_shared<fast_memory>();
  std::shared_ptr<device_tier_service> serves = std::make_shared<device_tier_service>();
  std::shared_ptr<metrics::tier_probe> probe = std::make_shared<metrics::tier_probe>();

  void begin(demotion_mode returning, parts_wanted of = {.host_objects = 8}) {
    of.more_tiers = {{.kind = tier_kind::gpu, .policy = "lru"}};
    start(of);
    tier_handle tier;
    tier.kind = tier_kind::gpu;
    tier.bytes = 4 * physical;
    tier.allocator = "free_list";
    tier.mover = mover = sys.spawn(fast_mover, fast);
    tier.service = serves;
    tier.probe = probe;
    tier.demotion = demotion_mode::off;
    tier.returning = returning;
    tier.device = std::make_shared<const device_tier>(device_tier{{}, serves});
    serves->serves();
    auto space = make_space(tier, tier.bytes, 0).value();
    join_tier(sys, *group, std::move(tier), {.space = std::move(space)});
    settle();
  }
  const tier_handle& parts() { return *group->tier(tier_kind::gpu); }
  const tier_actor& gpu() { return parts().tier; }

  /// As a load into the tier's device does.
  void promote(uint64_t first, size_t count) {
    auto held = hold(group->host, first, count);
    if (!held)
      return;
    caf::anon_send(parts().write_through,
                   write_through_notice{in, chain(first, count, payload), std::move(held), {}});
    settle();
  }
  /// In the tier and nowhere else.
  void only_there(uint64_t first, size_t count) {
    EXPECT_EQ(store(first, count).stored_chunks, count);
    promote(first, count);
    EXPECT_EQ(present(gpu(), first, count), count);
    forget_host(first, count);
  }
  void let_go() { // reads
    caf::anon_send(mover, open_gate{});
    settle();
  }
  double counted(const std::string& name) {
    struct summing : metrics::sample_sink {
      std::string asked;
      double sum = 0;
      void counter(std::string_view of_name, std::string_view, const metrics::labels&,
                   double value) override {
        sum += of_name == asked ? value : 0;
      }
      void gauge(std::string_view, std::string_view, const metrics::labels&, double) override {}
      void histogram(std::string_view, std::string_view, const metrics::labels&,
                     const metrics::histogram_snapshot&) override {}
    } sink;
    sink.asked = name;
    probe->collect({}, sink);
    return sink.sum;
  }
};

} // namespace terrace::actors::test
