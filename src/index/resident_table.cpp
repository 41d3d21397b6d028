#include "index/resident_table.hpp"

#include "index/table_recount.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
constexpr size_t first_buckets = 64;
constexpr size_t batch_size = 32; ///< number of cache misses in flight at once
/// Only this many objects of a chain are found by their hashes if its objects came together.
constexpr size_t first_batch_size = 8;

/// Keys in the form that `find_all` expects.
struct listed_keys {
  std::span<const object_key> keys;

  size_t size() const { return keys.size(); }
  listed_keys part(size_t first, size_t count) const { return {keys.subspan(first, count)}; }
  uint64_t hash(size_t i) const { return to_entry_key(keys[i]).low; }
  bool is(size_t i, const resident& object) const { return object.is(keys[i]); }
};

struct chunk_keys {
  const object_key& like;
  std::span<const digest> chunks;

  size_t size() const { return chunks.size(); }
  chunk_keys part(size_t first, size_t count) const { return {like, chunks.subspan(first, count)}; }
  uint64_t hash(size_t i) const { return to_entry_key({like.space, like.pool, like.rank, chunks[i]}).low; }
  bool is(size_t i, const resident& object) const { return object.is(like, chunks[i]); }
};
} // namespace

/// Tells a recount in progress of a change of one slot.
class resident_table::watched_change {
 public:
  watched_change(resident_table& table, uint32_t slot) : table_(table), slot_(slot) {
    if (table_.recount_ != nullptr)
      table_.recount_->changing(slot_, table_.slots_[slot_]);
  }
  watched_change(const watched_change&) = delete;
  watched_change& operator=(const watched_change&) = delete;
  ~watched_change() {
    if (table_.recount_ != nullptr)
      table_.recount_->changed(slot_, table_.slots_[slot_]);
  }

 private:
  resident_table& table_;
  uint32_t slot_;
};

resident_table::resident_table() : base_(first_buckets) {
  for (size_t b = 0; b < first_buckets; ++b)
    buckets_.push_back(none);
}

object_id resident_table::id_at(uint32_t slot) const {
  return static_cast<object_id>(static_cast<uint64_t>(slots_[slot].generation_) << 32 | slot);
}

template <class Is>
uint32_t resident_table::find_slot(uint64_t hash, Is&& is) const {
  uint32_t slot = buckets_[bucket_of(hash)];
  while (slot != none && !is(slots_[slot]))
    slot = slots_[slot].next_;
  return slot;
}

std::optional<object_id> resident_table::find(const object_key& key) const {
  uint32_t slot = find_slot(to_entry_key(key).low, [&](const resident& object) { return object.is(key); });
  return slot == none ? std::nullopt : std::optional(id_at(slot));
}

std::optional<object_id> resident_table::find(entry_key name) const {
  uint32_t slot = find_slot(name.low, [&](const resident& object) { return object.name() == name; });
  return slot == none ? std::nullopt : std::optional(id_at(slot));
}

template <class Keys>
void resident_table::find_all(Keys keys, std::span<object_id> ids) const {
  assert(keys.size() == ids.size());
  if (slots_.size() == 0) {
    std::fill(ids.begin(), ids.end(), object_id{});
    return;
  }
  size_t buckets[batch_size]; // the buckets of the next batch, if a batch is known to follow
  size_t requested = 0;
  size_t batch = first_batch_size;
  bool scattered = false;
  for (size_t at = 0; at < keys.size();) {
    auto some = keys.part(at, std::min(batch, keys.size() - at));
    if (requested == 0)
      request_buckets(some, buckets);
    at += some.size();
    auto next = keys.part(at, scattered ? std::min(batch_size, keys.size() - at) : 0);
    find_scattered(some, ids.subspan(at - some.size()), buckets, next);
    requested = next.size();
    batch = batch_size;
    scattered = at < 2 || ids[at - 1] == object_id{} || slot_of(ids[at - 1]) != slot_of(ids[at - 2]) + 1;
    if (scattered)
      continue;
    at += find_beside(slot_of(ids[at - 1]) + 1, keys.part(at, keys.size() - at), ids.subspan(at));
    requested = 0;
  }
}

/// Objects that came together usually have slots side by side. Returns the number of leading keys whose
/// objects are in the slots from `slot` on.
template <class Keys>
size_t resident_table::find_beside(uint32_t slot, Keys keys, std::span<object_id> ids) const {
  size_t most = std::min<size_t>(keys.size(), slots() - slot);
  for (size_t i = 0; i < most; ++i) {
    const resident& object = slots_[slot + i];
    if (!keys.is(i, object) || !readable(object.state()))
      return i;
    ids[i] = id_at(slot + static_cast<uint32_t>(i));
  }
  return most;
}

template <class Keys>
void resident_table::request_buckets(Keys keys, size_t* buckets) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    buckets[i] = bucket_of(keys.hash(i));
    __builtin_prefetch(&buckets_[buckets[i]]);
  }
}

/// Examines keys whose `buckets` are known, with all their cache misses in flight at once. Afterwards
/// `buckets` are those of `next`.
template <class Keys>
void resident_table::find_scattered(Keys keys, std::span<object_id> ids, size_t* buckets, Keys next) const {
  struct cursor {
    size_t at;
    uint32_t slot;
  };
  cursor open[batch_size];
  size_t left = 0;
  auto look_at = [&](size_t at, uint32_t slot) { // branchless: the pattern is as random as the keys
    open[left] = {at, slot};
    left += slot != none;
    __builtin_prefetch(&slots_[slot != none ? slot : 0]);
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    ids[i] = object_id{};
    look_at(i, buckets_[buckets[i]]);
  }
  request_buckets(next, buckets); // they arrive while the slots are examined
  while (left != 0) {
    size_t round = left;
    left = 0; // continuing entries replace entries already examined
    for (size_t i = 0; i < round; ++i) {
      auto [at, slot] = open[i];
      const resident& object = slots_[slot];
      bool same = keys.is(at, object);
      if (same & readable(object.state()))
        ids[at] = id_at(slot);
      look_at(at, same ? none : object.next_);
    }
  }
}

void resident_table::find_published(std::span<const object_key> keys, std::span<object_id> ids) const {
  find_all(listed_keys{keys}, ids);
}

void resident_table::find_published(const object_key& like, std::span<const digest> chunks,
                                    std::span<object_id> ids) const {
  find_all(chunk_keys{like, chunks}, ids);
}

object_id resident_table::insert(const new_resident& from) {
  assert(!find(from.key));
  assert(from.key.pool <= UINT8_MAX && from.payload_bytes <= UINT32_MAX);
  assert(from.offset % resident::page_bytes == 0 && from.offset / resident::page_bytes < 1ULL << 40);
  assert(from.physical_bytes % resident::page_bytes == 0 &&
         from.physical_bytes / resident::page_bytes < 1ULL << 23);
  auto writing = gate_.write();
  uint32_t slot = spare_;
  if (slot == none) {
    assert(slots_.size() < objects_max);
    slot = static_cast<uint32_t>(slots_.size());
    resident fresh{};
    fresh.state_ = object_state::free;
    slots_.push_back(fresh);
  } else {
    spare_ = slots_[slot].next_;
  }
  watched_change watched(*this, slot);
  resident& object = slots_[slot];
  object.chunk_ = from.key.chunk.bytes;
  object.space_ = static_cast<uint32_t>(from.key.space);
  object.pool_ = static_cast<uint8_t>(from.key.pool);
  object.rank_ = from.key.rank;
  object.offset_pages_ = from.offset / resident::page_bytes & ((1ULL << 40) - 1);
  object.physical_pages_ = from.physical_bytes / resident::page_bytes & ((1ULL << 23) - 1);
  object.trailing_ = from.trailing ? 1 : 0;
  object.payload_bytes_ = static_cast<uint32_t>(from.payload_bytes);
  object.holds_ = 0;
  object.pinned_ = 0;
  ++object.generation_;
  move(object, object_state::reserved);
  if (!from.parent.empty())
    parents_.emplace(slot, from.parent);
  uint32_t& bucket = buckets_[bucket_of(object.name().low)];
  object.next_ = bucket;
  bucket = slot;
  table_totals::sum& use = use_of(object.space_);
  ++use.objects;
  use.bytes += object.physical_bytes();
  totals_.all.bytes += object.physical_bytes();
  if (++totals_.all.objects * 4 > buckets_.size() * 3)
    divide_bucket();
  if (meter_)
    meter_->took(from.key.space, object.physical_bytes());
  return id_at(slot);
}

void resident_table::reserve(size_t objects) {
  assert(size() == 0);
  auto writing = gate_.write();
  while (objects * 4 > buckets_.size() * 3)
    divide_bucket();
}

table_totals::sum& resident_table::use_of(uint32_t space) {
  if (counted_ == nullptr || counted_space_ != space) {
    counted_ = &totals_.by_space[space]; // elements of the map keep their address
    counted_space_ = space;
  }
  return *counted_;
}

const resident* resident_table::get(object_id id) const {
  auto slot = static_cast<uint32_t>(static_cast<uint64_t>(id));
  auto generation = static_cast<uint32_t>(static_cast<uint64_t>(id) >> 32);
  if (slot >= slots_.size())
    return nullptr;
  const resident& object = slots_[slot];
  return object.generation_ == generation && object.state_ != object_state::free ? &object : nullptr;
}

resident& resident_table::existing(object_id id) {
  const resident* object = get(id);
  assert(object != nullptr);
  return const_cast<resident&>(*object);
}

entry_key resident_table::parent_of(object_id id) const {
  auto parent = parents_.find(static_cast<uint32_t>(static_cast<uint64_t>(id)));
  return get(id) == nullptr || parent == parents_.end() ? entry_key{} : parent->second;
}

void resident_table::forget_parent(object_id id) {
  if (!parents_.empty())
    parents_.erase(static_cast<uint32_t>(static_cast<uint64_t>(id)));
}

void resident_table::move(resident& object, object_state next) {
  assert(may_move(object.state_, next));
  totals_.readable += readable(next);
  totals_.readable -= readable(object.state_);
  readable_.store(totals_.readable, std::memory_order_release);
  if (readable(object.state_) && !readable(next)) {
    departed_.store(departed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if (object.holds_ != 0)
      held_departed_.store(held_departed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (next == object_state::reserved)
    totals_.reserved_bytes += object.physical_bytes();
  else if (object.state_ == object_state::reserved)
    totals_.reserved_bytes -= object.physical_bytes();
  object.state_ = next;
}

void resident_table::measured_by(std::shared_ptr<space_meter> meter) {
  meter_ = std::move(meter);
  for (const auto& [space, use] : totals_.by_space)
    meter_->took(static_cast<space_id>(space), use.bytes);
}

void resident_table::publish(object_id id) {
  resident& object = existing(id);
  assert(object.state_ == object_state::reserved);
  watched_change watched(*this, slot_of(id));
  auto writing = gate_.write();
  move(object, object_state::published);
  forget_parent(id);
}

void resident_table::demote(object_id id) {
  watched_change watched(*this, slot_of(id));
  auto writing = gate_.write();
  move(existing(id), object_state::demoting);
}

void resident_table::keep(object_id id) {
  resident& object = existing(id);
  assert(object.state_ == object_state::demoting);
  watched_change watched(*this, slot_of(id));
  auto writing = gate_.write();
  move(object, object_state::published);
}

void resident_table::erase(object_id id) {
  resident& object = existing(id);
  assert(object.holds_ == 0);
  watched_change watched(*this, slot_of(id));
  auto writing = gate_.write();
  auto slot = static_cast<uint32_t>(static_cast<uint64_t>(id));
  if (object.state_ != object_state::removed)
    unlink(slot);
  forget_parent(id);
  move(object, object_state::free);
  table_totals::sum& use = use_of(object.space_);
  use.bytes -= object.physical_bytes();
  if (--use.objects == 0) {
    totals_.by_space.erase(object.space_);
    counted_ = nullptr;
  }
  if (meter_)
    meter_->gave_back(static_cast<space_id>(object.space_), object.physical_bytes());
  object.next_ = spare_;
  spare_ = slot;
  --totals_.all.objects;
  totals_.all.bytes -= object.physical_bytes();
}

void resident_table::remove(object_id id) {
  resident& object = existing(id);
  watched_change watched(*this, slot_of(id));
  auto writing = gate_.write();
  move(object, object_state::removed);
  unlink(static_cast<uint32_t>(static_cast<uint64_t>(id)));
}

void resident_table::hold(object_id id) {
  resident& object = existing(id);
  assert(readable(object.state_));
  watched_change watched(*this, slot_of(id));
  if (object.holds_++ != 0)
    return;
  ++totals_.held.objects;
  totals_.held.bytes += object.physical_bytes();
}

bool resident_table::release(object_id id) {
  resident& object = existing(id);
  assert(object.holds_ > 0);
  watched_change watched(*this, slot_of(id));
  if (--object.holds_ != 0)
    return false;
  --totals_.held.objects;
  totals_.held.bytes -= object.physical_bytes();
  return true;
}

bool resident_table::set_pinned(object_id id, bool pinned) {
  resident& object = existing(id);
  if (object.pinned() == pinned)
    return false;
  watched_change watched(*this, slot_of(id));
  object.pinned_ = pinned ? 1 : 0;
  return true;
}

bool resident_table::indexed_rightly(uint32_t slot) const {
  const resident& object = slots_[slot];
  if (object.state() == object_state::free)
    return true;
  auto found = find(object.key());
  bool here = found && *found == id_at(slot);
  return here == (object.state() != object_state::removed);
}

void resident_table::unlink(uint32_t slot) {
  uint32_t* link = &buckets_[bucket_of(slots_[slot].name().low)];
  while (*link != slot) {
    assert(*link != none);
    link = &slots_[*link].next_;
  }
  *link = slots_[slot].next_;
}

void resident_table::divide_bucket() {
  uint32_t slot = buckets_[divided_];
  buckets_[divided_] = none;
  buckets_.push_back(none);
  if (++divided_ == base_) {
    base_ *= 2;
    divided_ = 0;
  }
  while (slot != none) {
    resident& object = slots_[slot];
    uint32_t next = object.next_;
    uint32_t& bucket = buckets_[bucket_of(object.name().low)];
    object.next_ = bucket;
    bucket = slot;
    slot = next;
  }
}

} // namespace terrace
