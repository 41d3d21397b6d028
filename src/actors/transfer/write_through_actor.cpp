#include "actors/transfer/write_through_actor.hpp"

#include "actors/transfer/actor_credit_sink.hpp"
#include "actors/transfer/transfer_steps.hpp"
#include "coroutine/answer.hpp"
#include "storage/object_header.hpp"
#include "tier/write_credits.hpp"
#include "transfer/write_budget.hpp"
#include "transfer/write_line.hpp"
#include "transfer/write_passage.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>

namespace terrace::actors {

namespace {

struct write_through_state {
  const char* name = "writes";
  write_through_arguments with;
  std::optional<write_line> line;
  std::unordered_map<uint64_t, task<>> passages; ///< in progress, by number
  uint64_t next_passage = 0;
  std::unique_ptr<write_credits> credits;
  credit_sink_ptr sink; ///< sends to this actor
  std::unique_ptr<write_budget> budget;
  bool starting = false;                               ///< passages are being started
  std::vector<answer<finish_writes_answer>> finishing; ///< requests waiting for the last of them
};

using clock = std::chrono::steady_clock;
using metrics::refusal_reason;

using self_pointer = write_through_actor::stateful_pointer<write_through_state>;

void want_second_looks(self_pointer self) {
  if (self->state.with.second_looks)
    self->state.with.second_looks->store(true, std::memory_order_relaxed);
}

// ---- admission ----

void refuse(self_pointer self, refusal_reason why, uint64_t objects) {
  want_second_looks(self);
  self->state.with.probe->refused(why, objects);
}

/// Leaves what the tier lacks, what is admitted and what the daily budget allows.
task<error> admit(self_pointer self, write_passage& pass) {
  const auto& with = self->state.with;
  auto question = pass.probe();
  auto found = co_await ask<probe_answer>(self, with.tier, std::move(question), "disk tier");
  if (!found)
    co_return found.error();
  pass.omit_present(found->present);
  if (!pass.wants_any())
    co_return error{};

  uint64_t room_bytes = 0; // if nothing must be evicted for it, everything is admitted
  if (with.admission.rule == admission_rule::beats_victim) {
    tier_status_request status;
    auto now = co_await ask<tier_report>(self, with.tier, status, "disk tier");
    if (!now)
      co_return now.error();
    room_bytes = now->room_bytes;
  }
  if (with.admission.rule != admission_rule::always) {
    auto admission = pass.admission(with.kind, with.admission.rule, room_bytes);
    if (!admission.entries.empty()) {
      want_second_looks(self);
      auto answer = co_await ask<admit_answer>(self, with.policy, std::move(admission), "policy");
      if (!answer)
        co_return answer.error();
      if (uint64_t refused = pass.admitted(answer->admitted); refused != 0)
        refuse(self, refusal_reason::admission, refused);
    }
  }
  if (uint64_t refused = pass.pay(*self->state.budget, clock::now()); refused != 0)
    refuse(self, refusal_reason::endurance, refused);
  co_return error{};
}

// ---- writing ----

void count(self_pointer self, const write_passage::result& written) {
  const auto& probe = self->state.with.probe;
  if (written.bytes != 0)
    probe->written(written.bytes);
  if (written.away != 0)
    refuse(self, refusal_reason::degraded, written.away);
  if (written.failed != 0) {
    want_second_looks(self);
    refuse(self, refusal_reason::failed, written.failed);
  }
}

/// An error: an actor has ended, and the objects are not written.
task<error> bring_down(self_pointer self, write_passage& pass) {
  const auto& with = self->state.with;
  if (with.availability && !with.availability->writes()) {
    refuse(self, refusal_reason::degraded, pass.refuse_all());
    co_return error{};
  }
  if (with.admission.rule != admission_rule::always || with.admission.bytes_per_day != 0) {
    auto failure = co_await admit(self, pass);
    if (failure.code != errc::ok)
      co_return failure;
    if (!pass.wants_any())
      co_return error{};
  }
  auto wanted = pass.space();
  auto acquired = co_await ask<acquire_answer>(self, with.tier, std::move(wanted), "disk tier");
  if (!acquired)
    co_return acquired.error();
  if (acquired->failure.code != errc::ok) {
    want_second_looks(self);
    if (acquired->failure.code != errc::no_space) // which the tier counts
      refuse(self, refusal_reason::failed, pass.objects());
    co_return error{};
  }
  pass.take_space(*acquired, *with.memory);
  if (pass.to_write() == 0)
    co_return error{};

  auto confirm = pass.confirmation();
  auto confirmed = co_await ask<confirm_answer>(self, with.host_tier, std::move(confirm), "host tier");
  if (!confirmed)
    co_return confirmed.error();
  pass.drop_cleared(confirmed->present);
  if (pass.to_write() == 0)
    co_return error{};

  auto write = pass.write(acquired->reserved, with.work);
  auto moved = co_await ask<move_answer>(self, with.mover, std::move(write), "mover of the tier");
  if (auto failure = failure_of(moved); failure.code != errc::ok)
    co_return failure;
  auto written = pass.written(moved->outcomes);
  count(self, written);
  if (written.complete.places.empty())
    co_return error{};
  auto published = co_await ask<publish_answer>(self, with.tier, std::move(written.complete), "disk tier");
  co_return published ? error{} : published.error();
}

// ---- the queue ----

void start_next(self_pointer self);

/// The holds of the notice end with the passage.
task<> write_through(self_pointer self, write_passage pass, uint64_t number) {
  auto failure = co_await bring_down(self, pass);
  auto& state = self->state;
  if (failure.code != errc::ok)
    refuse(self, refusal_reason::failed, pass.to_write());
  pass.return_unspent(*state.budget);
  state.line->done(pass);
  state.passages.erase(number);
  start_next(self);
}

void start_next(self_pointer self) {
  auto& state = self->state;
  if (std::exchange(state.starting, true))
    return; // a passage ended immediately: the loop that started it continues
  while (auto next = state.line->next()) {
    uint64_t number = state.next_passage++;
    auto& progress = state.passages[number];
    progress = write_through(self, std::move(*next), number);
    progress.start();
  }
  state.starting = false;
  if (state.line->idle())
    for (auto& waiting : std::exchange(state.finishing, {}))
      waiting.deliver({});
}

// ---- credits ----

credit_ptr credit_of(self_pointer self, uint64_t bytes) {
  return std::make_shared<write_credit>(self->state.sink, bytes);
}

/// The credit follows the arena, which may have grown or shrunk.
void fit_credits(self_pointer self) {
  auto& state = self->state;
  if (state.with.memory && state.with.waiting_bytes != UINT64_MAX)
    state.credits->set_bytes_max(state.with.memory->size() / 2);
}

caf::result<write_credit_answer> on_credit_request(self_pointer self, const write_credit_request& request) {
  fit_credits(self);
  auto reply = make_answer<write_credit_answer>(self);
  self->state.credits->ask(
      request.bytes, request.context, [self, reply, bytes = request.bytes](errc code) mutable {
        write_credit_answer answer;
        if (code == errc::ok)
          answer.credit = credit_of(self, bytes);
        else
          answer.failure = {
              code, "the request ended while it waited for the disk: objects not yet written fill half of "
                    "host memory, their maximum"};
        reply.deliver(std::move(answer));
      });
  return reply.promise();
}

void on_notice(self_pointer self, write_through_notice notice) {
  if (!notice.credit) {
    uint64_t bytes = 0;
    for (uint64_t each : notice.objects->payload_bytes)
      bytes += physical_bytes_for(each);
    fit_credits(self);
    if (!self->state.credits->try_take(bytes))
      return;
    notice.credit = credit_of(self, bytes);
  }
  self->state.line->push(std::move(notice));
  start_next(self);
}

auto on_finish_writes(self_pointer self) {
  auto reply = make_answer<finish_writes_answer>(self);
  self->state.finishing.push_back(reply);
  start_next(self);
  return reply.promise();
}

void on_credit_back(self_pointer self, const write_credit_notice& notice) {
  fit_credits(self);
  self->state.credits->give_back(notice.bytes);
}

write_through_actor::behavior_type
write_through_behavior(self_pointer self, const std::shared_ptr<write_through_arguments>& arguments) {
  auto& state = self->state;
  state.with = *arguments;
  state.line.emplace(state.with.bytes_in_progress);
  state.credits = std::make_unique<write_credits>(state.with.waiting_bytes);
  state.sink = std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self));
  state.budget = std::make_unique<write_budget>(state.with.admission.bytes_per_day, clock::now());
  return {
      [self](const write_through_notice& notice) { on_notice(self, notice); },
      [self](finish_writes_request) { return on_finish_writes(self); },
      [self](const write_credit_request& request) { return on_credit_request(self, request); },
      [self](const write_credit_notice& notice) { on_credit_back(self, notice); },
      [self](sweep_notice) { self->state.credits->sweep(); },
  };
}

} // namespace

write_through_actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments) {
  return system.spawn(write_through_behavior,
                      std::make_shared<write_through_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
