#include "actors/supervision/shutdown.hpp"

#include "runtime/io_messages.hpp"

#include <caf/exit_reason.hpp>

#include <unistd.h>

namespace terrace::actors {

namespace {

using phase = supervisor_state::phase;

void next_phase(supervisor_pointer self);
void end_groups(supervisor_pointer self);

template <class Handle>
void await_end(supervisor_pointer self, const Handle& which) {
  self->monitor(which);
  self->state.awaited.insert(which.address());
}

void start_grace(supervisor_pointer self, uint64_t tag) {
  runtime::io_request grace;
  grace.code = runtime::io_code::timeout;
  grace.after = self->state.with.shutdown_grace;
  self->port().submit(std::move(grace), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

/// The listeners have ended, so the directory contains all connections.
void drain_connections(supervisor_pointer self) {
  self->state.now = phase::draining;
  for (const client_ptr& client : self->state.clients->all()) {
    await_end(self, client->actor);
    self->send(client->actor, drain_notice{});
  }
}

void tier_is_settled(supervisor_pointer self) {
  if (--self->state.unsettled == 0 && self->state.now == phase::settling)
    end_groups(self);
}

/// Writes what is queued for the tier, and then its index.
void settle_tier(supervisor_pointer self, const tier_parts& tier) {
  ++self->state.unsettled;
  auto close = [self, mover = tier.mover] {
    self->request(mover, caf::infinite, close_mover_request{})
        .then(
            [self](const close_mover_answer& answer) {
              if (answer.failure.code != errc::ok)
                self->state.with.warn(answer.failure.text);
              tier_is_settled(self);
            },
            [self](const caf::error&) { tier_is_settled(self); });
  };
  if (!tier.write_through) {
    close();
    return;
  }
  self->request(tier.write_through, caf::infinite, finish_writes_request{})
      .then([close](const finish_writes_answer&) { close(); }, [close](const caf::error&) { close(); });
}

/// No connection is left: write-through to the tiers below finishes.
void settle_tiers(supervisor_pointer self) {
  auto& state = self->state;
  state.now = phase::settling;
  start_grace(self, settle_tag);
  for (const auto& group : state.groups) {
    for (const tier_parts& tier : group->tiers())
      if (tier.mover)
        settle_tier(self, tier);
  }
  if (state.unsettled == 0)
    end_groups(self);
}

void end_groups(supervisor_pointer self) {
  auto& state = self->state;
  state.now = phase::ending;
  auto end = [self](const auto& which) {
    await_end(self, which);
    self->send_exit(which, caf::exit_reason::user_shutdown);
  };
  for (const preparer_actor& preparer : state.preparers)
    end(preparer);
  for (const memory_actor& memory : state.memories)
    end(memory);
  for (const auto& group : state.groups)
    for (const caf::actor& member : actors_of(*group))
      end(member);
  if (state.copiers)
    for (const copier_actor& copier : state.copiers->all())
      end(copier);
  if (state.metrics)
    end(state.metrics);
}

void next_phase(supervisor_pointer self) {
  auto& state = self->state;
  if (state.now == phase::closing_listeners)
    drain_connections(self);
  else if (state.now == phase::draining)
    settle_tiers(self);
  else if (state.now == phase::ending) {
    state.with.finished(state.clean);
    self->quit();
    return;
  }
  if (state.awaited.empty() && state.now != phase::settling)
    next_phase(self);
}

} // namespace

void drain(supervisor_pointer self) {
  auto& state = self->state;
  if (state.now != phase::serving)
    return;
  state.now = phase::closing_listeners;
  for (const listen_plan& plan : state.with.listens)
    ::unlink(plan.path.c_str());
  for (const listener_actor& listener : state.listeners) {
    await_end(self, listener);
    self->send(listener, drain_notice{});
  }
  start_grace(self, drain_tag);
  if (state.awaited.empty())
    next_phase(self);
}

void on_grace_over(supervisor_pointer self, uint64_t tag) {
  auto& state = self->state;
  if (tag == settle_tag && state.now == phase::settling) {
    state.with.warn(
        "the disk tier did not finish within daemon.shutdown_grace: objects stored last may be missing "
        "after the restart");
    end_groups(self);
  }
  if (tag != drain_tag || state.now != phase::draining)
    return;
  auto left = state.clients->all();
  state.with.warn(std::to_string(left.size()) + " connections did not finish within daemon.shutdown_grace");
  for (const client_ptr& client : left)
    self->send_exit(client->actor, caf::exit_reason::kill);
}

void on_actor_down(supervisor_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  if (state.awaited.erase(down.source) != 0) {
    if (state.awaited.empty() && state.now != phase::settling)
      next_phase(self);
    return;
  }
  if (state.now != phase::serving)
    return;
  state.clean = false;
  state.with.warn("an actor of the daemon ended unexpectedly (" + self->system().render(down.reason) +
                  "); the daemon stops");
  drain(self);
}

} // namespace terrace::actors
