// The connections of a remote store: to its server, or to the nodes of its cluster.
#include "actors/remote/remote_store.hpp"

#include "base/printable.hpp"
#include "base/random_id.hpp"
#include "runtime/io_port.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace terrace::actors {

using remote::command_result;

namespace {

constexpr uint64_t first_link_tag = 16;
constexpr uint64_t links_of_node = 4; ///< the last of them is no link, and has the tags of timers
enum timer_of_node : uint64_t { pause_over, tries_over };

/// The guides have the first tags, then each node has those of its links.
constexpr uint64_t tags_of(uint64_t node, uint64_t link) {
  return first_link_tag + (1 + node * links_of_node + link) * store_link::tags;
}

auto nodes_now() { return std::chrono::steady_clock::now(); }

std::chrono::nanoseconds patience_of(const remote_plan& plan) {
  const auto least = plan.address.is_bulk() ? remote_store::patience_of_bulk : remote_store::patience_min;
  return std::max<std::chrono::nanoseconds>(least, 4 * plan.lookup_budget);
}

/// A connection to a bucket has one value under way, and a plugin is given some at a time.
remote::byte_window window_of(const remote_plan& plan) {
  constexpr uint64_t of_bulk = 4 * remote::bulk_part_bytes;
  return plan.address.is_bulk() ? remote::byte_window({.smallest_bytes = of_bulk}) : remote::byte_window();
}

remote::breaker breaker_of(const remote::store_address& address) {
  remote::breaker::options with{.failures_in_a_row = 1};
  if (address.at != remote::store_address::kind::plugin)
    with.quick_pause = remote_store::before_another_try;
  return remote::breaker(with);
}

std::chrono::nanoseconds patience_for_writes_of(const remote_plan& plan) {
  const auto least =
      plan.address.is_bulk() ? remote_store::patience_of_bulk_for_writes : remote_store::patience_for_writes;
  return std::max<std::chrono::nanoseconds>(least, patience_of(plan));
}

/// From the kernel.
std::array<uint8_t, 32> random_bytes() {
  std::array<boot_id, 2> random{random_boot_id(), random_boot_id()};
  std::array<uint8_t, 32> bytes;
  static_assert(sizeof random == sizeof bytes);
  std::memcpy(bytes.data(), random.data(), bytes.size());
  return bytes;
}

/// Null: the realm does not encrypt its values.
std::unique_ptr<remote::value_cipher> cipher_of(const remote::realm& names) {
  if (names.cipher_key().empty())
    return nullptr;
  return std::make_unique<remote::value_cipher>(names.cipher_key(), random_bytes());
}

} // namespace

remote_store::remote_store(self_pointer self, remote_store_arguments arguments)
    : self_(self), with_(std::move(arguments)),
      own_names_(
          with_.plan.names.with_key(random_bytes())), // nobody else derives these, and they end with this run
      cipher_(cipher_of(with_.plan.names)), random_(random_entry_key_salt().first),
      run_(random_()), guides_{.link = make_valkey_link(callbacks_of(
                                   first_link_tag, patience_of(with_.plan),
                                   [this](const remote::finished_command& told) { on_guided(told); })),
                               .all = with_.plan.address.guides} {
  realm_.key = with_.plan.names.epoch_key_of_all();
  with_.probe->degraded(true);
  read_records();
  if (in_cluster())
    ask_guides();
  else
    connect(*add_node(with_.plan.address));
  if (with_.plan.address.reads_replicas)
    ask_for_replicas_later();
}

// ---- nodes ----

store_link::callbacks
remote_store::callbacks_of(uint64_t first_tag, std::chrono::nanoseconds silence_max,
                           std::function<void(const remote::finished_command&)> finished) {
  return {.first_tag = first_tag,
          .silence_max = silence_max,
          .submit =
              [this](runtime::io_request request, uint64_t tag) {
                return self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_),
                                            tag);
              },
          .cancel = [this](runtime::operation_id id) { self_->port().cancel(id); },
          .ready = [this] { on_guide_ready(); },
          .finished = std::move(finished),
          .failed = [this](const std::string& why) { leave_guide(why); },
          .hedged = [this](bool won) { with_.counts->hedged(won); },
          .retried = [this](bool writes) { with_.counts->retried(writes); },
          .turned = [this] { pump(); }};
}

store_link::callbacks
remote_store::callbacks_of(uint64_t first_tag, std::chrono::nanoseconds silence_max,
                           std::function<void(const remote::finished_command&)> finished, node& of) {
  auto call = callbacks_of(first_tag, silence_max, std::move(finished));
  call.ready = [this, &of] { on_link_ready(of); };
  call.failed = [this, &of](const std::string& why) { close(of, why); };
  call.turned = [this, &of] { pump(of); };
  return call;
}

/// The meter learns when answers begin.
store_link::callbacks remote_store::callbacks_of_reads(node& of) {
  auto call = callbacks_of(
      tags_of(of.number, 1), patience_of(with_.plan),
      [this, &of](const remote::finished_command& done) { on_moved(of, of.reads, done); }, of);
  call.received = [this](uint64_t bytes, time_point at) { with_.meter->answered(bytes, at); };
  return call;
}

remote_store::node::node(remote_store& store, uint64_t its_number, remote::store_address where)
    : number(its_number), address(std::move(where)),
      questions_link(make_link(
          address, store.callbacks_of(
                       tags_of(number, 0), patience_of(store.with_.plan),
                       [this](const remote::finished_command& reply) { on_told(*this, reply); }, *this))),
      reads{make_link(address, store.callbacks_of_reads(*this)), window_of(store.with_.plan)},
      writes{make_link(address, store.callbacks_of(
                                    tags_of(number, 2), patience_for_writes_of(store.with_.plan),
                                    [this, &store](const remote::finished_command& done) {
                                      store.on_moved(*this, writes, done);
                                    },
                                    *this)),
             window_of(store.with_.plan)},
      breaker(breaker_of(address)) {}

remote_store::node* remote_store::add_node(remote::store_address address) {
  const uint64_t number = next_node_++;
  return (nodes_[number] = std::make_unique<node>(*this, number, std::move(address))).get();
}

/// The node of the cluster with this address, which is connected to if it is new. Null: it is no address, or there are too many.
remote_store::node* remote_store::node_at(const std::string& address, bool as_replica) {
  auto parsed = remote::parse_store_address(address);
  if (!parsed || !parsed->is_place())
    return nullptr;
  for (const auto& [number, known] : nodes_)
    if (!known->leaves && known->is_replica() == as_replica && known->address.same_place(*parsed))
      return known.get();
  if (nodes_.size() >= (as_replica ? nodes_max_with_replica : nodes_max))
    return nullptr;
  if (!with_.plan.address.name.empty())
    parsed->name = with_.plan.address.name;
  parsed->of_replica = as_replica;
  node* made = add_node(std::move(*parsed));
  connect(*made);
  return made;
}

/// Null: nobody has the key's slot.
remote_store::node* remote_store::node_of(std::string_view key) const {
  if (!in_cluster())
    return nodes_.begin()->second.get();
  return owners_.empty() ? nullptr : owners_[remote::slot_of(key)];
}

bool remote_store::serving() const {
  return std::ranges::any_of(
      nodes_, [](const auto& each) { return each.second->ready() && !each.second->is_replica(); });
}

void remote_store::after(std::chrono::nanoseconds time, uint64_t tag) {
  runtime::io_request wait;
  wait.code = runtime::io_code::timeout;
  wait.after = std::max(time, std::chrono::nanoseconds(0));
  self_->port().submit(std::move(wait), caf::actor_cast<caf::strong_actor_ptr>(self_), tag);
}

void remote_store::connect(node& to) {
  to.now = phase::connecting;
  if (with_.plan.address.at == remote::store_address::kind::sentinels)
    ask_guides();
  else
    connect_to_server(to);
}

void remote_store::connect_to_server(node& to) {
  for (store_link* link : to.links())
    if (to.now == phase::connecting && to.uses(link))
      link->connect(to.address, with_.plan.credentials);
}

void remote_store::on_link_ready(node& of) {
  for (const store_link* link : of.links())
    if (of.uses(link) && !link->ready())
      return;
  if (of.is_replica())
    return on_ready(of);
  remote::store_commands& server = *of.questions_link->server();
  const auto mistake = remote::mistaken_scheme(with_.plan.address, of.address.text, server.mode(), false);
  if (!mistake.empty()) {
    of.refused = true;
    return close(of, mistake);
  }
  of.told = server.can_track();
  if (!of.told)
    return on_ready(of);
  ask_store(
      of, [](remote::store_commands& to) { to.track(0); },
      [this, &of](const remote::finished_command* reply) {
        if (reply == nullptr)
          return;
        of.told = reply->result == command_result::done;
        on_ready(of);
      });
}

void remote_store::on_ready(node& is) {
  is.now = phase::ready;
  if (is.breaker.now() == remote::breaker::state::half_open)
    is.breaker.trial_succeeded(nodes_now());
  is.why.clear();
  const bool was_lost = !std::exchange(is.warned, {}).empty();
  tell_state();
  if (was_lost)
    with_.log(in_cluster() ? "the node at " + is.address.text + " is in service again"
                           : "is in service again");
  if (is.is_replica())
    return;
  for (const auto& [of, space] : all_tokens()) {
    if (node_of(of->key) == &is || of->read_at == is.number)
      of->token.ask_again(); // another machine may have cleared it meanwhile
    prepare(space);
  }
}

/// The realm's first.
std::vector<std::pair<remote_store::token_state*, remote_store::space_state_ptr>> remote_store::all_tokens() {
  std::vector<std::pair<token_state*, space_state_ptr>> all{{&realm_, nullptr}};
  for (const auto& [fingerprint, space] : earlier_)
    all.emplace_back(&space->epoch, space);
  for (const auto& [id, space] : spaces_)
    all.emplace_back(&space->epoch, space);
  return all;
}

/// The store is in service once all nodes that can be reached are, and as long as one is. Without its replicas it is as well.
void remote_store::tell_state() {
  bool ready = false, connecting = false;
  std::string away, away_replica;
  for (const auto& [number, each] : nodes_) {
    if (each->is_replica()) {
      if (!each->leaves && !each->ready() && away_replica.empty())
        away_replica = each->warned;
      continue;
    }
    ready |= each->ready();
    connecting |= !each->leaves && each->now == phase::connecting && each->warned.empty();
    if (!each->leaves && !each->ready() && !each->warned.empty() && away.empty())
      away = each->warned;
  }
  with_.probe->degraded(!ready || !away.empty());
  if (!ready && !away.empty())
    return with_.service->stops(away);
  if (!ready)
    return;
  if (!connecting && !with_.service->reads())
    with_.service->serves();
  const auto uncovered = slots_.uncovered();
  if (!away.empty())
    with_.service->set_notice(away + "; what its slots have is missed");
  else if (in_cluster() && uncovered != 0)
    with_.service->set_notice(format_counted(uncovered, "slot") + " of the cluster belong" +
                              (uncovered == 1 ? "s" : "") +
                              " to no node, and what would be there is missed; look at CLUSTER INFO");
  else if (!away_replica.empty())
    with_.service->set_notice(away_replica + "; other nodes are read instead of this replica");
  else
    with_.service->set_notice({});
}

/// Ends the connections. What waits is answered once the kernel has let go of its memory.
void remote_store::close(node& lost, const std::string& why) {
  if (lost.now == phase::closing)
    return;
  lost.served = lost.ready();
  const bool told = lost.served && lost.told;
  lost.now = phase::closing;
  lost.why = (in_cluster() ? "the node at " : "the store at ") + lost.address.text + ": " + why;
  const bool is_new = !lost.leaves && lost.why != lost.warned;
  if (is_new)
    lost.warned = lost.why;
  tell_state();
  if (is_new)
    with_.warn((lost.is_replica() ? "does not read from a replica: "
                : in_cluster()    ? "is out of service in part: "
                                  : "is out of service: ") +
               lost.why);
  for (store_link* link : lost.links())
    link->end();
  if (!in_cluster())
    guides_.link->end();
  if (!lost.is_replica())
    book_.forget_all();
  for (const auto& [of, space] : all_tokens())
    if (node_of(of->key) == &lost && !in_cluster())
      of->token.ask_again();
    else if (of->read_at == lost.number && told)
      of->token.is_not_told(nodes_now());
  auto unanswered = std::exchange(lost.expected, {});
  for (auto& question : std::exchange(lost.questions, {}))
    unanswered.push_back(std::move(question.replies));
  for (const expected_replies& replies : unanswered)
    replies.told(nullptr);
  if (in_cluster() && !lost.leaves)
    want_map();
  lose(lost);
}

void remote_store::lose(node& lost) {
  const auto idle = [](const store_link* link) { return link->idle(); };
  if (lost.now != phase::closing || !std::ranges::all_of(lost.links(), idle) ||
      (!in_cluster() && !guides_.link->idle()))
    return;
  lost.now = phase::down;
  const bool refused =
      std::exchange(lost.refused, false) ||
      std::ranges::any_of(lost.links(), [](const store_link* link) { return link->refused(); }) ||
      (!in_cluster() && guides_.link->refused());
  const bool silent =
      std::ranges::any_of(lost.links(), [](const store_link* link) { return link->silent(); });
  for (store_link* link : lost.links())
    link->forget();
  if (!in_cluster())
    guides_.link->forget();
  const auto now = nodes_now();
  using trial = remote::breaker::trial;
  if (!lost.leaves && lost.breaker.now() == remote::breaker::state::half_open)
    lost.breaker.trial_failed(refused ? trial::refused : trial::no_answer, now, random_());
  else if (!lost.leaves)
    lost.breaker.failed(now, random_());
  const bool again = std::exchange(lost.served, false) && !refused && !silent && !lost.leaves &&
                     !lost.is_replica() && lost.breaker.is_quick();
  for (step_ptr& each : take_lost(lost, again))
    unanswered(std::move(each));
  if (lost.leaves)
    return;
  after(lost.breaker.retry_at() - now, tags_of(lost.number, links_of_node - 1) + pause_over);
  if (lost.reads.has_steps() || lost.writes.has_steps())
    after(patience_of(with_.plan), tags_of(lost.number, links_of_node - 1) + tries_over);
}

/// `again`: what may be asked for once more waits for the next connection, in its order. Returns the others.
std::vector<remote_store::step_ptr> remote_store::take_lost(node& lost, bool again) {
  std::vector<step_ptr> others;
  for (lane* each : {&lost.reads, &lost.writes}) {
    each->window.restart();
    each->waiting_bytes = 0;
    auto all = std::exchange(each->waiting, {});
    for (auto sent = std::exchange(each->sent, {}); !sent.empty(); sent.pop_back())
      all.push_front(std::move(sent.back()));
    for (step_ptr& one : all) {
      if (!again || one->tried != tries::first) {
        others.push_back(std::move(one));
        continue;
      }
      if (one->tag != 0)
        one->tried = tries::lost;
      each->waiting_bytes += one->bytes;
      each->waiting.push_back(std::move(one));
    }
  }
  return others;
}

/// No other connection is there in time. One that is lost already answers by itself.
void remote_store::give_up(node& away) {
  if (!away.ready() && away.now != phase::closing)
    for (step_ptr& each : take_lost(away, false))
      unanswered(std::move(each));
}

void remote_store::ask_store(node& at, std::function<void(remote::store_commands&)> ask, said told,
                             size_t replies, bool asking) {
  assert(replies <= slice_objects);
  auto timed = [this, told = std::move(told), asked = nodes_now()](const remote::finished_command* reply) {
    // A link answers by itself what its kind of store cannot be asked.
    if (reply != nullptr && reply->why.code != errc::unsupported)
      with_.counts->answered(nodes_now() - asked);
    told(reply);
  };
  at.questions.push_back({std::move(ask), {std::move(timed), replies}, asking});
}

void remote_store::on_told(node& by, const remote::finished_command& finished) {
  if (--by.expected.front().left != 0)
    return by.expected.front().told(&finished);
  auto last = std::move(by.expected.front());
  by.expected.pop_front();
  last.told(&finished);
}

/// Begins what there is room for, sends and receives.
void remote_store::pump() {
  if (guides_.leaves && guides_.link->idle())
    after_guide();
  guides_.link->pump(nullptr);
  for (const auto& [number, each] : nodes_)
    pump(*each);
}

void remote_store::pump(node& with) {
  if (with.leaves && with.ready() && !ends_its_reads(with))
    close(with, without_slots);
  if (with.now == phase::closing)
    return lose(with);
  take_invalidated(with);
  while (!with.questions.empty() && with.questions_link->ready() &&
         with.questions_link->server()->has_room(with.questions.front().replies.left + 1)) {
    auto next = std::move(with.questions.front());
    with.questions.pop_front();
    with.expected.push_back(std::move(next.replies));
    if (next.asking)
      with.questions_link->server()->asking();
    next.ask(*with.questions_link->server());
  }
  with.questions_link->pump(nullptr);
  for (lane* each : {&with.reads, &with.writes}) {
    while (with.ready() && begin_next(*each)) {
    }
    each->link->pump(each->sent.empty() ? nullptr : each->sent.front());
  }
}

void remote_store::on_io_done(const runtime::io_done& done) {
  if (done.tag >= first_link_tag) {
    on_node_done(done);
  } else {
    if (done.tag == budget_timer) {
      on_budget();
    } else if (done.tag == limit_timer) {
      on_limit();
    } else if (done.tag == clears_timer) {
      clear_again();
    } else if (done.tag == replicas_timer) {
      ask_for_replicas_later();
      want_map();
    } else {
      if (guides_.breaker.now() == remote::breaker::state::open)
        guides_.breaker.begin_trial();
      ask_guides();
    }
    pump();
  }
  erase_left();
}

void remote_store::on_node_done(const runtime::io_done& done) {
  const uint64_t link = (done.tag - first_link_tag) / store_link::tags;
  if (link == 0) {
    guides_.link->on_io_done(done.tag, done.result);
    return pump();
  }
  auto of = nodes_.find((link - 1) / links_of_node);
  if (of == nodes_.end())
    return;
  node& each = *of->second;
  const uint64_t place = (link - 1) % links_of_node;
  if (place != links_of_node - 1) {
    each.links()[place]->on_io_done(done.tag, done.result);
  } else if ((done.tag - first_link_tag) % store_link::tags == tries_over) {
    give_up(each);
  } else if (!each.leaves) {
    each.breaker.begin_trial();
    connect(each);
    if (in_cluster())
      want_map();
  }
  if (!in_cluster() || guides_.leaves)
    pump();
  else
    pump(each);
}

/// Nodes without slots whose connections have ended.
void remote_store::erase_left() {
  std::erase_if(nodes_,
                [](const auto& each) { return each.second->leaves && each.second->now == phase::down; });
}

} // namespace terrace::actors
