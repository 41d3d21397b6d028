#include "policy/eviction_tracker.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

eviction_tracker::eviction_tracker(uint64_t seed, bool remember) : seed_(seed), remember_(remember) {}
eviction_tracker::~eviction_tracker() = default;

bool eviction_tracker::alive_somewhere(entry_index at) const {
  return std::any_of(tiers_.begin(), tiers_.end(), [&](auto& t) { return t && t->forest().alive(at); });
}

bool eviction_tracker::resident_somewhere(entry_index at) const {
  return std::any_of(tiers_.begin(), tiers_.end(), [&](auto& t) { return t && t->forest().resident(at); });
}

bool eviction_tracker::remembers() const {
  return remember_ || std::any_of(tiers_.begin(), tiers_.end(), [](auto& t) {
           return t && (t->policy().keeps_ghosts() || t->policy().learns());
         });
}

// ---- time ----

void eviction_tracker::advance(policy_time now, bool anew) {
  clock_.advance(now, anew);
  if (!clock_.overflows())
    return;
  clock_.rebase();
  for (entry_index at = 0; at < table_.end(); ++at)
    table_[at].stamp = access_clock::rebased(table_[at].stamp);
  open_.rebase();
  for (auto& t : tiers_)
    if (t)
      t->policy().on_rebase();
}

// ---- policies ----

result<void> eviction_tracker::set_policy(tier_number number, std::string_view name) {
  if (number >= tiers_max)
    return fail(errc::bad_request,
                "expected a tier below " + std::to_string(tiers_max) + ", got " + std::to_string(number));
  auto fresh = tiers_[number] ? nullptr : std::make_unique<tracked_tier>(table_);
  tracked_tier& t = fresh ? *fresh : *tiers_[number];
  auto policy =
      make_eviction_policy(name, {table_, t.forest(), history_, clock_, retention_, spared_, seed_ + number});
  if (!policy)
    return tl::unexpected(policy.error());
  if ((*policy)->learns())
    history_.start();
  auto names = eviction_policy_names();
  t.set_policy(std::move(*policy), *std::find(names.begin(), names.end(), name));
  if (fresh)
    tiers_[number] = std::move(fresh);
  return {};
}

std::string_view eviction_tracker::policy(tier_number number) const {
  const tracked_tier* t = tier(number);
  return t ? t->policy_name() : std::string_view{};
}

// ---- requests and accesses ----

entry_index eviction_tracker::find_told(entry_key key) {
  entry_index at = table_.find_near(key, told_);
  told_ = at == no_entry ? told_ : at;
  return at;
}

entry_index eviction_tracker::add_ghost(entry_key key) {
  ++ghosts_;
  return table_.add(key);
}

request_number eviction_tracker::begin_request(std::span<const entry_key> chain, const request_hints& hints,
                                               policy_time now) {
  advance(now, true);
  retention_ = std::min<uint8_t>(hints.retention, 7);
  bool remember = remembers();
  size_t known = 0;
  chain_.clear();
  for (entry_key key : chain) {
    entry_index at = find_told(key);
    if (at != no_entry) {
      chain_.push_back(at);
      known = chain_.size();
    } else if (remember && !key.empty()) {
      chain_.push_back(add_ghost(key));
    }
  }
  history_.begin(chain_, known, hints.turn, hints.space);
  used_.assign(chain_.rbegin(), chain_.rend());
  use(used_, clock_.stamp());
  limit_ghosts();
  auto [number, request] = open_.begin(clock_.stamp(), retention_);
  if (history_.started())
    request->chain = chain_;
  return number;
}

long_request eviction_tracker::begin_long_request(const request_hints& hints, policy_time now) {
  advance(now, true);
  return {open_.begin(clock_.stamp(), hints.retention).first, hints};
}

void eviction_tracker::find_part(long_request& request, std::span<const entry_key> part) const {
  request.find(table_, part, remembers());
}

void eviction_tracker::use_part(long_request& request, std::span<const entry_key> part, policy_time now) {
  advance(now, false);
  retention_ = request.retention();
  open_request* open = open_.find(request.number());
  uint32_t stamp = open ? open->stamp : clock_.stamp(); // all parts of a request have the same stamp
  request.go_on(history_, table_, stamp);
  bool remember = remembers();
  for (size_t i = part.size(); i-- > 0;) {
    entry_index at = table_.find(part[i]);
    if (at == no_entry) {
      if (!remember || part[i].empty())
        continue;
      at = add_ghost(part[i]);
    }
    request.mark(history_, at);
    if (table_[at].stamp < stamp) // otherwise it was used since, or by this request when it was inserted
      use({&at, 1}, stamp);
    if (history_.started() && open && open->chain.size() < answered_entries_max)
      open->chain.push_back(at);
  }
  limit_ghosts();
}

void eviction_tracker::end_request(request_number number, const request_outcome& outcome, policy_time now) {
  advance(now, false);
  const open_request* request = open_.find(number);
  if (!request)
    return;
  history_.end(request->chain, request->stamp,
               ending_of(outcome, access_clock::milliseconds(clock_.stamp() - request->stamp)));
  open_.end(number);
}

void eviction_tracker::use(std::span<const entry_index> entries, uint32_t stamp) {
  while (!entries.empty()) {
    auto done = history_.use(entries, stamp);
    for (tier_number number = 0; number < tiers_max; ++number) {
      tracked_tier* t = tier(number);
      if (!t)
        continue;
      size_t residents = 0;
      for (entry_index at : entries.first(done.entries)) {
        if (t->forest().resident(at)) {
          t->policy().on_hit(at, done.before);
          ++residents;
        } else {
          t->policy().on_ghost_hit(at, done.before);
        }
      }
      if (observer_ && residents != 0 &&
          done.before < stamp) // otherwise several tiers would report one access
        observer_->reused(number, access_clock::milliseconds(stamp - done.before), residents);
    }
    entries = entries.subspan(done.entries);
  }
}

void eviction_tracker::hit(tier_number number, entry_key key, policy_time now, size_t entries) {
  tracked_tier* t = tier(number);
  if (!t)
    return;
  used_.clear();
  for (entry_index at = find_told(key); at != no_entry && entries != 0; at = table_[at].parent, --entries)
    if (t->forest().resident(at))
      used_.push_back(at);
  if (used_.empty())
    return;
  advance(now, false);
  retention_ = 0;
  use(used_, clock_.stamp());
}

// ---- residents ----

void eviction_tracker::insert(tier_number number, const entry_info& entry, policy_time now,
                              request_number request) {
  tracked_tier* t = tier(number);
  if (!t || entry.key.empty())
    return;
  entry_index at = table_.find(entry.key);
  if (at != no_entry && t->forest().resident(at)) {
    if (request == 0)
      hit(number, entry.key, now);
    return;
  }
  advance(now, false);
  const open_request* open = open_.find(request);
  retention_ = open ? open->retention : 0;
  if (at == no_entry) {
    at = add_ghost(entry.key);
    use({&at, 1}, open ? open->stamp : clock_.stamp());
  } else if (request == 0 && !resident_somewhere(at)) {
    use({&at, 1}, clock_.stamp());
  } else if (table_[at].stamp == 0 && open) {
    use({&at, 1}, open->stamp); // an ancestor that was added with its child after the request began
  }
  bool was_alive_somewhere = alive_somewhere(at), was_alive = t->forest().alive(at);
  if (!was_alive_somewhere)
    --ghosts_;
  t->forest().enter(at, entry.bytes);
  t->policy().on_insert(at);
  if (!was_alive)
    raise(*t, at);
  if (table_[at].parent == no_entry && !entry.parent.empty()) {
    link(at, entry.parent);
    if (open)
      link_gap(*open, entry.parent);
  }
  t->add_if_evictable(at);
}

/// A request that had to give up chunks of its own continues behind them. The chunks before and behind the gap are
/// linked again: then those before it are not leaves, and those behind it, which cannot be reached, are evicted first.
void eviction_tracker::link_gap(const open_request& request, entry_key missing) {
  entry_key parent = request.parent_of(missing);
  for (; !parent.empty(); missing = parent, parent = request.parent_of(missing)) {
    entry_index at = table_.find(missing);
    if (at == no_entry || table_[at].parent != no_entry)
      return;
    link(at, parent);
  }
}

void eviction_tracker::link(entry_index at, entry_key parent) {
  if (parent == table_[at].key)
    return;
  entry_index above = table_.find(parent);
  if (above == no_entry) {
    above = add_ghost(parent);
  } else {
    bool inner =
        std::any_of(tiers_.begin(), tiers_.end(), [&](auto& t) { return t && t->forest().has_children(at); });
    for (entry_index i = above; inner && i != no_entry; i = table_[i].parent)
      if (i == at)
        return; // a cycle would leave no leaf
  }
  table_[at].parent = above;
  if (!alive_somewhere(above))
    --ghosts_;
  for (auto& t : tiers_)
    if (t && t->forest().alive(at)) {
      bool was_alive = t->forest().alive(above);
      t->forest().add_child(above);
      if (!was_alive)
        raise(*t, above);
    }
}

void eviction_tracker::raise(tracked_tier& t, entry_index at) {
  for (entry_index above = table_[at].parent; above != no_entry; above = table_[above].parent) {
    bool was_alive = t.forest().alive(above);
    t.forest().add_child(above);
    if (was_alive)
      return;
  }
}

void eviction_tracker::lower(tracked_tier& t, entry_index at) {
  while (at != no_entry && !t.forest().alive(at)) {
    entry_index above = table_[at].parent;
    if (!alive_somewhere(at))
      set_ghost(at);
    if (above == no_entry)
      return;
    t.forest().drop_child(above);
    t.add_if_evictable(above);
    at = above;
  }
}

void eviction_tracker::erase(tier_number number, entry_key key) {
  tracked_tier* t = tier(number);
  entry_index at = table_.find(key);
  if (!t || at == no_entry || !t->forest().resident(at))
    return;
  t->forest().leave(at);
  t->policy().on_evict(at);
  lower(*t, at);
  limit_ghosts();
}

void eviction_tracker::evict(tier_number number, entry_key key) {
  if (entry_index at = table_.find(key); observer_ && at != no_entry && resident(number, key))
    observer_->evicted(number, key, access_clock::milliseconds(clock_.stamp() - table_[at].stamp));
  erase(number, key);
}

void eviction_tracker::pin(tier_number number, entry_key key) {
  tracked_tier* t = tier(number);
  entry_index at = find_told(key);
  if (t && at != no_entry && t->forest().resident(at))
    t->forest().set_pinned(at, true);
}

void eviction_tracker::unpin(tier_number number, entry_key key) {
  tracked_tier* t = tier(number);
  entry_index at = find_told(key);
  if (!t || at == no_entry || !t->forest().pinned(at))
    return;
  t->forest().set_pinned(at, false);
  t->add_if_evictable(at);
}

// ---- ghosts ----

void eviction_tracker::set_ghost(entry_index at) {
  table_[at].parent = no_entry;
  ++ghosts_;
  if (!remembers())
    forget(at);
}

void eviction_tracker::forget(entry_index at) {
  history_.forget(at);
  for (auto& t : tiers_)
    if (t)
      t->policy().on_forget(at);
  table_.remove(at);
  --ghosts_;
}

void eviction_tracker::limit_ghosts() {
  constexpr int draw = 16;
  auto before = [&](entry_index a, entry_index b) {
    if (!history_.started())
      return table_[a].stamp < table_[b].stamp;
    return history_.value(a) < history_.value(b);
  };
  size_t share = history_.started() ? ghosts_per_resident_learning : ghosts_per_resident;
  while (ghosts_ > std::max(ghosts_min, share * (table_.size() - ghosts_))) {
    entry_index least = no_entry;
    for (int seen = 0; seen < draw; ++ghost_hand_) {
      if (ghost_hand_ >= table_.end())
        ghost_hand_ = 0;
      if (table_[ghost_hand_].key.empty() || alive_somewhere(ghost_hand_))
        continue;
      ++seen;
      if (least == no_entry || before(ghost_hand_, least))
        least = ghost_hand_;
    }
    forget(least);
  }
}

// ---- victims ----

std::vector<victim> eviction_tracker::victims(tier_number number, const victim_query& query,
                                              policy_time now) {
  tracked_tier* t = tier(number);
  if (!t)
    return {};
  advance(now, false);
  open_request* request = open_.find(query.spared);
  if (request)
    spared_ = request->stamp;
  else if (query.spare_present)
    spared_ = clock_.stamp();
  auto chosen = t->choose_victims(query.bytes, spared_, query.spare_present);
  for (size_t i = 0; request && i < chosen.size(); ++i) {
    entry_index at = table_.find(chosen[i].key);
    if (table_[at].stamp == request->stamp && table_[at].parent != no_entry)
      request->gave_up(chosen[i].key, table_[table_[at].parent].key);
  }
  return chosen;
}

size_t eviction_tracker::admitted(tier_number number, std::span<const entry_info> entries,
                                  admission_rule rule, policy_time now) {
  tracked_tier* t = tier(number);
  if (!t)
    return 0;
  if (rule == admission_rule::always)
    return entries.size();
  advance(now, false);
  chain_.clear();
  for (const entry_info& entry : entries) {
    entry_index at = table_.find(entry.key);
    if (rule == admission_rule::seen_twice && (at == no_entry || history_.uses(at) < 2) &&
        !resident(number, entry.parent))
      return static_cast<size_t>(&entry - entries.data());
    chain_.push_back(at);
  }
  if (rule == admission_rule::seen_twice)
    return entries.size();
  t->reset_chosen();
  auto unknown = std::find(chain_.begin(), chain_.end(),
                           no_entry); // entries unknown to the tracker count as worth admitting
  chain_.erase(unknown, chain_.end());
  size_t better = t->policy().beating_victim(chain_);
  return better == chain_.size() ? entries.size() : better;
}

// ---- queries ----

bool eviction_tracker::pinned(tier_number number, entry_key key) const {
  const tracked_tier* t = tier(number);
  entry_index at = table_.find(key);
  return t && at != no_entry && t->forest().pinned(at);
}

bool eviction_tracker::resident(tier_number number, entry_key key) const {
  const tracked_tier* t = tier(number);
  entry_index at = table_.find(key);
  return t && at != no_entry && t->forest().resident(at);
}

size_t eviction_tracker::residents(tier_number number) const {
  const tracked_tier* t = tier(number);
  return t ? t->forest().residents() : 0;
}

std::vector<entry_info> eviction_tracker::list_residents(tier_number number) const {
  std::vector<entry_info> all;
  const tracked_tier* t = tier(number);
  for (entry_index at = 0; t && at < table_.end(); ++at)
    if (t->forest().resident(at))
      all.push_back({table_[at].key, {}, t->forest().bytes_of(at)});
  return all;
}

size_t eviction_tracker::bytes() const {
  size_t total = sizeof *this + table_.bytes() + history_.bytes();
  for (auto& t : tiers_)
    if (t)
      total += t->bytes();
  return total;
}

} // namespace terrace
