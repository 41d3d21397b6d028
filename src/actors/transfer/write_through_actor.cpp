#include "actors/transfer/write_through_actor.hpp"

#include "actors/tier/tiers_below.hpp"
#include "actors/transfer/actor_credit_sink.hpp"
#include "actors/transfer/transfer_steps.hpp"
#include "runtime/answer.hpp"
#include "runtime/io_messages.hpp"
#include "transfer/credit_issuer.hpp"
#include "transfer/write_admission.hpp"
#include "transfer/write_line.hpp"

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
  std::optional<write_admission> admission;
  std::optional<credit_issuer> credits;
  std::vector<write_through_actor>
      onward;            ///< into host memory: of tiers further down that get what arrives there
  bool starting = false; ///< passages are being started
  bool timing = false;   ///< replaceable objects will be written
  std::vector<answer<finish_writes_answer>> finishing; ///< requests waiting for the last of them
};

using clock = std::chrono::steady_clock;
using metrics::refusal_reason;

using interface = write_through_actor::extend<caf::reacts_to<runtime::io_done>>;
using write_through_pointer = caf::stateful_actor<write_through_state, runtime::homed<interface::base>>*;

// ---- admission ----

static_assert(metrics::refusal_reasons == demotion_failures &&
              static_cast<size_t>(refusal_reason::no_room) == static_cast<size_t>(demotion_failure::no_room));

void refuse(write_through_pointer self, write_passage& pass, refusal_reason why, uint64_t objects) {
  self->state.admission->lacks();
  self->state.with.probe->refused(why, objects);
  pass.told().done.lose(static_cast<demotion_failure>(why), objects);
}

/// Leaves what the tier lacks, what is admitted and what the daily budget allows.
task<error> admit(write_through_pointer self, write_passage& pass) {
  const auto& with = self->state.with;
  auto question = pass.probe();
  auto found = co_await ask<probe_answer>(self, with.tier, std::move(question), "tier below");
  if (!found)
    co_return found.error();
  pass.omit_present(found->present);
  if (!pass.wants_any())
    co_return error{};

  auto& admission = *self->state.admission;
  uint64_t room_bytes = 0;
  if (admission.asks_room()) {
    tier_status_request status;
    auto now = co_await ask<tier_report>(self, with.tier, status, "tier below");
    if (!now)
      co_return now.error();
    room_bytes = now->room_bytes;
  }
  if (auto wanted = admission.question(pass, room_bytes)) {
    auto asked = std::move(*wanted);
    auto answer = co_await ask<admit_answer>(self, with.policy, std::move(asked), "policy");
    if (!answer)
      co_return answer.error();
    if (uint64_t refused = pass.admitted(answer->admitted); refused != 0)
      refuse(self, pass, refusal_reason::admission, refused);
  }
  if (uint64_t refused = admission.pay(pass, clock::now()); refused != 0)
    refuse(self, pass, refusal_reason::endurance, refused);
  co_return error{};
}

// ---- writing ----

void count(write_through_pointer self, write_passage& pass, const write_passage::result& written) {
  const auto& probe = self->state.with.probe;
  if (written.bytes != 0)
    probe->written(written.bytes);
  pass.told().done.objects += written.complete.places.size();
  pass.told().done.bytes += written.bytes;
  pass.told().stalled = written.stalled;
  if (written.away != 0)
    refuse(self, pass, refusal_reason::degraded, written.away);
  if (written.failed != 0)
    refuse(self, pass, refusal_reason::failed, written.failed);
}

task<result<move_answer>> copy(write_through_pointer self, write_passage& pass,
                               const reservation_ptr& reserved) {
  const auto& with = self->state.with;
  if (with.way == passage_way::into_host) {
    auto read = pass.read(reserved, with.work);
    auto moved = co_await ask<move_answer>(self, with.mover, std::move(read), "mover of the tier above");
    co_return moved;
  }
  auto write = pass.write(reserved, with.work);
  auto moved = co_await ask<move_answer>(self, with.mover, std::move(write), "mover of the tier");
  co_return moved;
}

/// An error: an actor has ended, and the objects are not written.
task<error> bring_down(write_through_pointer self, write_passage& pass) {
  const auto& with = self->state.with;
  auto& admission = *self->state.admission;
  if (!admission.in_service()) {
    refuse(self, pass, refusal_reason::degraded, pass.refuse_all());
    co_return error{};
  }
  if (admission.may_refuse()) {
    auto failure = co_await admit(self, pass);
    if (failure.code != errc::ok)
      co_return failure;
    if (!pass.wants_any())
      co_return error{};
  }
  auto wanted = pass.space();
  auto acquired = co_await ask<acquire_answer>(self, with.tier, std::move(wanted), "tier below");
  if (!acquired)
    co_return acquired.error();
  if (acquired->failure.code != errc::ok) {
    admission.lacks();
    if (acquired->failure.code == errc::no_space) // which the tier counts
      pass.told().done.lose(demotion_failure::no_room, pass.wanted());
    else
      refuse(self, pass, refusal_reason::failed, pass.objects());
    co_return error{};
  }
  pass.take_space(*acquired, *with.memory);
  if (pass.to_write() == 0)
    co_return error{};

  auto confirm = pass.confirmation();
  auto confirmed = co_await ask<confirm_answer>(self, with.from, std::move(confirm), "tier above");
  if (!confirmed)
    co_return confirmed.error();
  pass.drop_cleared(confirmed->present);
  if (pass.to_write() == 0)
    co_return error{};

  auto moved = co_await copy(self, pass, acquired->reserved);
  if (auto failure = failure_of(moved); failure.code != errc::ok)
    co_return failure;
  auto written = pass.written(moved->outcomes);
  count(self, pass, written);
  if (written.complete.places.empty())
    co_return error{};
  publish_request complete = written.complete;
  complete.hold = with.way == passage_way::into_host;
  auto published = co_await ask<publish_answer>(self, with.tier, std::move(complete), "tier below");
  if (!published)
    co_return published.error();
  for (const write_through_actor& further : self->state.onward)
    self->send(further, pass.onward(written, published->held));
  pass.told().arrived = published->held;
  co_return error{};
}

/// Until those have ended, too: what they wrote is there, and they no longer hold it where it comes from.
task<> await_others(write_through_pointer self, write_passage& pass) {
  const auto& with = self->state.with;
  auto written = pass.await_others();
  auto settled = co_await ask<await_answer>(self, with.tier, std::move(written), "tier below");
  // The tier tells those who wait while it publishes, and then whoever has it publish. Its next answer comes after both.
  confirm_request turn;
  auto told = co_await ask<confirm_answer>(self, with.tier, std::move(turn), "tier below");
  (void) settled, (void) told; // if the tier has ended, there is nobody to wait for
}

// ---- the queue ----

void start_next(write_through_pointer self);
void keep_waiting(write_through_pointer self);

/// The holds of the notice end with the passage.
task<> write_through(write_through_pointer self, write_passage pass, uint64_t number) {
  auto failure = co_await bring_down(self, pass);
  if (pass.others_write()) {
    auto others = await_others(self, pass);
    co_await others;
  }
  auto& state = self->state;
  if (failure.code != errc::ok)
    refuse(self, pass, refusal_reason::failed, pass.to_write());
  state.admission->ended(pass);
  state.line->done(pass);
  if (pass.replaceable() && pass.others_write())
    state.line->push_again(pass.again());
  else
    pass.end();
  state.passages.erase(number);
  keep_waiting(self);
  start_next(self);
}

void start_next(write_through_pointer self) {
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

// ---- replaceable objects ----

/// The last of them may be lost in a crash, so they do not wait long.
constexpr auto replaceable_wait = std::chrono::milliseconds(200);

/// They wait for a while, because they may be replaced; but nobody waits for what they hold of host memory.
void keep_waiting(write_through_pointer self) {
  auto& state = self->state;
  const auto& waiting = state.line->replaceable();
  if (waiting.empty())
    return;
  bool patient = self->where().port != nullptr && state.finishing.empty() && state.credits->waiting() == 0 &&
                 waiting.bytes() <= state.credits->bytes_max() / 4;
  if (!patient) {
    state.line->ripen();
    start_next(self);
    return;
  }
  if (std::exchange(state.timing, true))
    return;
  runtime::io_request wait;
  wait.code = runtime::io_code::timeout;
  wait.after = replaceable_wait;
  self->port().submit(std::move(wait), caf::actor_cast<caf::strong_actor_ptr>(self), 0);
}

void on_waited(write_through_pointer self) {
  self->state.timing = false;
  self->state.line->ripen();
  start_next(self);
}

// ---- credits ----

caf::result<write_credit_answer> on_credit_request(write_through_pointer self,
                                                   const write_credit_request& request) {
  auto reply = make_answer<write_credit_answer>(self);
  self->state.credits->issue(request,
                             [reply](write_credit_answer given) mutable { reply.deliver(std::move(given)); });
  keep_waiting(self);
  return reply.promise();
}

void on_notice(write_through_pointer self, write_through_notice notice) {
  if (!self->state.credits->admit(notice))
    return;
  bool replaceable = notice.replaceable;
  self->state.line->push(std::move(notice));
  if (replaceable)
    keep_waiting(self);
  else
    start_next(self);
}

caf::result<demote_answer> on_demote(write_through_pointer self, const demote_request& request) {
  auto reply = make_answer<demote_answer>(self);
  auto promise = reply.promise();
  write_through_notice notice{request.in, request.objects, request.held, request.credit};
  if (!request.urgent && !self->state.credits->admit(notice)) {
    demote_answer none;
    none.done.lose(demotion_failure::no_room, request.objects->size());
    reply.deliver(std::move(none));
    return promise;
  }
  notice.ended = [reply](demote_answer told) mutable { reply.deliver(std::move(told)); };
  if (request.urgent)
    self->state.line->push_urgent(std::move(notice));
  else
    self->state.line->push(std::move(notice));
  start_next(self);
  return promise;
}

auto on_finish_writes(write_through_pointer self) {
  auto reply = make_answer<finish_writes_answer>(self);
  self->state.finishing.push_back(reply);
  keep_waiting(self);
  start_next(self);
  return reply.promise();
}

interface::behavior_type write_through_behavior(write_through_pointer self,
                                                const std::shared_ptr<write_through_arguments>& arguments) {
  auto& state = self->state;
  state.with = *arguments;
  const auto& with = state.with;
  state.line.emplace(with.bytes_in_progress, with.way);
  state.admission.emplace(with.kind, with.admission, with.availability, with.second_looks, clock::now());
  state.credits.emplace(with.waiting_bytes, with.way == passage_way::out_of_host ? with.memory : nullptr,
                        std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self)));
  return {
      [self](const write_through_notice& notice) { on_notice(self, notice); },
      [self](const demote_request& request) { return on_demote(self, request); },
      [self](finish_writes_request) { return on_finish_writes(self); },
      [self](const write_credit_request& request) { return on_credit_request(self, request); },
      [self](const write_credit_notice& notice) { self->state.credits->take_back(notice); },
      [self](const runtime::io_done&) { on_waited(self); },
      [self](const tier_joined_notice& notice) { self->state.onward.push_back(notice.what->to); },
      [self](sweep_notice) { self->state.credits->sweep(); },
      [self](check_writes_request) {
        return check_writes_answer{{}, self->state.line->idle() && self->state.passages.empty()};
      },
  };
}

} // namespace

write_through_actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments) {
  runtime::home home = arguments.home;
  return runtime::spawn_homed(system, home, write_through_behavior,
                              std::make_shared<write_through_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
