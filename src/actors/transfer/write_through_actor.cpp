#include "actors/transfer/write_through_actor.hpp"

#include "actors/transfer/bring.hpp"
#include "runtime/answer.hpp"
#include "runtime/io_port.hpp"
#include "transfer/write_admission.hpp"
#include "transfer/write_queue.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>

namespace terrace::actors {

// Named, since a template's frame has it.
struct write_through_state {
  const char* name = "writes";
  write_through_arguments with;
  std::optional<write_queue> line;
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

namespace {

using clock = std::chrono::steady_clock;

using interface = write_through_actor::extend<caf::reacts_to<runtime::io_done>>;
using write_through_pointer = caf::stateful_actor<write_through_state, runtime::homed<interface::base>>*;

// ---- admission ----

/// `names`: of the objects that are refused, for whoever asks for them later.
void refuse(write_through_pointer self, write_plan& plan, refusal_reason why, uint64_t objects,
            const std::vector<entry_key>& names) {
  const auto& with = self->state.with;
  self->state.admission->lacks();
  with.to.probe->refused(why, objects);
  plan.told().done.lose(why, objects);
  if (with.log)
    for (entry_key name : names)
      with.log->departures().add_refusal(name, with.to.kind, why);
}

/// Leaves what the tier lacks, what is admitted and what the budget allows.
task<error> admit(write_through_pointer self, write_plan& plan) {
  const auto& with = self->state.with;
  auto question = plan.probe();
  auto found = co_await ask<probe_answer>(self, with.to.tier, std::move(question), "tier below");
  if (!found)
    co_return found.error();
  plan.omit_present(found->present);
  if (!plan.wants_any())
    co_return error{};

  auto& admission = *self->state.admission;
  uint64_t room_bytes = 0;
  if (admission.asks_room()) {
    tier_status_request status;
    auto now = co_await ask<tier_report>(self, with.to.tier, status, "tier below");
    if (!now)
      co_return now.error();
    room_bytes = now->room_bytes;
  }
  if (auto wanted = admission.question(plan, room_bytes)) {
    auto asked = std::move(*wanted);
    auto answer = co_await ask<admit_answer>(self, with.policy, std::move(asked), "policy");
    if (!answer)
      co_return answer.error();
    if (uint64_t refused = plan.admitted(answer->admitted); refused != 0)
      refuse(self, plan, refusal_reason::admission, refused, plan.take_refused());
  }
  if (uint64_t refused = admission.pay(plan, clock::now()); refused != 0)
    refuse(self, plan, refusal_reason::endurance, refused, plan.take_refused());
  co_return error{};
}

// ---- writing ----

/// What has arrived is counted before others can find it.
void count(write_through_pointer self, write_plan& plan, const passage& pass) {
  const auto& probe = self->state.with.to.probe;
  const auto& ended = pass.ended();
  uint64_t bytes = 0;
  for (const passage::part& part : pass.parts())
    bytes += pass.payload_bytes(part);
  if (bytes > ended.present_bytes)
    probe->written(bytes - ended.present_bytes);
  plan.told().done.objects += pass.size();
  plan.told().done.bytes += bytes;
  plan.told().stalled = ended.stalled;
  auto lost = plan.names_of(ended.lost);
  if (ended.away != 0)
    refuse(self, plan, refusal_reason::degraded, ended.away, lost);
  if (ended.lost.size() != ended.away) // if only some of them were away, which of them is not known
    refuse(self, plan, refusal_reason::failed, ended.lost.size() - ended.away, lost);
}

/// The tier has refused the space.
void count_refused(write_through_pointer self, write_plan& plan, const error& why) {
  self->state.admission->lacks();
  if (why.code == errc::no_space) // which the tier counts
    plan.told().done.lose(refusal_reason::no_room, plan.wanted());
  else
    refuse(self, plan, refusal_reason::failed, plan.objects(), {});
}

/// Brings the wanted objects to the tier.
task<> bring_wanted(write_through_pointer self, write_plan& plan) {
  const auto& with = self->state.with;
  passage pass(plan.journey(with.from.kind, with.way(), *with.memory, with.work));
  pass.ask_for(plan.space());
  pass.on_arrival([self, &plan, &pass] {
    count(self, plan, pass);
    return true;
  });
  auto failure = co_await bring(self, pass, with.from, with.to);
  plan.add_passage(pass);
  if (pass.refused().code != errc::ok)
    count_refused(self, plan, pass.refused());
  else if (failure.code != errc::ok) // an actor has ended
    refuse(self, plan, refusal_reason::failed, pass.size(), {});
  if (!pass.published())
    co_return;
  for (const write_through_actor& further : self->state.onward)
    self->send(further, plan.onward(pass));
  plan.told().arrived = pass.published();
}

/// The objects that are admitted are brought to the tier.
task<> bring_admitted(write_through_pointer self, write_plan& plan) {
  auto& admission = *self->state.admission;
  if (!admission.in_service()) {
    const uint64_t refused = plan.refuse_all();
    refuse(self, plan, refusal_reason::degraded, refused, plan.take_refused());
    co_return;
  }
  if (admission.may_refuse()) {
    auto failure = co_await admit(self, plan);
    if (failure.code != errc::ok || !plan.wants_any())
      co_return;
  }
  co_await bring_wanted(self, plan);
}

/// Until those have ended, too: what they wrote is there, and they no longer hold it where it comes from.
task<> await_others(write_through_pointer self, write_plan& plan) {
  const auto& with = self->state.with;
  auto written = plan.await_others();
  auto settled = co_await ask<await_answer>(self, with.to.tier, std::move(written), "tier below");
  // The tier tells those who wait while it publishes, and then whoever has it publish. Its next answer comes after both.
  confirm_request turn;
  auto told = co_await ask<confirm_answer>(self, with.to.tier, std::move(turn), "tier below");
  (void) settled, (void) told; // if the tier has ended, there is nobody to wait for
}

// ---- the queue ----

void start_next(write_through_pointer self);
void keep_waiting(write_through_pointer self);

/// The holds of the notice end with the passage.
task<> write_through(write_through_pointer self, write_plan plan, uint64_t number) {
  co_await bring_admitted(self, plan);
  if (plan.others_write()) {
    auto others = await_others(self, plan);
    co_await others;
  }
  auto& state = self->state;
  state.admission->ended(plan);
  state.line->done(plan);
  if (plan.replaceable() && plan.others_write())
    state.line->push_again(plan.again());
  else
    plan.end();
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
    state.line->release_delayed();
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
  self->state.line->release_delayed();
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
  write_through_notice notice{request.space, request.objects, request.held, request.credit};
  if (request.turn == demotion_turn::if_credit && !self->state.credits->admit(notice)) {
    demote_answer none;
    none.done.lose(refusal_reason::no_room, request.objects->size());
    reply.deliver(std::move(none));
    return promise;
  }
  notice.ended = [reply](demote_answer told) mutable { reply.deliver(std::move(told)); };
  if (request.turn == demotion_turn::first)
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
  state.line.emplace(with.to.write_bytes_in_progress);
  state.admission.emplace(with.to.kind, with.to.admission, with.to.service, with.to.offers_again,
                          clock::now());
  state.credits.emplace(with.waiting_bytes, with.way() == direction::out_of_host ? with.memory : nullptr,
                        std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self)));
  return {
      [self](const write_through_notice& notice) { on_notice(self, notice); },
      [self](const demote_request& request) { return on_demote(self, request); },
      [self](finish_writes_request) { return on_finish_writes(self); },
      [self](const write_credit_request& request) { return on_credit_request(self, request); },
      [self](const write_credit_notice& notice) { self->state.credits->put_back(notice); },
      [self](const runtime::io_done&) { on_waited(self); },
      [self](const tier_joined_notice& notice) { self->state.onward.push_back(notice.tier->write_through); },
      [self](sweep_notice) { self->state.credits->sweep(); },
      [self](const write_budget_notice& notice) {
        self->state.admission->set_budget(notice.rates, clock::now());
      },
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
