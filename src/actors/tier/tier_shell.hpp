#pragma once

#include "actors/interfaces.hpp"
#include "actors/tier/tier_actor.hpp"
#include "actors/transfer/tier_handle.hpp"
#include "memory/teardown.hpp"
#include "runtime/turn_times.hpp"
#include "runtime/turns.hpp"
#include "tier/objects/demotion.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/tier_changes.hpp"
#include "tier/quota/quota_line.hpp"
#include "tier/space/allocation_queue.hpp"

#include <algorithm>
#include <caf/actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace terrace::actors {

// The tiers below a tier that get its objects, and the objects in transit to them. Part of the tier's actor.

struct tiers_below {
  std::vector<tier_joined_notice> all;

  struct descent {
    demotion progress;
    std::function<void(const demotion&)> over;
  };
  std::map<uint64_t, descent> demotions; ///< descents in progress, by number
  uint64_t next = 0;

  std::vector<tier_joined_notice> with(demotion_mode mode) const {
    std::vector<tier_joined_notice> some;
    for (const tier_joined_notice& each : all)
      if (each.mode == mode && each.by)
        some.push_back(each);
    return some;
  }
  /// Whether a tier below gets evicted objects, all or some of them.
  bool get_what_leaves() const {
    return std::any_of(all.begin(), all.end(),
                       [](const tier_joined_notice& each) { return needs_origins(each.mode) && each.by; });
  }
};

// A release_sink that sends messages to a tier's actor.

/// Safe on any thread. Keeps the actor's memory alive, not the actor: after its end the messages are dropped.
class actor_release_sink final : public release_sink {
 public:
  /// `ends` goes through holds of many objects away from the workers; null: the caller does.
  explicit actor_release_sink(caf::actor tier, teardown_ptr ends = nullptr)
      : tier_(std::move(tier)), ends_(std::move(ends)) {}
  void release(std::vector<object_id> held) override {
    caf::anon_send(tier_, release_notice{std::move(held)});
  }
  void release_places(std::vector<object_place> held) override {
    auto end = [tier = tier_, held = std::move(held)] {
      if (auto ids = ids_of(held); !ids.empty())
        caf::anon_send(tier, release_notice{std::move(ids)});
    };
    if (ends_)
      ends_->run(std::move(end));
    else
      end();
  }
  void abandon(std::vector<object_id> reserved) override {
    caf::anon_send(tier_, abandon_notice{std::move(reserved)});
  }

 private:
  caf::actor tier_;
  teardown_ptr ends_;
};

/// The next step of the round of eviction in progress.
enum class round_step : uint8_t {
  none,  ///< there is none: begins the next one
  ask,   ///< asks the policy for victims
  wait,  ///< nothing, until the policy answers or the victims have been written to the tiers below
  evict, ///< evicts the chosen victims, if any
  end,   ///< ends if it has enough or has failed; else asks again
};

/// The state of a tier's actor. Its parts, the files of this folder that include this, share it; each has
/// some of its requests.
struct tier_shell {
  const char* name = "tier";
  tier_changes changes;
  long_notices line;     ///< notices not yet applied; a `next_part_notice` is in flight unless it is empty
  release_sink_ptr sink; ///< sink of its holds and reservations; sends to this actor
  allocator_actor space;
  policy_actor policy;
  index_keeper keeper; ///< set for a durable tier
  tiers_below below;   ///< tiers below that get its objects
  std::shared_ptr<metrics::tier_probe> probe;
  std::shared_ptr<event_log> log;             ///< log for subscribers; null in tests
  std::unique_ptr<quota_line> quota;          ///< null: tenants have no quotas
  space_ptr published_in;                     ///< the space of what this turn has published
  std::shared_ptr<eviction_round> next_round; ///< the allocator's round until it begins
  round_step step = round_step::none;         ///< see tier_round.cpp
  table_totals::sum granted;                  ///< extents that the allocator has given out since the start
  ledger_ptr leases;                          ///< null: leases are not charged
  bool awaits_growth = false;                 ///< a `leases_grew_notice` will come when leases hold more
  struct {
    uint64_t walk = 0;      ///< number of the last walk
    bool asked = false;     ///< an operator asked for it
    uint64_t changes = 0;   ///< changes since the last slice
    bool slice_due = false; ///< a slice is due, or in progress
  } check;                  ///< see check_slices.cpp

  residency& objects() { return changes.objects(); }
};

using tier_pointer = caf::stateful_actor<tier_shell, runtime::turns<runtime::short_turns<tier_actor::base>>>*;

/// Runs after each message by itself: sends the news of what the turn has changed, and goes on with the round of eviction.
/// So the policy, the allocator and the journals know everything before the next turn.
void after_turn(tier_pointer self);

/// Sends the notes kept since the policy's last mark. A request to the policy must follow all earlier events.
void send_kept_notes(tier_pointer self);

/// Called when leases hold more: `after_turn` looks whether they alone hold now what requests wait for.
void on_leases_grew(tier_pointer self);

/// Reserves space for absent objects, which the allocator grants all at once; the answer may wait for
/// eviction.
caf::result<acquire_answer> on_acquire(tier_pointer self, const acquire_request& request);

/// A round of eviction: the policy names victims until the allocator, or a tenant at its bound, has the room that it asks
/// for. Takes the next step, after the news of the turn were sent: so the policy is up to date when it is asked, and for
/// whoever gets the space. Returns true if there may be more news and another step.
bool step_round(tier_pointer self);

/// The tenant whose bound a request counts against, and the bytes; tenant 0: none.
struct quota_charge {
  tenant_id tenant{};
  uint64_t bytes = 0;
};
quota_charge charge_of(tier_pointer self, const acquire_request& request, const residency::need& wanted);

/// Continues, now or later, once the bytes are booked for the tenant, or with the error that refuses the
/// request. May evict objects of the tenant.
void within_quota(tier_pointer self, const quota_charge& charge, const acquire_request& request,
                  std::function<void(const error&)> go_on);

/// Called when booked bytes are charged, or not needed.
void unbook(tier_pointer self, const quota_charge& charge);

/// Called when something was freed or became evictable, or leases alone hold what transfers held.
void serve_quotas(tier_pointer self);
/// Called when the quotas have changed.
void on_quotas_changed(tier_pointer self);

/// The next round for a tenant at its bound; null: none is needed.
std::shared_ptr<eviction_round> next_own_round(tier_pointer self);
/// Ends a round for a tenant.
void end_own_round(tier_pointer self, eviction_round& ended);

// Writes objects of a tier to the tiers below: victims before they are evicted, objects that leave with their
// segment or at the end, and objects used for the second time.
//
// Objects are written from their own extents, so this needs no memory and never waits for anything that waits
// for memory (decision 045). Part of the tier's actor.

/// A tier has joined below this one.
void on_tier_joined(tier_pointer self, const tier_joined_notice& notice);

/// Writes the victims of the round to the tiers below that get evicted objects. Tiers that get objects at
/// their second use are sent the victims that were used. Returns false if there are none or these tiers have
/// all of them, so that nothing has to be awaited. Otherwise calls `over` when they have been written, or
/// cannot be.
bool bring_victims_down(tier_pointer self, std::function<void()> over);

/// Writes objects used for the second time, and objects that leave with their segment. Part of
/// `after_turn`.
void bring_down_due(tier_pointer self);

/// Called when the hold of a batch has ended.
void on_written(tier_pointer self, const written_notice& notice);

/// Writes everything that the tiers below which get evicted objects lack.
caf::result<write_down_answer> on_write_down(tier_pointer self, const write_down_request& request);

// Checks of a tier: its index, and the same objects at its policy and its allocator
// (tier/objects/tier_check.hpp).

/// Checks the next objects in this turn, and answers when the policy and the allocator have.
caf::result<check_tier_answer> on_check(tier_pointer self, const check_tier_request& request);
check_held_answer on_check_held(tier_pointer self, const check_held_request& request);
void on_end_check(tier_pointer self, const end_check_notice& notice);

/// In builds that check all the time, called after turns with changes: now and then the next slice is due. A
/// difference ends the process.
void check_now_and_then(tier_pointer self);
void on_check_slice(tier_pointer self);

} // namespace terrace::actors
