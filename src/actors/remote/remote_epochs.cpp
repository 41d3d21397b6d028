// The spaces of a remote store: their epoch tokens, which are learnt before a space is used, and clears by this machine and by
// others.
#include "actors/remote/remote_store.hpp"

#include "runtime/ask.hpp"
#include "storage/pending_clears.hpp"
#include "tier/objects/tier_clear.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <cassert>
#include <optional>

namespace terrace::actors {

using remote::command_result;
using remote::epoch_token;

namespace {

auto epochs_now() { return std::chrono::steady_clock::now(); }

/// The reply to one command, for a coroutine.
struct told_reply {
  std::optional<remote::finished_command> said; ///< none: the connection is lost
  task_event done;
};

} // namespace

remote_store::space_state_ptr remote_store::space_of(space_id id, const space_fingerprint& fingerprint,
                                                     bool own) {
  space_state_ptr& space = spaces_[id];
  if (space)
    return space;
  if (auto owed = owed_.find(fingerprint); !own && owed != owed_.end()) {
    space = owed->second;
    space->id = id;
    return space;
  }
  space = std::make_shared<space_state>();
  space->id = id;
  space->fingerprint = fingerprint;
  space->own = own;
  space->name = (own ? own_names_ : with_.plan.names).space_of(fingerprint);
  space->epoch.key = with_.plan.names.epoch_key_of(space->name);
  return space;
}

/// Whether the store tells when the token changes. While its slot is on its way, that is not the node which has the slot.
bool remote_store::told(const token_state& of) const {
  const auto at = nodes_.find(of.read_at);
  return at != nodes_.end() && at->second->ready() && at->second->told;
}

/// A token whose node is lost lasts a while, so that what other nodes have is found until another one has its slots.
bool remote_store::usable(const token_state& of) const {
  return serving() && !of.clearing && of.token.usable(epochs_now(), told(of));
}

uint64_t remote_store::epoch_of(const space_state& space) const {
  return remote::combined_epoch(space.epoch.token.value(), realm_.token.value());
}

// ---- learning ----

/// Ends when the space is usable, or cannot be now. Null: only the realm's token is wanted.
std::shared_ptr<remote_store::waiting> remote_store::prepare(space_state_ptr space) {
  auto wait = std::make_shared<waiting>();
  preparing_.emplace_back(std::move(space), wait);
  if (!std::exchange(prepares_, true)) {
    const uint64_t number = next_task_++;
    run(prepare_spaces(number), number);
  }
  return wait;
}

task<bool> remote_store::learn_space(space_state_ptr space, std::shared_ptr<budget> limit) {
  constexpr int rounds_max = 8;
  auto over = [limit] { return limit && limit->over; };
  bool goes_on = true;
  for (int round = 0; round < rounds_max && goes_on && serving() && !over() && !usable(*space); ++round) {
    auto wait = prepare(space);
    if (limit)
      limit->now = wait;
    task_event& done = wait->done;
    co_await done;
    goes_on = wait->learnt;
  }
  co_return !over() && usable(*space);
}

/// One space after the other.
task<> remote_store::prepare_spaces(uint64_t number) {
  while (!preparing_.empty()) {
    auto [space, wait] = std::move(preparing_.front());
    preparing_.pop_front();
    space_state_ptr all;
    auto learnt = co_await learn(realm_, all);
    const bool owes =
        space && space->epoch.token.owes_clear(); // of which other machines hear without the realm's
    if ((learnt || owes) && space && !space->own) {
      token_state& own = space->epoch;
      auto own_learnt = co_await learn(own, space);
      learnt = learnt && own_learnt;
    }
    wait->learnt = learnt;
    wait->end();
  }
  prepares_ = false;
  const auto owes_one = [](const auto& each) { return each.second->epoch.token.owes_clear(); };
  if (recorded_ && !realm_.token.owes_clear() && std::none_of(spaces_.begin(), spaces_.end(), owes_one) &&
      std::none_of(owed_.begin(), owed_.end(), owes_one)) {
    recorded_ = false;
    owed_.clear();
    const uint64_t settling = next_task_++;
    run(settle(settling), settling);
  }
  ended(number);
}

/// Returns true if the token is usable. `space`: null: the token is that of the realm.
task<bool> remote_store::learn(token_state& of, space_state_ptr space) {
  constexpr int rounds_max = 8; // others change it meanwhile
  node* other = nullptr;        // that has the token instead
  bool asking = false;
  uint32_t hops = 0; // of this command
  for (int round = 0; round < rounds_max && !usable(of); ++round) {
    node* at = other != nullptr ? std::exchange(other, nullptr) : node_of(of.key);
    if (at == nullptr)
      doubt_map();
    if (at == nullptr || !at->ready())
      co_return false;
    const auto next = of.token.next();
    auto reply = std::make_shared<told_reply>();
    std::string text = next == epoch_token::step::read ? std::string() : of.token.written(random_());
    ask_store(
        *at,
        [next, key = of.key, text](remote::store_commands& server) {
          if (next == epoch_token::step::read)
            server.read_text(0, key);
          else if (next == epoch_token::step::make)
            server.write_text_if_absent(0, key, text);
          else
            server.write_text(0, key, text);
        },
        [reply](const remote::finished_command* finished) {
          if (finished != nullptr)
            reply->said = *finished;
          reply->done.set();
        },
        1, std::exchange(asking, false));
    pump();
    task_event& done = reply->done;
    co_await done;
    if (!reply->said)
      co_return false;
    if (reply->said->result == command_result::refused) {
      if (next == epoch_token::step::make)
        of.token.was_made(); // others may have made one since, or cleared: it is read first
      other = redirected(*at, *reply->said, hops++);
      asking = other != nullptr && reply->said->redirected->once;
      if (other != nullptr)
        continue;
      if (!in_cluster() || !reply->said->redirected)
        with_.service->set_notice(reply->said->why.text);
      if (lost_its_server(*reply->said))
        close(*at, reply->said->why.text);
      co_return false;
    }
    hops = 0;
    of.read_at = next == epoch_token::step::read ? at->number : of.read_at;
    bool cleared = false;
    if (next == epoch_token::step::clear)
      of.token.was_cleared();
    else if (next == epoch_token::step::make)
      of.token.was_made();
    else if (reply->said->result == command_result::done)
      cleared = of.token.was_read(reply->said->text, epochs_now());
    else if (reply->said->result == command_result::absent)
      of.token.was_absent();
    else
      of.token.was_read({}, epochs_now()); // it is too long for a token
    if (cleared) {
      assert(!of.clearing); // one token is learnt at a time
      of.clearing = true;
      co_await clear_here(space);
      of.clearing = false;
    }
  }
  co_return usable(of);
}

// ---- clears ----

/// Another machine has cleared the space, or all of the realm: so do the tiers of this one.
task<> remote_store::clear_here(space_state_ptr space) {
  auto group = with_.group.lock();
  if (!group)
    co_return;
  clear_order order;
  while (auto next = order.next(group->tiers().size())) {
    tier_actor tier = group->tiers()[*next].tier;
    clear_request question;
    if (space) {
      question.space = space->id;
      question.fingerprint = space->fingerprint;
    }
    question.by_other = true;
    question.in_progress = order.in_progress(*next);
    auto cleared = co_await ask<clear_answer>(self_, tier, std::move(question), "tier");
    if (!cleared)
      co_return; // the daemon is shutting down
    order.add(*cleared);
  }
  with_.counts->cleared_by_other();
  with_.log(std::string("was cleared by another machine: ") +
            (space ? "space " + std::to_string(static_cast<uint32_t>(space->id)) : "all spaces"));
  if (order.sum().failure.code != errc::ok)
    with_.warn("was cleared by another machine, and the clear may not hold after a restart: " +
               order.sum().failure.text);
}

/// No object that was reserved before is written any more. The store gets another token: now, or before the space is used again.
caf::result<forget_answer> remote_store::on_forget(const forget_request& request) {
  auto reply = make_answer<forget_answer>(self_);
  auto promise = reply.promise();
  forget_answer told{{}, request.epoch + 1, {}};
  space_state_ptr space;
  if (request.space) {
    auto known = spaces_.find(*request.space);
    space = known != spaces_.end() ? known->second
            : request.fingerprint  ? space_of(*request.space, *request.fingerprint, false)
                                   : nullptr;
  }
  if (space)
    space->tier_epoch = told.epoch;
  else
    for (const auto& [id, each] : spaces_)
      each->tier_epoch = told.epoch;
  if (request.by_other || (space && space->own)) {
    reply.deliver(std::move(told));
    return promise;
  }
  (space ? space->epoch : realm_).token.owe_clear();
  const uint64_t number = next_task_++;
  run(clear_there(std::move(space), std::move(reply), std::move(told), number), number);
  pump();
  return promise;
}

task<> remote_store::clear_there(space_state_ptr space, answer<forget_answer> reply, forget_answer told,
                                 uint64_t number) {
  if (serving()) {
    auto wait = prepare(space);
    task_event& done = wait->done;
    co_await done;
  }
  const bool owes = (space ? space->epoch : realm_).token.owes_clear();
  if (owes) {
    pending_clear clear;
    if (space)
      clear.space = space->fingerprint;
    told.failure = co_await record(std::move(clear), false);
  }
  reply.deliver(std::move(told));
  ended(number);
}

// ---- clears that outlive the daemon ----

namespace {

/// The thread that writes it: blocks on the file system.
clear_keeper_actor spawn_store_keeper(caf::actor_system& system, bool detached,
                                      std::function<result<void>(const pending_clear&)> write) {
  auto behavior =
      [](clear_keeper_actor::pointer self,
         const std::function<result<void>(const pending_clear&)>& keep) -> clear_keeper_actor::behavior_type {
    return {
        [self, keep](const remember_clear_request& request) {
          self->quit();
          auto kept = keep(request.clear);
          return kept ? remember_clear_answer{} : remember_clear_answer{kept.error()};
        },
    };
  };
  return detached ? system.spawn<caf::detached>(behavior, std::move(write))
                  : system.spawn(behavior, std::move(write));
}

} // namespace

/// Reads the clears that an earlier run could not tell the store. A record that cannot be read is a clear of everything.
void remote_store::owe_recorded() {
  const auto group = with_.group.lock();
  const std::vector<std::string> name{realm_.key};
  auto clears =
      pending_clears(group && !group->disk_files.empty() ? group->state_directory : std::string()).of(name);
  if (!clears)
    clears = std::vector<pending_clear>{{}};
  for (const pending_clear& clear : *clears) {
    recorded_ = true;
    if (!clear.space) {
      realm_.token.owe_clear();
      continue;
    }
    auto space = space_of(space_id{}, *clear.space, false);
    spaces_.clear(); // it has no number yet
    space->epoch.token.owe_clear();
    owed_[*clear.space] = std::move(space);
  }
}

/// Writes the clear to the state directory of a group with a disk, or, if it is `settled`, removes all of them.
task<error> remote_store::record(pending_clear clear, bool settled) {
  auto group = with_.group.lock();
  if (!group || group->disk_files.empty() || group->state_directory.empty())
    co_return error{}; // nothing of it outlives the daemon
  auto keeper = spawn_store_keeper(
      self_->system(), group->detached,
      [folder = group->state_directory, name = realm_.key, settled](const pending_clear& what) {
        const std::vector<std::string> names{name};
        pending_clears clears(folder);
        return settled ? clears.applied(name, pending_clears::outcome::kept, {}, 0)
                       : clears.remember(names, what);
      });
  remember_clear_request question{std::move(clear)};
  auto kept = co_await ask<remember_clear_answer>(self_, keeper, std::move(question), "keeper of clears");
  if (!settled)
    recorded_ = true;
  if (kept && kept->failure.code == errc::ok)
    co_return error{};
  co_return error{errc::internal, "the remote store is away, and the clear could not be recorded for it (" +
                                      (kept ? kept->failure.text : kept.error().text) +
                                      "): cleared objects may be found there again after a restart"};
}

task<> remote_store::settle(uint64_t number) {
  pending_clear none;
  auto failure = co_await record(std::move(none), true);
  if (failure.code != errc::ok)
    with_.warn("clears that the store has been told of are told again after a restart: " + failure.text);
  ended(number);
}

} // namespace terrace::actors
