// Who tells a remote store where its server is, or who has which slots: sentinels, or nodes of the cluster.
#include "actors/remote/remote_store.hpp"

#include <algorithm>

namespace terrace::actors {

using remote::command_result;

namespace {

auto cluster_now() { return std::chrono::steady_clock::now(); }

} // namespace

// ---- who tells where the server is, or the slots are ----

/// One after the other is asked, until one tells.
void remote_store::ask_guides() {
  guides_.asks = true;
  guides_.again = false;
  guides_.tried = 0;
  if (in_cluster()) { // those that are in service know best
    std::vector<remote::store_address> all;
    for (const auto& [number, each] : nodes_)
      if (each->ready() && !each->is_replica())
        all.push_back(each->address);
    std::ranges::shuffle(all, random_);
    if (auto best = nodes_.find(std::exchange(guides_.best, UINT64_MAX));
        best != nodes_.end() && best->second->ready())
      all.insert(all.begin(), best->second->address);
    for (const remote::store_address& named : with_.plan.address.guides)
      if (std::ranges::none_of(all, [&](const auto& other) { return other.same_place(named); }))
        all.push_back(named);
    guides_.all = std::move(all);
    guides_.next = 0;
  }
  ask_guide();
}

void remote_store::ask_guide() {
  guides_.failure = "it does not tell";
  guides_.leaves = guides_.refused = false;
  remote::store_credentials with = with_.plan.credentials;
  if (!in_cluster())
    with.login = with.of_sentinels;
  guides_.link->connect(guides_.all[guides_.next], with);
  if (guides_.leaves && guides_.link->idle())
    after_guide(); // it has failed at once
}

void remote_store::on_guide_ready() {
  const auto mode = guides_.link->server()->mode();
  const auto mistake =
      remote::mistaken_scheme(with_.plan.address, guides_.all[guides_.next].text, mode, true);
  if (!mistake.empty()) {
    guides_.refused = true;
    return leave_guide(mistake);
  }
  if (in_cluster())
    guides_.link->server()->slots(0);
  else
    guides_.link->server()->primary(0, with_.plan.address.primary);
}

void remote_store::on_guided(const remote::finished_command& told) {
  const remote::store_address& guide = guides_.all[guides_.next];
  guides_.refused |= told.result == command_result::refused;
  auto read = remote::read_guidance(with_.plan.address, guide.text, told);
  if (!read)
    return leave_guide(read.error().text);
  if (in_cluster()) {
    slots_ = std::move(read->slots);
    return leave_guide({});
  }
  node& server = *nodes_.begin()->second;
  if (!server.address.same_place(read->server))
    with_.log("uses the server at " + told.text + ", as its sentinel at " + guide.text + " tells");
  server.address = std::move(read->server);
  leave_guide({});
}

void remote_store::leave_guide(const std::string& why) {
  guides_.failure = why;
  guides_.leaves = true;
  guides_.link->end();
}

/// Its connection has ended.
void remote_store::after_guide() {
  guides_.leaves = false;
  guides_.refused |= guides_.link->refused();
  guides_.link->forget();
  if (guides_.failure.empty()) {
    guides_.asks = false;
    return in_cluster() ? use_map() : connect_to_server(*nodes_.begin()->second);
  }
  const std::string of_last = guides_.all[guides_.next].text + ": " + guides_.failure;
  guides_.next = (guides_.next + 1) % guides_.all.size();
  if (++guides_.tried != guides_.all.size())
    return ask_guide();
  guides_.asks = false;
  no_guide_tells(of_last);
}

void remote_store::no_guide_tells(const std::string& why) {
  if (!in_cluster())
    return close(*nodes_.begin()->second, "no sentinel tells where it is; the sentinel at " + why);
  if (!serving()) {
    const std::string all =
        "the cluster at " + with_.plan.address.text + ": no node tells its slots; the node at " + why;
    with_.service->stops(all);
    if (std::exchange(warned_, all) != all)
      with_.warn("is out of service: " + all);
  }
  const auto now = cluster_now();
  using trial = remote::breaker::trial;
  if (guides_.breaker.now() == remote::breaker::state::half_open)
    guides_.breaker.trial_failed(guides_.refused ? trial::refused : trial::no_answer, now, random_());
  else
    guides_.breaker.failed(now, random_());
  after(guides_.breaker.retry_at() - now, map_timer);
}

// ---- clusters ----

/// The slots may have other owners. Many machines do not ask at once.
void remote_store::want_map() {
  if (guides_.asks) {
    guides_.again = true;
    return;
  }
  if (guides_.breaker.now() == remote::breaker::state::open)
    return; // all are asked again when its pause is over
  const auto now = cluster_now();
  const auto next = guides_.told_at + between_maps;
  if (next <= now)
    return ask_guides();
  guides_.asks = true;
  after(next - now + std::chrono::microseconds(random_() % 50'000), map_timer);
}

/// No node has a slot, or one does not serve: nobody tells when that is over. Returns false if the slots were told lately.
bool remote_store::doubt_map() {
  if (!in_cluster() || guides_.asks || cluster_now() - guides_.told_at < between_doubts)
    return false;
  want_map();
  return true;
}

void remote_store::use_map() {
  const auto now = cluster_now();
  guides_.told_at = now;
  if (guides_.breaker.now() == remote::breaker::state::half_open)
    guides_.breaker.trial_succeeded(now);
  if (!std::exchange(warned_, {}).empty())
    with_.log("knows the slots of its cluster again");
  const auto tokens = all_tokens();
  std::vector<node*> owners_of_tokens;
  for (const auto& [of, space] : tokens)
    owners_of_tokens.push_back(node_of(of->key));
  std::vector<node*> primaries, owners(remote::cluster_slots, nullptr);
  for (const std::string& address : slots_.primaries())
    primaries.push_back(node_at(address));
  for (const auto& [number, each] : nodes_)
    each->slots = 0;
  for (uint32_t slot = 0; slot < remote::cluster_slots; ++slot)
    if (auto owner = slots_.owner(static_cast<uint16_t>(slot)); owner && primaries[*owner] != nullptr) {
      owners[slot] = primaries[*owner];
      ++owners[slot]->slots;
    }
  use_replicas(primaries);
  const bool changed = owners != owners_;
  owners_ = std::move(owners);
  if (changed)
    book_.forget_all();
  for (const auto& [number, each] : nodes_)
    if (each->slots == 0 && !std::exchange(each->asked, false) && !each->leaves) {
      each->leaves = true;
      hand_over(*each);
      if (each->now != phase::down && !ends_its_reads(*each))
        close(*each, without_slots);
    }
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& [of, space] = tokens[i];
    if (node_of(of->key) == owners_of_tokens[i])
      continue;
    of->token.ask_again();
    prepare(space);
  }
  tell_state();
  if (guides_.again)
    want_map();
}

/// What waits for another connection to it is asked of the nodes that have its slots now.
void remote_store::hand_over(node& leaving) {
  if (leaving.ready() || leaving.now == phase::closing)
    return;
  for (step_ptr& each : take_lost(leaving, false))
    if (node* other = node_of(*each); !enqueue(each, other))
      unanswered(std::move(each));
}

/// A replica that was promoted has what it was asked for, and its next connections are not there yet. It is asked for nothing more.
bool remote_store::ends_its_reads(const node& leaving) const {
  return leaving.ready() && leaving.is_replica() && leaving.reads.has_steps();
}

void remote_store::ask_for_replicas_later() {
  after(between_replicas + std::chrono::milliseconds(random_() % 2'000), replicas_timer);
}

/// A replica that a failover has made a primary, or the reverse, becomes another node: its former connections end.
void remote_store::use_replicas(const std::vector<node*>& primaries) {
  for (const auto& [number, each] : nodes_)
    each->replicas.clear();
  for (size_t i = 0; i < primaries.size() && with_.plan.address.reads_replicas; ++i) {
    if (primaries[i] == nullptr || primaries[i]->slots == 0)
      continue;
    for (const std::string& address : slots_.replicas_of(i))
      if (node* replica = node_at(address, true); replica != nullptr) {
        primaries[i]->replicas.push_back(replica);
        replica->slots = primaries[i]->slots;
      }
  }
}

/// The server is no longer the one that the address means.
bool remote_store::lost_its_server(const remote::finished_command& told) const {
  const bool by_sentinels = with_.plan.address.at == remote::store_address::kind::sentinels;
  return told.result == command_result::refused && !in_cluster() &&
         (told.redirected || (by_sentinels && told.why.code == errc::unsupported));
}

/// The node that has the key instead. Null: the command was not redirected, or to one that cannot be asked now.
remote_store::node* remote_store::redirected(const node& from, const remote::finished_command& told,
                                             uint32_t hops) {
  if (told.cluster_down && doubt_map())
    for (const auto& [of, space] : all_tokens())
      if (of->read_at == from.number)
        of->token.ask_again(); // another node may have its slot, and tell others of a clear
  if (!told.redirected || !in_cluster())
    return nullptr;
  if (!told.redirected->once) {
    guides_.best = from.number;
    want_map();
  }
  node* to = node_at(remote::completed_address(told.redirected->address, from.address.text));
  if (to != nullptr)
    to->asked = true;
  return to != nullptr && to->ready() && hops < hops_max ? to : nullptr;
}

} // namespace terrace::actors
