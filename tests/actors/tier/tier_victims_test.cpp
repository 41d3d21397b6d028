// How a tier looks for victims: what it asks of the policy, and what it lets go.
#include "actors/tier/tier_actor.hpp"

#include "index/object_header.hpp"
#include "objects.hpp"
#include "tests/support/actor_fixture.hpp"

#include <optional>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace tier_victims_test {

constexpr uint64_t page = 4096;
constexpr uint64_t small = physical_bytes_for(page); // of an object of one page

/// Names objects in a given order, as many as make the bytes, and keeps what it was asked for.
struct scripted_policy {
  std::vector<uint64_t> order;
  std::vector<uint64_t> asked;
};

caf::behavior scripted(const std::shared_ptr<scripted_policy>& script) {
  return {
      [](const policy_notes&) {},
      [](notes_mark mark) { return mark; },
      [script](const victim_request& request) {
        script->asked.push_back(request.bytes);
        victim_answer answer;
        for (uint64_t number : script->order) {
          if (answer.bytes >= request.bytes)
            break;
          answer.victims.push_back(to_entry_key(key_of(number)));
          answer.above.emplace_back();
          answer.bytes += small;
        }
        return answer;
      },
  };
}

/// A tier of 64 small objects, full.
struct TierVictims : terrace::test::actor_fixture {
  std::shared_ptr<scripted_policy> script = std::make_shared<scripted_policy>();
  std::shared_ptr<metrics::tier_probe> probe = std::make_shared<metrics::tier_probe>();
  tier_actor tier;

  TierVictims() {
    auto policy = sys.spawn([script = script] { return scripted(script); });
    tier_arguments arguments;
    arguments.config.kind = tier_kind::host;
    arguments.start.space =
        make_allocator("free_list", {.capacity_bytes = 64 * small, .boundary_bytes = 16 * small}).value();
    arguments.policy = caf::actor_cast<policy_actor>(policy);
    arguments.probe = probe;
    tier = spawn_tier(sys, std::move(arguments));
    publish(acquire(chain(0, 64)));
  }
  void TearDown() override {
    caf::anon_send_exit(caf::actor_cast<caf::actor>(tier), caf::exit_reason::user_shutdown);
    settle();
    tier = nullptr;
  }

  template <class R, class M>
  std::optional<R> ask(M message) {
    auto answer = std::make_shared<std::optional<R>>();
    sys.spawn(
        [this, answer, message = std::make_shared<M>(std::move(message))](caf::event_based_actor* self) {
          self->request(tier, caf::infinite, std::move(*message)).then([answer](const R& value) {
            *answer = value;
          });
        });
    settle();
    return std::move(*answer);
  }
  acquire_answer acquire(const batch_ptr& objects, bool may_wait = true) {
    acquire_request request;
    request.objects = objects;
    request.may_wait = may_wait;
    return ask<acquire_answer>(std::move(request))
        .value_or(acquire_answer{{errc::busy, "it waits"}, {}, {}, {}, {}});
  }
  publish_answer publish(const acquire_answer& acquired, bool hold = false) {
    return *ask<publish_answer>(publish_request{acquired.places, hold, 0});
  }
  tier_report report() { return *ask<tier_report>(tier_status_request{}); }

  /// All objects, neighbours far from each other: multiples of 16 first, then of 4, then the rest.
  static std::vector<uint64_t> scattered() {
    std::vector<uint64_t> order;
    for (uint64_t step : {16, 4, 1})
      for (uint64_t i = 0; i < 64; i += step)
        if (step == 16 || i % (step * 4) != 0)
          order.push_back(i);
    return order;
  }
};

TEST_F(TierVictims, AsksForFourTimesTheBytesWhenThoseNamedAreNoRun) {
  script->order = scattered();
  auto taken = acquire(chain(100, 1, 4 * small - object_header_bytes));
  EXPECT_EQ(taken.failure.code, errc::ok) << taken.failure.text;
  EXPECT_EQ(script->asked, (std::vector<uint64_t>{4 * small, 16 * small, 64 * small}));
  EXPECT_EQ(report().evictions, 4u) << "many are named, those leave that make the run";
  EXPECT_EQ(report().usage.used_bytes, 64 * small);
}

TEST_F(TierVictims, AsksOnceWhenThoseNamedAreEnough) {
  script->order = {0, 1, 2, 3, 4};
  EXPECT_EQ(acquire(chain(100, 1, 4 * small - object_header_bytes)).failure.code, errc::ok);
  EXPECT_EQ(script->asked, (std::vector<uint64_t>{4 * small}));
  EXPECT_EQ(report().evictions, 4u);
}

TEST_F(TierVictims, AsksForWhatIsMissingAlone) {
  script->order = {8, 9, 10, 11};
  acquire(chain(200, 1, 2 * small - object_header_bytes)); // dropped: its two are free again
  script->asked.clear();
  script->order = {10, 11};
  EXPECT_EQ(acquire(chain(100, 1, 4 * small - object_header_bytes)).failure.code, errc::ok);
  EXPECT_EQ(script->asked, (std::vector<uint64_t>{2 * small}));
}

TEST_F(TierVictims, LetsNothingGoWhenAllThatMayLeaveIsNotEnough) {
  for (uint64_t i = 0; i < 64; i += 2)
    script->order.push_back(i);
  auto taken = acquire(chain(100, 1, 2 * small - object_header_bytes), false);
  EXPECT_EQ(taken.failure.code, errc::no_space);
  EXPECT_EQ(script->asked, (std::vector<uint64_t>{2 * small, 8 * small, 32 * small, 128 * small}));
  EXPECT_EQ(report().evictions, 0u);
}

TEST_F(TierVictims, ReportsWhatItsAllocatorCounts) {
  script->order = {0, 16, 32};
  acquire(chain(300, 3)); // dropped at once
  auto usage = report().usage;
  EXPECT_EQ(usage.free_bytes, 3 * small);
  EXPECT_EQ(usage.free_runs, 3u);
  EXPECT_EQ(usage.largest_free_run, small);
  EXPECT_EQ(usage.fragmentation(), 0);
  script->order.clear();
  acquire(chain(400, 1, 2 * small)); // not enough of a run, and nothing else is named
  EXPECT_EQ(report().usage.whole_bytes, 3 * small);
}

// ---- segments that come and go ----

TEST_F(TierVictims, ServesWhoWaitedWhenTheArenaGrows) {
  acquire_request request;
  request.objects = chain(100, 16);
  auto answer = std::make_shared<std::optional<acquire_answer>>();
  sys.spawn([this, answer, request](caf::event_based_actor* self) {
    self->request(tier, caf::infinite, request).then([answer](const acquire_answer& value) {
      *answer = value;
    });
  });
  settle();
  EXPECT_FALSE(*answer);
  caf::anon_send(tier, grow_notice{16 * small, 0});
  settle();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failure.code, errc::ok);
  EXPECT_EQ((*answer)->places[0].offset, 64 * small);
  EXPECT_EQ(report().usage.capacity_bytes, 80 * small);
}

TEST_F(TierVictims, ARetiredSegmentLosesWhatNobodyHoldsAndWaitsForTheRest) {
  probe_request look;
  look.objects = chain(50, 2);
  look.hold = true;
  auto held = ask<probe_answer>(look)->held;
  auto emptied = std::make_shared<std::optional<retire_answer>>();
  sys.spawn([this, emptied](caf::event_based_actor* self) {
    self->request(tier, caf::infinite, retire_request{{48 * small, 16 * small}})
        .then([emptied](const retire_answer& value) { *emptied = value; });
  });
  settle();
  EXPECT_EQ(report().objects, 50u);
  EXPECT_FALSE(*emptied) << "two are held";
  look.hold = false;
  EXPECT_EQ(ask<probe_answer>(look)->present.count(), 2u) << "and served";
  held.reset();
  settle();
  ASSERT_TRUE(*emptied);
  EXPECT_EQ((*emptied)->failure.code, errc::ok);
  EXPECT_EQ(ask<probe_answer>(look)->present.count(), 0u);
  EXPECT_EQ(report().usage.capacity_bytes, 48 * small);
  EXPECT_EQ(report().objects, 48u);
}

TEST_F(TierVictims, WhatIsBeingWrittenIntoARetiredSegmentLeavesWhenItIsDone) {
  script->order = {48, 49};
  auto writing = acquire(chain(100, 2));
  ASSERT_EQ(writing.places[0].offset, 48 * small);
  auto emptied = std::make_shared<std::optional<retire_answer>>();
  sys.spawn([this, emptied](caf::event_based_actor* self) {
    self->request(tier, caf::infinite, retire_request{{48 * small, 16 * small}})
        .then([emptied](const retire_answer& value) { *emptied = value; });
  });
  settle();
  EXPECT_FALSE(*emptied);
  auto held = publish(writing, true).held;
  settle();
  EXPECT_FALSE(*emptied);
  held.reset();
  settle();
  EXPECT_TRUE(*emptied);
  EXPECT_EQ(report().objects, 48u);
}

TEST_F(TierVictims, RefusesToRetireWhatIsNoSegment) {
  auto answer = ask<retire_answer>(retire_request{{small, 16 * small}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->failure.code, errc::bad_request);
}

} // namespace tier_victims_test
