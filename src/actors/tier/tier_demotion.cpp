#include "actors/tier/tier_shell.hpp"

#include "actors/resp/value_transfer.hpp"
#include "runtime/answer.hpp"
#include "tier/objects/object_departures.hpp"
#include "tier/policy/second_use.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace terrace::actors {

namespace {

using demotion_clock = std::chrono::steady_clock;
using ended_demotion = std::function<void(const demotion&)>;

/// The hold of a batch; the tier is told of its end.
class demotion_hold final : public release_sink {
 public:
  demotion_hold(caf::actor tier, uint64_t demotion, size_t batch)
      : tier_(std::move(tier)), demotion_(demotion), batch_(batch) {}
  void release(std::vector<object_id> held) override {
    caf::anon_send(tier_, written_notice{demotion_, batch_, std::move(held)});
  }
  void abandon(std::vector<object_id>) override {} // the batch reserves nothing

 private:
  caf::actor tier_;
  uint64_t demotion_;
  size_t batch_;
};

void count_demotion(tier_pointer self, const demotion_counts& done) {
  const auto& probe = self->state.probe;
  if (done.objects != 0)
    probe->demoted(done.objects, done.bytes);
  for (size_t i = 0; i < refusal_reasons; ++i)
    if (done.lost[i] != 0)
      probe->not_demoted(static_cast<refusal_reason>(i), done.lost[i]);
}

/// Returns the objects that one of the tiers lacks and that no tier further down has.
std::vector<demoted_object> lacking(std::vector<demoted_object> objects,
                                    const std::vector<tier_joined_notice>& to,
                                    const std::vector<tier_joined_notice>& all_below) {
  object_batch all;
  for (const demoted_object& object : objects)
    all.keys.push_back(object.key);
  std::vector<bool> lacks(objects.size());
  for (const tier_joined_notice& each : to) {
    auto present = each.tier->index->try_probe(all.keys);
    for (size_t i = 0; i < lacks.size(); ++i)
      lacks[i] = lacks[i] || !present || !present->test(i); // a changing index: the tier is asked
  }
  for (const tier_joined_notice& each : all_below) {
    if (each.by || !each.tier->reads())
      continue;
    auto present = each.tier->index->try_probe(all.keys);
    for (size_t i = 0; present && i < lacks.size(); ++i)
      lacks[i] = lacks[i] && !present->test(i);
  }
  size_t kept = 0;
  for (size_t i = 0; i < objects.size(); ++i)
    if (lacks[i])
      objects[kept++] = objects[i];
  objects.resize(kept);
  return objects;
}

void end_if_over(tier_pointer self, uint64_t number) {
  auto& demotions = self->state.below.demotions;
  auto found = demotions.find(number);
  if (found == demotions.end() || !found->second.progress.over())
    return;
  auto ended = std::move(found->second);
  demotions.erase(found);
  count_demotion(self, ended.progress.tally());
  self->state.objects().departures().keep(ended.progress.in_use());
  ended.over(ended.progress);
}

void send_batch(tier_pointer self, uint64_t number, size_t batch, demote_request request,
                const write_through_actor& to) {
  auto answered = [self, number, batch](const demote_answer& answer) {
    if (auto found = self->state.below.demotions.find(number); found != self->state.below.demotions.end())
      found->second.progress.answered(batch, answer);
    end_if_over(self, number);
  };
  self->request(to, caf::infinite, std::move(request)).then(answered, [answered](const caf::error&) {
    answered({{errc::internal, "the write-through of a tier has ended"}, {}, false});
  });
}

/// A store that machines share names values of Redis clients by a key of this run, so nobody finds them after its end.
bool is_useless_after_the_end(const space_ptr& space, const std::vector<tier_joined_notice>& to) {
  return resp::is_value_space(space->spec) && std::ranges::all_of(to, [](const tier_joined_notice& each) {
           return static_cast<bool>(each.tier->store);
         });
}

/// Writes the objects, in the order of their chains, to the tiers that lack them. Returns false if there are
/// none; `over` is then not called. `at_end`: the daemon ends.
bool write_objects(tier_pointer self, const std::vector<object_id>& ids,
                   const std::vector<tier_joined_notice>& to, demotion_turn turn, ended_demotion over,
                   bool at_end = false) {
  auto& state = self->state;
  auto objects = lacking(state.objects().departures().describe(ids), to, state.below.all);
  if (objects.empty())
    return false;
  bool by_chain = false; // a tier may refuse objects by their value
  uint64_t bytes_max = UINT64_MAX;
  for (const tier_joined_notice& each : to) {
    by_chain = by_chain || each.tier->admission.rule != admission_rule::always;
    bytes_max = std::min(bytes_max, each.tier->write_bytes_together);
  }
  auto batches = batches_of(objects, by_chain, bytes_max);
  auto homeless = [&](const demotion_batch& batch) {
    const space_ptr space = state.objects().departures().origins().space(batch.space);
    if (!space) // published before origins were kept
      state.probe->not_demoted(refusal_reason::failed, batch.places.size());
    return !space || (at_end && is_useless_after_the_end(space, to));
  };
  std::erase_if(batches, homeless);
  if (batches.empty())
    return false;
  uint64_t number = state.below.next++;
  state.below.demotions.emplace(number, tiers_below::descent{demotion(batches, to.size()), std::move(over)});
  for (size_t i = 0; i < batches.size(); ++i) {
    demotion_batch& batch = batches[i];
    state.objects().departures().begin_write(batch.places);
    auto sink = std::make_shared<demotion_hold>(caf::actor_cast<caf::actor>(self), number, i);
    demote_request request;
    request.space = state.objects().departures().origins().space(batch.space);
    request.objects = batch.objects;
    request.held = std::make_shared<object_hold>(std::move(sink), std::move(batch.places));
    request.turn = turn;
    for (const tier_joined_notice& each : to)
      send_batch(self, number, i, request, each.by);
  }
  return true;
}

/// The objects that were used a second time. Of the others it is remembered that the tiers get none of them.
std::vector<object_id> used_twice(tier_pointer self, std::vector<object_id> ids,
                                  const std::vector<tier_joined_notice>& to) {
  auto& objects = self->state.objects();
  auto used = objects.departures().uses().used_twice(ids);
  auto next = used.begin();
  for (object_id id : ids)
    if (next != used.end() && *next == id)
      ++next;
    else if (const resident* object = objects.table().get(id))
      for (const tier_joined_notice& each : to)
        objects.events().add_refusal(object->name(), each.tier->kind, refusal_reason::second_use);
  return used;
}

/// Before objects leave, writes all of them to the tiers below that get evicted objects. Tiers that get
/// objects at their second use are sent those that were used, because they may have lost them since (decision
/// 088). Returns false if nothing is sent.
bool write_what_leaves(tier_pointer self, const std::vector<object_id>& ids, std::function<void()> over) {
  const auto& below = self->state.below;
  auto left = std::make_shared<size_t>(0);
  auto ended = [left, over = std::move(over)](const demotion&) {
    if (--*left == 0)
      over();
  };
  if (auto to = below.with(demotion_mode::write_back); !to.empty())
    *left += write_objects(self, ids, to, demotion_turn::first, ended) ? 1 : 0;
  if (auto to = below.with(demotion_mode::selective); !to.empty())
    if (auto used = used_twice(self, ids, to); !used.empty())
      *left += write_objects(self, used, to, demotion_turn::first, ended) ? 1 : 0;
  return *left != 0;
}

// ---- at the end ----

constexpr size_t written_down_together = 512;

struct write_down_walk {
  uint32_t next = 0; ///< index of the next slot
  write_down_request limits;
  answer<write_down_answer> reply;
  demotion_counts tally{};
};

void write_more_down(tier_pointer self, const std::shared_ptr<write_down_walk>& walk) {
  auto to = self->state.below.with(demotion_mode::write_back);
  while (!to.empty()) {
    if (demotion_clock::now() >= walk->limits.until) {
      walk->reply.deliver({{}, false, walk->tally});
      return;
    }
    auto ids = self->state.objects().departures().published_from(walk->next, written_down_together);
    if (ids.empty())
      break;
    auto next = [self, walk](const demotion& ended) {
      walk->tally.add(ended.tally());
      write_more_down(self, walk);
    };
    if (write_objects(self, ids, to, demotion_turn::first, next, true))
      return;
  }
  walk->reply.deliver({{}, true, walk->tally});
}

} // namespace

void on_tier_joined(tier_pointer self, const tier_joined_notice& notice) {
  auto& state = self->state;
  assert(state.below.all.size() < tiers_max); // each tier joins once
  state.below.all.push_back(notice);
  if (!notice.by)
    return;
  auto& departures = state.objects().departures();
  if (needs_origins(notice.mode)) {
    departures.origins().keep();
    departures.write_first();
  }
  if (notice.mode == demotion_mode::selective)
    departures.uses().watch();
}

bool bring_victims_down(tier_pointer self, std::function<void()> over) {
  auto& state = self->state;
  if (!state.below.get_what_leaves())
    return false;
  auto ids = state.changes.begin_demotion();
  std::reverse(ids.begin(), ids.end()); // the end of a chain is the first victim
  auto since = demotion_clock::now();
  return write_what_leaves(self, ids, [self, since, over = std::move(over)] {
    self->state.probe->waited_for_demotion(demotion_clock::now() - since);
    over();
  });
}

void bring_down_due(tier_pointer self) {
  auto& state = self->state;
  if (auto to = state.below.with(demotion_mode::selective); !to.empty())
    if (auto used = state.objects().departures().uses().take(); !used.empty())
      write_objects(self, used, to, demotion_turn::if_credit, [self](const demotion& ended) {
        self->state.objects().departures().uses().forget(ended.not_written());
      });
  auto leaving = state.objects().departures().take_leaving();
  if (leaving.empty())
    return;
  auto leave = [self, leaving] { self->state.objects().departures().leave_now(leaving); };
  if (!write_what_leaves(self, leaving, leave))
    state.objects().departures().leave_now(leaving);
}

void on_written(tier_pointer self, const written_notice& notice) {
  auto& state = self->state;
  auto freed = state.objects().release(notice.ids);
  if (auto found = state.below.demotions.find(notice.demotion); found != state.below.demotions.end())
    found->second.progress.released(notice.batch);
  state.changes.free(freed);
  end_if_over(self, notice.demotion);
}

caf::result<write_down_answer> on_write_down(tier_pointer self, const write_down_request& request) {
  auto reply = make_answer<write_down_answer>(self);
  auto promise = reply.promise();
  write_more_down(self, std::make_shared<write_down_walk>(write_down_walk{0, request, std::move(reply)}));
  return promise;
}

} // namespace terrace::actors
