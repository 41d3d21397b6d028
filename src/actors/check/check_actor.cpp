#include "actors/check/check_actor.hpp"

#include "base/tier_properties.hpp"
#include "runtime/answer.hpp"
#include "runtime/ask.hpp"
#include "runtime/next_turn.hpp"
#include "tier/objects/reference_count.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace terrace::actors {

/// A check sends this to itself for its next part.
struct check_turn {};

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::check_turn)

namespace terrace::actors {

namespace {

/// Places that are counted in one turn.
constexpr size_t places_at_once = 4'096;
/// Objects that a tier is asked about in one message.
constexpr size_t held_at_once = 256;
/// Attempts to recount the sessions when a recount is interrupted.
constexpr int session_attempts = 3;

/// Walks a tier. The walk ends with this object.
class tier_walk {
 public:
  tier_walk(const tier_handle& tier, uint64_t number) : of_(tier), number_(number) {}
  tier_walk(const tier_walk&) = delete;
  tier_walk& operator=(const tier_walk&) = delete;
  ~tier_walk() { caf::anon_send(of_.tier, end_check_notice{number_}); }

  const tier_handle& tier() const { return of_; }
  uint64_t number() const { return number_; }

 private:
  tier_handle of_;
  uint64_t number_;

 public:
  reference_count references{of_.kind};
};

/// The right to be the only check of the group.
class check_right {
 public:
  explicit check_right(std::shared_ptr<std::atomic<bool>> flag) : flag_(std::move(flag)) {
    has_ = !flag_->exchange(true);
  }
  check_right(const check_right&) = delete;
  check_right& operator=(const check_right&) = delete;
  ~check_right() {
    if (has_)
      flag_->store(false);
  }
  bool has() const { return has_; }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
  bool has_ = false;
};

struct check_state {
  const char* name = "check";
  check_job job;
  std::optional<check_right> right;
  check_report report;
  answer<check_report> reply;
  std::vector<std::unique_ptr<tier_walk>> walks;
  std::unordered_set<lease_id> leases; ///< leases that were counted
  turn_wait wait;
  task<> progress;
};

using check_pointer = caf::stateful_actor<check_state>*;

void take(check_pointer self, std::vector<std::string> differences) {
  for (std::string& one : differences)
    self->state.report.add(std::move(one));
}

// ---- whether anything is in progress ----

/// Waits until everything that is being released elsewhere has been released, and the tiers have been told.
class lease_ends_passed {
 public:
  explicit lease_ends_passed(check_pointer self) : self_(self), ends_(self->state.job.group->lease_ends) {}
  bool await_ready() const noexcept { return ends_ == nullptr; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    self_->state.wait.begin(frame);
    ends_->run([to = caf::actor_cast<caf::actor>(self_)] { caf::anon_send(to, check_turn{}); });
  }
  void await_resume() const noexcept {}

 private:
  check_pointer self_;
  teardown_ptr ends_;
};

struct progress_counts {
  work_mark::tally work;
  lease_ledger::tally ledger;
  bool writes = false; ///< some objects wait to be written to a tier below
};

task<progress_counts> tally_progress(check_pointer self) {
  auto group = self->state.job.group;
  progress_counts now;
  // The requests come first: what one that has ended gave to a writer is in the writer's mailbox before the question.
  now.work = work_mark::now();
  now.ledger = group->leases->now();
  for (const tier_handle& tier : group->tiers()) {
    for (write_through_actor writer : {tier.write_through, tier.returns}) {
      if (!writer)
        continue;
      check_writes_request request;
      auto answer = co_await ask<check_writes_answer>(self, writer, request, "writer of a tier");
      now.writes = now.writes || !answer || !answer->idle;
    }
  }
  co_return now;
}

bool only_this(const progress_counts& now) { return now.work.in_progress == 1 && !now.writes; }

// ---- references ----

tier_walk* walk_of(check_pointer self, tier_kind kind) {
  for (const auto& walk : self->state.walks)
    if (walk->tier().kind == kind)
      return walk.get();
  return nullptr; // the tier has joined since
}

task<> count_hold(check_pointer self, reference_kind kind, tier_kind tier, hold_ptr held) {
  tier_walk* walk = walk_of(self, tier);
  if (walk == nullptr)
    co_return;
  std::span<const object_place> places(held->places());
  while (!places.empty()) {
    auto some = places.first(std::min(places.size(), places_at_once));
    walk->references.add(kind, some);
    places = places.subspan(some.size());
    if (places.empty())
      co_return;
    auto& wait = self->state.wait;
    co_await next_turn<check_turn>(self, wait);
  }
}

/// Counts a lease once, however many holders keep it.
task<> count_lease(check_pointer self, lease_ptr lease) {
  if (!self->state.leases.insert(lease->id).second)
    co_return;
  for (const tier_hold& one : lease->held) {
    auto counted = count_hold(self, lease->taken_for, one.tier, one.held);
    co_await counted;
  }
}

task<error> check_group(check_pointer self) {
  auto group = self->state.job.group->group;
  check_group_request request;
  do {
    auto answer = co_await ask<check_group_answer>(self, group, request, "trust group's actor");
    if (!answer)
      co_return answer.error();
    take(self, std::move(answer->differences));
    if (request.after == 0)
      self->state.report.named = answer->named;
    for (lease_ptr& one : answer->leases) {
      auto counted = count_lease(self, std::move(one));
      co_await counted;
    }
    request.after = answer->next;
  } while (request.after != 0);
  co_return error{};
}

task<error> check_sessions(check_pointer self) {
  auto group = self->state.job.group->group;
  check_sessions_request request{true};
  for (int attempt = 0; attempt < session_attempts;) {
    auto answer = co_await ask<check_sessions_answer>(self, group, request, "trust group's actor");
    if (!answer)
      co_return answer.error();
    take(self, std::move(answer->differences));
    self->state.report.sessions = answer->sessions;
    if (!answer->more && !answer->interrupted)
      co_return error{};
    request.begins = answer->interrupted;
    attempt += answer->interrupted ? 1 : 0;
  }
  self->state.report.left_out.emplace_back(
      "the bytes of sessions: connections with sessions ended all the time");
  co_return error{};
}

/// A connection that ends meanwhile has nothing any more.
task<> check_client(check_pointer self, client_ptr client) {
  check_client_request request;
  auto answer = co_await ask<check_client_answer>(self, client->actor, request, "connection");
  if (!answer)
    co_return;
  ++self->state.report.connections;
  take(self, std::move(answer->differences));
  if (answer->left_out)
    self->state.report.left_out.push_back("what connection " +
                                          std::to_string(static_cast<uint64_t>(client->id)) +
                                          " holds: it has more leases than can be looked at in one turn");
  for (lease_ptr& one : answer->leases) {
    auto counted = count_lease(self, std::move(one));
    co_await counted;
  }
  for (hold_ptr& one : answer->readings) {
    auto counted = count_hold(self, reference_kind::reading, memory_tier, std::move(one));
    co_await counted;
  }
}

// ---- tiers ----

task<error> begin_walks(check_pointer self) {
  auto group = self->state.job.group;
  for (const tier_handle& tier : group->tiers()) {
    auto actor = tier.tier;
    check_tier_request request;
    auto begun = co_await ask<check_tier_answer>(self, actor, request, "tier");
    if (!begun)
      co_return begun.error();
    self->state.walks.push_back(std::make_unique<tier_walk>(tier, begun->walk));
  }
  co_return error{};
}

task<error> check_tier(check_pointer self, tier_walk& walk) {
  auto& report = self->state.report;
  auto actor = walk.tier().tier;
  uint64_t not_compared = 0;
  std::vector<std::string> differences;
  bool last = false;
  while (!last) {
    if (auto ended = why_ended(self->state.job.context, "check"); ended.code != errc::ok)
      co_return ended;
    check_tier_request request{walk.number()};
    auto part = co_await ask<check_tier_answer>(self, actor, request, "tier");
    if (!part)
      co_return part.error();
    if (part->failure.code != errc::ok)
      co_return part->failure;
    last = part->last;
    report.objects += part->objects;
    not_compared += part->not_compared;
    take(self, std::move(part->differences));
    for (const held_object& object : part->held)
      walk.references.compare(object, differences);
  }
  for (auto ids = walk.references.not_compared(held_at_once); !ids.empty();
       ids = walk.references.not_compared(held_at_once)) {
    check_held_request request{std::move(ids)};
    auto answer = co_await ask<check_held_answer>(self, actor, std::move(request), "tier");
    if (!answer)
      co_return answer.error();
    for (held_object& object : answer->held) {
      object.touched = object.touched || answer->releasing;
      walk.references.compare(object, differences);
    }
  }
  take(self, std::move(differences));
  if (not_compared != 0)
    report.left_out.push_back("the extents of " + std::to_string(not_compared) + " objects of the " +
                              std::string(to_string(walk.tier().kind)) +
                              " tier: its allocator was making room all the time");
  for (size_t kind = 0; kind < reference_kinds; ++kind)
    report.references[kind] += walk.references.of(static_cast<reference_kind>(kind));
  report.references_of_requests += walk.references.of_requests();
  co_return error{};
}

// ---- what only a group without requests can be asked ----

void compare_charges(check_pointer self, const progress_counts& before, const progress_counts& after) {
  auto& state = self->state;
  const tier_walk* host = walk_of(self, memory_tier);
  if (host == nullptr || before.ledger.changes != after.ledger.changes)
    return;
  auto compare = [&](const char* who, uint64_t counted, uint64_t kept) {
    if (counted != kept)
      state.report.add(std::string(who) + std::to_string(counted) + " bytes of host memory, and " +
                       std::to_string(kept) + " are charged for it");
  };
  compare("leases, pins, sessions and readings hold ", host->references.leased_bytes(), after.ledger.bytes);
  if (state.job.group->session_leases)
    compare("sessions hold ", host->references.session_bytes(), state.job.group->session_leases->bytes());
}

/// Asked before requests are counted again: one that begins later may write.
task<result<std::vector<std::string>>> compare_idle(check_pointer self) {
  std::vector<std::string> differences;
  for (const auto& walk : self->state.walks) {
    const auto& unexplained = walk->references.unexplained();
    differences.insert(differences.end(), unexplained.begin(), unexplained.end());
    auto actor = walk->tier().tier;
    check_held_request request;
    auto answer = co_await ask<check_held_answer>(self, actor, std::move(request), "tier");
    if (!answer)
      co_return tl::unexpected(answer.error());
    if (answer->writing_bytes != 0)
      differences.push_back(std::to_string(answer->writing_bytes) + " bytes of the " +
                            std::string(to_string(walk->tier().kind)) +
                            " tier are reserved for objects that nobody writes");
  }
  co_return differences;
}

task<error> check_all(check_pointer self) {
  auto& state = self->state;
  lease_ends_passed ends(self);
  co_await ends;
  auto before = co_await tally_progress(self);
  auto begun = co_await begin_walks(self);
  if (begun.code != errc::ok)
    co_return begun;
  auto group = co_await check_group(self);
  if (group.code != errc::ok)
    co_return group;
  auto clients = state.job.clients->of_group(state.job.group->name);
  for (client_ptr& client : clients) {
    auto checked = check_client(self, std::move(client));
    co_await checked;
  }
  auto sessions = co_await check_sessions(self);
  if (sessions.code != errc::ok)
    co_return sessions;
  co_await ends;
  for (const auto& walk : state.walks) {
    auto checked = co_await check_tier(self, *walk);
    if (checked.code != errc::ok)
      co_return checked;
  }
  auto if_idle = co_await compare_idle(self);
  if (!if_idle)
    co_return if_idle.error();
  auto after = co_await tally_progress(self);
  state.report.idle = only_this(before) && only_this(after) && before.work.begun == after.work.begun &&
                      state.report.left_out.empty();
  if (!state.report.idle)
    co_return error{};
  take(self, std::move(*if_idle));
  compare_charges(self, before, after);
  co_return error{};
}

task<> check(check_pointer self) {
  auto failure = co_await check_all(self);
  auto& state = self->state;
  state.report.failure = std::move(failure);
  state.walks.clear();
  state.right.reset();
  state.reply.deliver(std::move(state.report));
  self->quit();
}

caf::result<check_report> on_check_job(check_pointer self, const check_job& job) {
  auto& state = self->state;
  state.job = job;
  state.reply = make_answer<check_report>(self);
  auto promise = state.reply.promise();
  state.right.emplace(job.group->checking);
  if (!state.right->has()) {
    state.reply.fail({errc::busy, "another check of the trust group is in progress"});
    self->quit();
    return promise;
  }
  state.progress = check(self);
  state.progress.start();
  return promise;
}

caf::behavior check_behavior(check_pointer self) {
  return {
      [self](const check_job& job) { return on_check_job(self, job); },
      [self](check_turn) { self->state.wait.over(); },
  };
}

} // namespace

caf::actor spawn_check(caf::actor_system& system) { return system.spawn(check_behavior); }

} // namespace terrace::actors
