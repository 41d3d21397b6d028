#include "connection/client_holdings.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string>
#include <utility>

namespace terrace {

// ---- spaces ----

client_space_ptr client_spaces::find(space_id id) const {
  auto entry = spaces_.find(id);
  return entry == spaces_.end() ? nullptr : entry->second;
}

result<client_space_ptr> client_spaces::opened(uint32_t number) const {
  if (auto found = find(static_cast<space_id>(number)))
    return found;
  return fail(errc::not_found, "this connection has not opened space " + std::to_string(number) +
                                   "; open_space comes first, on every connection");
}

result<uint16_t> client_spaces::rank_in(const opened_space& opened) const {
  if (auto known = find(opened.id))
    return known->rank;
  const auto& pools = opened.spec.pools;
  if (opened.spec.world_size == 1 || std::ranges::all_of(pools, &pool_spec::replicated))
    return uint16_t{0};
  return fail(errc::bad_request,
              "the lease is in space " + std::to_string(static_cast<uint32_t>(opened.id)) + ", which has " +
                  std::to_string(opened.spec.world_size) +
                  " ranks and which this connection has not opened: expected an open_space before, which "
                  "says of which rank it is");
}

namespace {

/// Error: `bad_request` with the first difference.
result<void> same_terms(const client_space& open, const client_space& asked) {
  const request_defaults &is = open.defaults, &wanted = asked.defaults;
  const struct {
    const char* name;
    uint64_t is, wanted;
  } terms[] = {{"rank", open.rank, asked.rank},
               {"prefill_tokens_per_s", is.prefill_tokens_per_s, wanted.prefill_tokens_per_s},
               {"tiers", is.tiers, wanted.tiers},
               {"priority", is.priority, wanted.priority},
               {"deadline_ms", is.deadline_ms, wanted.deadline_ms},
               {"no_load", is.no_load, wanted.no_load},
               {"no_store", is.no_store, wanted.no_store}};
  for (const auto& term : terms)
    if (term.is != term.wanted)
      return fail(errc::bad_request, "this connection has the space open with " + std::string(term.name) +
                                         " " + std::to_string(term.is) +
                                         ", which its requests rely on: expected the same, got " + term.name +
                                         " " + std::to_string(term.wanted) +
                                         "; open it on another connection, or close the space first");
  return {};
}

} // namespace

result<void> client_spaces::add(std::shared_ptr<client_space> opened) {
  auto id = opened->space->id;
  if (auto known = find(id))
    return same_terms(*known, *opened);
  if (spaces_.size() >= spaces_max_)
    return fail(errc::busy, "the connection has " + std::to_string(spaces_.size()) +
                                " spaces open, as many as a connection may have (a 16th of "
                                "connection.group_spaces_max, at least 64); close some");
  // registered last, because a refused rank would count as one that has left
  opened->presence = std::make_unique<rank_presence::member>(opened->space->ranks, opened->rank);
  spaces_.emplace(id, std::move(opened));
  assert(spaces_.size() <= spaces_max_);
  return {};
}

result<void> client_holdings::close_space(space_id id) {
  auto number = std::to_string(static_cast<uint32_t>(id));
  if (!spaces_.find(id))
    return fail(errc::not_found, "this connection has not opened space " + number);
  auto held = std::find_if(leases_.begin(), leases_.end(), [id](const auto& each) {
    const lease_ptr& lease = each.second.lease;
    return lease && lease->space && lease->space->id == id;
  });
  if (held != leases_.end())
    return fail(errc::busy, "the connection holds a lease in space " + number + "; release it first");
  if (staging_ && staging_->in_use(id))
    return fail(errc::busy,
                "the connection has a reservation in space " + number + "; commit or abort it first");
  spaces_.close(id);
  return {};
}

// ---- regions ----

result<region_id> client_regions::add(client_region_ptr region) {
  if (regions_.size() >= regions_max_)
    return fail(errc::busy, "the connection has " + std::to_string(regions_.size()) +
                                " regions, as many as a connection may have; unregister one");
  auto id = static_cast<region_id>(next_++);
  bytes_ += region->size();
  regions_.emplace(id, std::move(region));
  assert(regions_.size() <= regions_max_);
  return id;
}

bool client_regions::has(const client_region& region) const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [&](const auto& each) { return each.second.get() == &region; });
}

result<client_region_ptr> client_regions::registered(uint32_t number) const {
  if (auto entry = regions_.find(static_cast<region_id>(number)); entry != regions_.end())
    return entry->second;
  return fail(errc::not_found, "this connection has not registered region " + std::to_string(number));
}

client_region_ptr client_regions::remove(region_id id) {
  auto entry = regions_.find(id);
  if (entry == regions_.end())
    return nullptr;
  auto removed = std::move(entry->second);
  regions_.erase(entry);
  bytes_ -= removed->size();
  return removed;
}

uint64_t client_regions::counted_bytes() const {
  uint64_t counted = 0;
  for (const auto& [id, region] : regions_)
    counted += region->size();
  return counted;
}

void client_regions::close() {
  for (const auto& [id, region] : regions_)
    if (region->page() && region->page()->opened())
      opened_pages_.push_back(region->page());
  regions_.clear();
  bytes_ = 0;
}

void client_regions::events_closed() {
  for (const auto& [id, region] : regions_)
    if (region->page())
      region->page()->events_closed();
  for (const auto& page : std::exchange(opened_pages_, {}))
    page->events_closed();
}

// ---- staging memory ----

result<staging*> client_holdings::staging_memory() {
  if (!staging_) {
    auto made = staging::create(most_.staging_bytes, most_.reservations, teardown_);
    if (!made)
      return tl::unexpected(made.error());
    staging_ = std::move(*made);
  }
  return staging_.get();
}

// ---- leases ----

result<void> client_holdings::may_lease() const {
  if (leases_.size() < most_.leases)
    return {};
  return fail(errc::busy, "the connection holds " + std::to_string(leases_.size()) +
                              " leases, as many as follow from connection.group_bytes; release some");
}

result<void> client_holdings::may_name(size_t objects) const {
  if (lease_objects_ + objects <= most_.lease_objects)
    return {};
  return fail(errc::busy, "the leases of the connection name " + std::to_string(lease_objects_) +
                              " objects; " + std::to_string(objects) + " more would exceed " +
                              std::to_string(most_.lease_objects) +
                              ", which follow from connection.group_bytes; release some");
}

size_t objects_of(const lease& taken) {
  size_t objects = 0;
  for (const tier_hold& one : taken.held) // parallel to `taken.held`
    objects = std::max(objects, one.held->places().size());
  return objects;
}

void client_holdings::add(lease_ptr taken) {
  auto id = taken->id;
  held_lease held;
  held.owner = true;
  held.objects = objects_of(*taken);
  held.lease = std::move(taken);
  lease_objects_ += held.objects;
  leases_.emplace(id, std::move(held));
  // The caller has asked `may_lease` before.
  assert(leases_.size() <= most_.leases && lease_objects_ <= most_.lease_objects);
}

lease_ptr client_holdings::lease_of(const lease_id& id) const {
  auto entry = leases_.find(id);
  return entry == leases_.end() ? nullptr : entry->second.lease;
}

// ---- reading in place ----

/// Counts how many of the next places are new.
void client_holdings::count(lease_reading& work) const {
  size_t end = std::min(work.done + lease_reading::step_objects, work.places.size());
  for (; work.done < end; ++work.done) {
    const object_place& place = work.places[work.done];
    work.bytes += place.physical_bytes;
    if (!work.told || !work.told->has(work.number(work.done), place.id))
      ++work.fresh;
  }
}

/// Charges all new places: they are held from now on.
result<void> client_holdings::commit(lease_reading& work) {
  auto known = leases_.find(work.from->id);
  // Already counted when the client took the lease.
  uint64_t counted = known != leases_.end() && known->second.owner ? 0 : work.fresh;
  if (auto ok = may_name(counted); !ok)
    return ok;
  held_lease& held = leases_[work.from->id];
  held.lease = work.from;
  if (!held.told)
    held.told = std::make_shared<sent_locations>();
  work.told = held.told;
  held.reading.insert(held.reading.end(), std::make_move_iterator(work.holds.begin()),
                      std::make_move_iterator(work.holds.end()));
  work.holds.clear();
  held.objects += counted;
  held.read += counted;
  lease_objects_ += counted;
  held.reading_bytes += work.bytes;
  reading_bytes_ += work.bytes;
  return {};
}

/// Tells the next places. Places that another read has told meanwhile are not counted twice.
void client_holdings::tell(lease_reading& work, held_lease& held) {
  size_t end = std::min(work.done + lease_reading::step_objects, work.places.size());
  for (; work.done < end; ++work.done)
    work.added += work.told->add(work.number(work.done), work.places[work.done].id) ? 1 : 0;
  if (work.done < work.places.size())
    return;
  work.now = lease_reading::stage::told;
  if (held.owner)
    return;
  uint64_t twice = work.fresh - std::min(work.fresh, work.added);
  held.objects -= twice;
  held.read -= twice;
  lease_objects_ -= twice;
}

result<bool> client_holdings::read_some(lease_reading& work) {
  using stage = lease_reading::stage;
  if (work.from->revoked.is_set())
    return fail(errc::gone, "the lease was revoked");
  auto known = leases_.find(work.from->id);
  auto told = known == leases_.end() ? nullptr : known->second.told;
  if (work.now == stage::begins || (work.now == stage::counting && told != work.told)) {
    work.now = stage::counting; // count again if another read finished meanwhile
    work.done = work.fresh = work.bytes = 0;
    work.told = told;
  }
  if (work.now == stage::counting) {
    count(work);
    if (work.done < work.places.size())
      return true;
    if (known != leases_.end() && work.fresh == 0) {
      work.now = stage::told;
      return false;
    }
    if (auto ok = commit(work); !ok)
      return tl::unexpected(ok.error());
    work.now = stage::telling;
    work.done = 0;
    known = leases_.find(work.from->id);
    told = work.told;
  }
  if (known == leases_.end() || told != work.told)
    return fail(errc::gone, "the lease was released while its locations were made ready");
  if (work.now == stage::telling)
    tell(work, known->second);
  return work.now != stage::told;
}

void client_holdings::stop_reading(held_lease& held) {
  end(std::exchange(held.reading, {}), held.objects);
  held.told = nullptr;
  if (!held.lease)
    revoked_bytes_ -= held.reading_bytes;
  reading_bytes_ -= std::exchange(held.reading_bytes, 0);
}

bool client_holdings::has_read(const lease_id& id) {
  auto known = leases_.find(id);
  if (known == leases_.end() || known->second.reading.empty())
    return false;
  held_lease& held = known->second;
  bool later = ends_elsewhere(id);
  stop_reading(held);
  held.objects -= held.read;
  lease_objects_ -= std::exchange(held.read, 0);
  return later;
}

bool client_holdings::ends_elsewhere(const lease_id& id) const {
  auto entry = leases_.find(id);
  return ends_ && entry != leases_.end() && entry->second.objects >= object_hold::many_places;
}

std::optional<client_holdings::ended_lease> client_holdings::release(const lease_id& id) {
  auto entry = leases_.find(id);
  if (entry == leases_.end())
    return std::nullopt;
  held_lease held = std::move(entry->second);
  leases_.erase(entry);
  stop_reading(held);
  lease_objects_ -= held.objects;
  ended_lease ended{held.owner, held.old};
  uint64_t objects = held.objects;
  end(std::move(held), objects);
  return ended;
}

std::optional<client_holdings::revoked_lease> client_holdings::revoke(const lease_id& id) {
  auto entry = leases_.find(id);
  if (entry == leases_.end() || !entry->second.lease)
    return std::nullopt;
  held_lease& held = entry->second;
  if (held.reading.empty())
    return revoked_lease{*release(id), 0};
  revoked_lease done{{std::exchange(held.owner, false), held.old}, held.reading_bytes};
  revoked_bytes_ += held.reading_bytes;
  end(std::exchange(held.lease, nullptr), held.objects);
  return done;
}

bool client_holdings::may_be_reading(const lease_id& id) const {
  auto entry = leases_.find(id);
  return entry != leases_.end() && !entry->second.reading.empty();
}

client_holdings::aged client_holdings::old_leases(clock::time_point now, clock::duration after) {
  aged found;
  for (auto& [id, held] : leases_) {
    if (!held.owner || held.old)
      continue;
    auto due = held.lease->taken + after;
    if (due > now) {
      found.next = std::min(found.next, due);
      continue;
    }
    held.old = true;
    found.old.push_back(held.lease);
  }
  return found;
}

void client_holdings::show(client_state& shown) const {
  shown.regions = regions_.count();
  shown.region_bytes = regions_.bytes();
  shown.leases = leases();
  shown.reservations = staging_ ? static_cast<uint32_t>(staging_->reservations()) : 0;
}

// ---- the end ----

std::vector<client_holdings::ended_lease> client_holdings::close() {
  regions_.close();
  staging_.reset();
  spaces_.close_all();
  std::vector<ended_lease> ended;
  lease_map gone;
  for (auto entry = leases_.begin(); entry != leases_.end();) {
    auto each = entry++;
    if (std::exchange(each->second.owner, false))
      ended.push_back({true, each->second.old});
    if (each->second.reading.empty())
      gone.insert(leases_.extract(each));
  }
  end(std::move(gone), lease_objects_);
  return ended;
}

void client_holdings::client_ended() {
  end_readings();
  regions_.events_closed();
}

void client_holdings::end_readings() {
  std::vector<std::vector<hold_ptr>> readings;
  for (auto& [id, held] : leases_) {
    readings.push_back(std::exchange(held.reading, {}));
    held.reading_bytes = 0;
  }
  reading_bytes_ = 0;
  revoked_bytes_ = 0;
  end(std::move(readings), lease_objects_);
}

} // namespace terrace
