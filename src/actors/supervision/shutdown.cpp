#include "actors/supervision/supervisor_state.hpp"

#include "base/printable.hpp"
#include "base/tier_properties.hpp"
#include "runtime/io_port.hpp"

#include <caf/exit_reason.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace terrace::actors {

namespace {

using phase = shutdown_order::phase;

/// Makes the present phase wait until this actor has ended.
template <class Handle>
void await_end(supervisor_pointer self, const Handle& which) {
  self->monitor(which);
  if (self->state.awaited.insert(which.address()).second)
    self->state.order.await();
}

void start_grace(supervisor_pointer self, uint64_t tag) {
  runtime::io_request grace;
  grace.code = runtime::io_code::timeout;
  grace.after = self->state.with.shutdown_grace;
  self->port().submit(std::move(grace), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

/// The listeners have ended, so the directory contains all connections.
void drain_connections(supervisor_pointer self) {
  for (const client_ptr& client : self->state.with.clients->all()) {
    await_end(self, client->actor);
    self->send(client->actor, drain_notice{});
  }
}

void go_on(supervisor_pointer self);

void on_settled(supervisor_pointer self) {
  self->state.order.arrived(phase::settling);
  go_on(self);
}

/// Writes what is queued for the tier, and then its index.
void settle_tier(supervisor_pointer self, const tier_handle& tier) {
  self->state.order.await();
  auto close = [self, mover = tier.mover] {
    self->request(mover, caf::infinite, close_mover_request{})
        .then(
            [self](const close_mover_answer& answer) {
              if (answer.failure.code != errc::ok)
                self->state.with.warn(answer.failure.text);
              on_settled(self);
            },
            [self](const caf::error&) { on_settled(self); });
  };
  if (!tier.write_through) {
    close();
    return;
  }
  self->request(tier.write_through, caf::infinite, finish_writes_request{})
      .then([close](const finish_writes_answer&) { close(); }, [close](const caf::error&) { close(); });
}

void settle_below(supervisor_pointer self, const trust_group& group) {
  for (const tier_handle& tier : group.tiers())
    if (tier.mover)
      settle_tier(self, tier);
}

void warn_of_losses(supervisor_pointer self, const std::string& group, std::string_view tier,
                    const write_down_answer& answer) {
  if (!answer.complete)
    self->state.with.warn(group + "not everything in " + std::string(tier) +
                          " was written to the tiers below within daemon.shutdown_grace; the rest is lost");
  for (size_t why = 0; why < refusal_reasons; ++why)
    if (const uint64_t lost = answer.done.lost[why]; lost != 0)
      self->state.with.warn(group + format_counted(lost, "object") + " in " + std::string(tier) +
                            (lost == 1 ? " was" : " were") + " not written to a tier below: " +
                            std::string(described(static_cast<refusal_reason>(why))));
}

/// Writes down what only these tiers have, fastest tier first; then the writers below finish.
void write_down(supervisor_pointer self, const std::shared_ptr<trust_group>& group,
                std::vector<const tier_handle*> left, std::chrono::steady_clock::time_point until) {
  if (self->state.order.now() != phase::settling)
    return;
  if (left.empty()) {
    settle_below(self, *group);
    on_settled(self);
    return;
  }
  const tier_handle& tier = *left.front(); // the group keeps the list
  left.erase(left.begin());
  auto next = [self, group, left = std::move(left), until] { write_down(self, group, left, until); };
  self->request(tier.tier, caf::infinite, write_down_request{until})
      .then(
          [self, group, kind = tier.kind, next](const write_down_answer& answer) {
            warn_of_losses(self, "group " + group->name + ": ", long_name(kind), answer);
            next();
          },
          [next](const caf::error&) { next(); });
}

/// Objects that only one tier has are written down first, if an eviction would have written them. Objects of
/// a GPU tier come to host memory then, which is useful only if they go on to a disk.
void settle_group(supervisor_pointer self, const std::shared_ptr<trust_group>& group) {
  const auto& tiers = group->tiers();
  auto some = [&tiers](demotion_mode mode) {
    return std::any_of(tiers.begin(), tiers.end(),
                       [mode](const tier_handle& tier) { return tier.demotion == mode; });
  };
  bool written_back = some(demotion_mode::write_back);
  std::vector<const tier_handle*> first;
  for (const tier_handle& tier : tiers)
    if (tier.returning == demotion_mode::write_back && tier.reads() &&
        (written_back || some(demotion_mode::write_through)))
      first.push_back(&tier);
  if (written_back)
    first.push_back(&tiers.front());
  if (first.empty()) {
    settle_below(self, *group);
    return;
  }
  self->state.order.await();
  // The rest of the time is for writes in progress then, and for the index.
  write_down(self, group, std::move(first),
             std::chrono::steady_clock::now() + self->state.with.shutdown_grace * 3 / 4);
}

/// No connection is left: write-through to the tiers below finishes.
void settle_tiers(supervisor_pointer self) {
  start_grace(self, settle_tag);
  for (const auto& group : self->state.groups)
    settle_group(self, group);
}

void end_groups(supervisor_pointer self) {
  auto& state = self->state;
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
  if (state.device_processes)
    end(state.device_processes);
  if (state.copiers)
    for (const auto& one : state.copiers->all())
      end(one.copier);
  if (state.metrics)
    end(state.metrics);
}

/// Begins every phase that is due.
void go_on(supervisor_pointer self) {
  auto& state = self->state;
  while (auto next = state.order.next())
    switch (*next) {
      case phase::draining: drain_connections(self); break;
      case phase::settling: settle_tiers(self); break;
      case phase::ending: end_groups(self); break;
      default: // the order has ended
        state.with.finished(state.clean);
        self->quit();
    }
}

} // namespace

void on_drain(supervisor_pointer self) {
  auto& state = self->state;
  if (!state.order.begin())
    return;
  for (const listen_plan& plan : state.with.listens)
    ::unlink(plan.path.c_str());
  for (const listener_actor& listener : state.listeners) {
    await_end(self, listener);
    self->send(listener, drain_notice{});
  }
  start_grace(self, drain_tag);
  go_on(self);
}

void on_grace_over(supervisor_pointer self, uint64_t tag) {
  auto& state = self->state;
  if (tag == settle_tag && state.order.cut_short(phase::settling)) {
    state.with.warn(
        "the tiers below did not finish within daemon.shutdown_grace: objects stored last may be missing "
        "after the restart");
    go_on(self);
  }
  if (tag != drain_tag || state.order.now() != phase::draining)
    return;
  auto left = state.with.clients->all();
  state.with.warn(format_counted(left.size(), "connection") + " did not finish within daemon.shutdown_grace");
  for (const client_ptr& client : left)
    self->send_exit(client->actor, caf::exit_reason::kill);
}

void on_actor_down(supervisor_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  if (state.awaited.erase(down.source) != 0) {
    state.order.arrived(state.order.now());
    go_on(self);
    return;
  }
  if (!state.order.serving())
    return;
  state.clean = false;
  state.with.warn("an actor of the daemon ended unexpectedly (" + self->system().render(down.reason) +
                  "); the daemon stops");
  on_drain(self);
}

} // namespace terrace::actors
