#include "actors/tier/tier_shell.hpp"

#include <caf/send.hpp>

#include <cassert>
#include <utility>

namespace terrace::actors {

namespace {

/// Sends a mark after every few batches of notes. When it returns, the notes kept since are sent.
void send_mark(tier_pointer self) {
  self->request(self->state.policy, caf::infinite, notes_mark{})
      .then(
          [self](notes_mark) {
            self->state.changes.marked();
            send_kept_notes(self);
          },
          [](const caf::error&) {}); // the policy has ended
}

} // namespace

void send_kept_notes(tier_pointer self) {
  auto kept = self->state.changes.take_kept_notes();
  for (policy_notes& batch : kept.batches)
    self->send(self->state.policy, std::move(batch));
  if (kept.mark)
    send_mark(self);
}

namespace {

/// Returns false if nothing has changed.
bool send_news(tier_pointer self) {
  auto& state = self->state;
  auto news = state.changes.drain_news();
  const bool some = !news.empty();
  if (auto events = state.objects().events().take(); !events.empty())
    state.log->append(events);
  auto space = std::exchange(state.published_in, nullptr);
  if (!news.records.empty())
    self->send(state.keeper, index_changes{std::move(news.records), std::move(space), {}});
  if (!news.notes.notes.empty())
    self->send(state.policy, std::move(news.notes));
  if (news.mark)
    send_mark(self);
  if (news.retired_objects != 0)
    state.probe->evicted(state.objects().departures().stages() ? metrics::eviction_reason::staging
                                                               : metrics::eviction_reason::retired,
                         news.retired_objects, news.retired_bytes);
  if (!news.freed.empty())
    self->send(state.space, free_notice{std::move(news.freed)});
  if (news.evictable)
    self->send(state.space, evictable_notice{});
  state.probe->holds(state.objects().table().published());
  state.probe->leased(state.objects().leased_bytes());
  if (news.changed)
    serve_quotas(self);
  return some;
}

/// Requests that wait for transfers must not wait for the leases that follow them. Only the ledger sees a lease grow.
void await_growth_if_needed(tier_pointer self) {
  auto& state = self->state;
  if (!state.leases || !state.changes.waits_for_transfers() || std::exchange(state.awaits_growth, true))
    return;
  state.leases->notify_of_growth([weak = caf::actor_cast<caf::actor_addr>(self)] {
    if (auto tier = caf::actor_cast<caf::actor>(weak))
      caf::anon_send(tier, leases_grew_notice{});
  });
}

} // namespace

void on_leases_grew(tier_pointer self) {
  assert(self->state.awaits_growth);
  self->state.awaits_growth = false;
}

void after_turn(tier_pointer self) {
  bool changed = false;
  do {
    bring_down_due(self);
    await_growth_if_needed(self); // before the news look at the leases: so none is missed in between
    changed = send_news(self) || changed;
  } while (step_round(self));
  if (changed)
    check_now_and_then(self);
}

} // namespace terrace::actors
