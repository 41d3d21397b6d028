// The spaces of a remote store: their epoch tokens, which are learnt before a space is used, and clears by this machine and by
// others.
#include "actors/remote/remote_store.hpp"

#include "base/printable.hpp"
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
  if (auto known = earlier_.find(fingerprint); !own && known != earlier_.end()) {
    space = std::move(known->second);
    earlier_.erase(known);
    space->id = id;
    return space;
  }
  return space = new_space(id, fingerprint, own);
}

remote_store::space_state_ptr remote_store::new_space(space_id id, const space_fingerprint& fingerprint,
                                                      bool own) const {
  auto space = std::make_shared<space_state>();
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

/// Ends when the space is usable, or cannot be now. Null: only the realm's token is wanted. Those of an earlier run, for which nobody
/// waits, come last.
std::shared_ptr<remote_store::waiting> remote_store::prepare(space_state_ptr space) {
  auto wait = std::make_shared<waiting>();
  const auto is_earlier = [](const space_state_ptr& each) { return each && each->id == space_id{}; };
  const auto place =
      is_earlier(space)
          ? preparing_.end()
          : std::ranges::find_if(preparing_, [&](const auto& each) { return is_earlier(each.first); });
  preparing_.emplace(place, std::move(space), wait);
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
  const auto all = all_tokens();
  const bool owes = std::ranges::any_of(all, [](const auto& each) { return each.first->token.owes_clear(); });
  if (owes && serving() && !std::exchange(clears_again_, true))
    after(between_clears, clears_timer);
  if (recorded_ && !owes) {
    recorded_ = false;
    const uint64_t settling = next_task_++;
    run(settle(settling), settling);
  }
  ended(number);
}

/// The store has refused a clear, and this machine may not use the space for long: others would find what was cleared until then.
void remote_store::clear_again() {
  clears_again_ = false;
  for (const auto& [of, space] : all_tokens())
    if (of->token.owes_clear())
      prepare(space);
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
    const uint64_t before = of.token.value();
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
    const bool lost =
        next == epoch_token::step::read && !cleared && before != 0 && of.token.value() != before;
    if (cleared || lost) {
      assert(!of.clearing); // one token is learnt at a time
      of.clearing = true;
      if (cleared) {
        co_await clear_here(space);
      } else {
        co_await forget_lost(space);
      }
      of.clearing = false;
    }
    if (of.token.value() != before)
      keep_tokens();
  }
  co_return usable(of);
}

// ---- clears ----

/// The number of the space. One of an earlier run may have none yet, although the volume has objects of it.
task<space_id> remote_store::id_of(space_state_ptr space) {
  auto group = with_.group.lock();
  if (!group || space->id != space_id{})
    co_return space->id;
  reserve_spaces_request named{{digest{space->fingerprint}}};
  auto reserved = co_await ask<reserve_spaces_answer>(self_, group->group, std::move(named), "trust group");
  co_return reserved ? reserved->ids.front() : space_id{};
}

/// Another machine has cleared the space, or all of the realm: so do the tiers of this one, the volume once it has joined.
task<> remote_store::clear_here(space_state_ptr space) {
  auto group = with_.group.lock();
  if (!group)
    co_return;
  if (group->will_join() && std::ranges::find(unheard_, space) == unheard_.end())
    unheard_.push_back(space);
  space_id id{};
  if (space) {
    id = co_await id_of(space);
    if (id == space_id{})
      co_return; // nobody has objects of it
  }
  clear_order order;
  while (auto next = order.next(group->tiers().size())) {
    tier_actor tier = group->tiers()[*next].tier;
    clear_request question;
    if (space) {
      question.space = id;
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

/// The store came back without the token, and has another one, so nobody finds what it had. The tier forgets that as well, so that what
/// this machine has is written again: when it is used, or when it leaves host memory. What is to be written stays: the write that
/// learns of the loss goes on with the new token. Null: the realm's token, which is part of the keys of all spaces that are shared.
task<> remote_store::forget_lost(space_state_ptr space) {
  auto group = with_.group.lock();
  if (!group)
    co_return;
  for (const auto& [of, each] : all_tokens()) // the store may have lost them as well
    if (each != space)
      of->token.ask_again();
  std::vector<space_id> lost;
  for (const auto& [id, each] : spaces_) // no object of an earlier run is in the index
    if (!each->own && (!space || each == space))
      lost.push_back(id);
  uint64_t objects = 0;
  for (space_id each : lost) {
    clear_request question{.space = each, .published_only = true};
    auto cleared = co_await ask<clear_answer>(self_, tier_, std::move(question), "remote tier");
    if (!cleared)
      co_return; // the daemon is shutting down
    objects += cleared->objects;
  }
  const tier_handle* own = group->tier(with_.plan.tier.kind);
  if (own != nullptr && own->offers_again)
    own->offers_again->store(true, std::memory_order_relaxed);
  if (objects != 0)
    with_.log("came back without " +
              (space ? "what it had of space " + std::to_string(static_cast<uint32_t>(space->id))
                     : std::string("what it had")) +
              ": " + format_counted(objects, "object") +
              (objects == 1 ? "; it is written again when it is used"
                            : "; they are written again when they are used"));
}

/// The volume has objects that others cleared while it was opened.
void remote_store::on_volume_joined() {
  const uint64_t number = next_task_++;
  run(clear_volume(number), number);
}

task<> remote_store::clear_volume(uint64_t number) {
  const bool any = !unheard_.empty();
  while (!unheard_.empty()) {
    space_state_ptr space = unheard_.front();
    co_await clear_here(space);
    unheard_.erase(unheard_.begin());
  }
  if (any)
    keep_tokens();
  ended(number);
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

/// Reads the clears that an earlier run could not tell the store, and the tokens that it knew. A record that cannot be read is a clear
/// of everything.
void remote_store::read_records() {
  const std::vector<std::string> name{realm_.key};
  auto clears = pending_clears(state_folder()).of(name);
  if (!clears)
    clears = std::vector<pending_clear>{{}};
  for (const pending_clear& clear : *clears) {
    recorded_ = true;
    if (!clear.space) {
      realm_.token.owe_clear();
      continue;
    }
    earlier(*clear.space)->epoch.token.owe_clear();
  }
  if (const auto folder = state_folder(); !folder.empty()) {
    const auto tokens = read_tokens(folder, store_name());
    realm_.token.remember(tokens.all);
    for (const auto& [fingerprint, token] : tokens.of)
      earlier(fingerprint)->epoch.token.remember(token);
  }
}

/// A space of an earlier run, which has no number yet.
const remote_store::space_state_ptr& remote_store::earlier(const space_fingerprint& fingerprint) {
  space_state_ptr& known = earlier_[fingerprint];
  if (!known)
    known = new_space({}, fingerprint, false);
  return known;
}

/// Where a group with a disk keeps what outlives the daemon; empty: nothing of it does.
std::string remote_store::state_folder() const {
  const auto group = with_.group.lock();
  return group && !group->disk_files.empty() ? group->state_directory : std::string();
}

/// Daemons and groups may share the folder, and the realm, but no volume. Precondition: there is one.
std::string remote_store::store_name() const {
  const auto group = with_.group.lock();
  return (group ? group->disk_files.front() : std::string()) + " " + realm_.key;
}

// ---- tokens that outlive the daemon ----

/// Writes the tokens down, so that the next run notices whether others have cleared meanwhile what its volume has.
void remote_store::keep_tokens() {
  if (state_folder().empty())
    return;
  tokens_changed_ = true;
  if (std::exchange(keeps_tokens_, true))
    return;
  const uint64_t number = next_task_++;
  run(write_tokens_down(number), number);
}

space_tokens remote_store::tokens_now() const {
  const auto known = [this](const token_state& token, const space_state_ptr& space) {
    const bool heard = !token.clearing && std::ranges::find(unheard_, space) == unheard_.end();
    return heard ? token.token.value() : space_tokens::unreadable;
  };
  space_tokens now;
  now.all = known(realm_, nullptr);
  const auto add = [&](const auto& spaces) {
    for (const auto& [id, space] : spaces)
      if (!space->own && space->epoch.token.value() != 0 && now.of.size() < space_tokens::spaces_max)
        now.of[space->fingerprint] = known(space->epoch, space);
  };
  add(spaces_);
  add(earlier_);
  return now;
}

task<> remote_store::write_tokens_down(uint64_t number) {
  auto group = with_.group.lock();
  while (group && std::exchange(tokens_changed_, false)) {
    auto keeper =
        spawn_store_keeper(self_->system(), group->detached,
                           [folder = state_folder(), name = store_name(), tokens = tokens_now()](
                               const pending_clear&) { return write_tokens(folder, name, tokens); });
    remember_clear_request question{};
    auto kept = co_await ask<remember_clear_answer>(self_, keeper, std::move(question), "keeper of tokens");
    const error failure = kept ? kept->failure : kept.error();
    if (failure.code != errc::ok)
      with_.warn("the tokens of its spaces cannot be kept, and a clear by another machine while this daemon "
                 "is away may not "
                 "reach its disk: " +
                 failure.text);
  }
  keeps_tokens_ = false;
  ended(number);
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
