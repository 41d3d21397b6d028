// What a simulated client does, and what it makes of the answers.
#include "simulated_client.hpp"

#include "simulated_sockets.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace terrace::simulation {

using protocol::kind;

namespace {

constexpr size_t asked_together = 6; ///< requests of a client in progress
constexpr uint64_t reserved_for = 8; ///< times as long as a client thinks, at most
constexpr auto long_pause = std::chrono::seconds(5);

} // namespace

void simulated_client::do_one(deed which) {
  if (open_.size() >= asked_together && (which <= deed::set_policy || which == deed::turn_twice) &&
      which != deed::cancel)
    return;
  switch (which) {
    case deed::store: store(); break;
    case deed::load: load(false); break;
    case deed::lookup: look_up(any_prompt(), false); break;
    case deed::lease: look_up(any_prompt(), true); break;
    case deed::load_leased: load(true); break;
    case deed::read_leased: read_leased(); break;
    case deed::release: release(); break;
    case deed::prefetch: prefetch(); break;
    case deed::cancel: cancel(); break;
    case deed::reserve: reserve(); break;
    case deed::session: use_session(); break;
    case deed::pin: pin(); break;
    case deed::unpin: unpin(); break;
    case deed::evict: evict(false); break;
    case deed::move: evict(true); break;
    case deed::clear_space: clear(false); break;
    case deed::clear_all: clear(true); break;
    case deed::look_around: look_around(); break;
    case deed::pause:
      acting_ = true;
      world_.events.after(long_pause, [this] {
        acting_ = false;
        act_later();
      });
      break;
    case deed::disconnect: disconnect(false); break;
    case deed::die: disconnect(true); break;
    case deed::stop_reading:
      if (reads_)
        stop_reading();
      else
        read_again();
      break;
    case deed::await_lookup: await_lookup(); break;
    case deed::cancel_lookup: cancel_lookup(); break;
    case deed::turn_twice: turn_twice(); break;
    case deed::save_prompt: save_prompt(); break;
    case deed::explain: explain(); break;
    case deed::revoke: revoke(); break;
    case deed::quota: change_quota(); break;
    case deed::set_policy: change_policy(); break;
    case deed::reload:
      if (world_.reload)
        world_.reload();
      break;
    case deed::hostile: be_hostile(); break;
  }
}

// ---- prompts and memory ----

simulated_client::prompt simulated_client::any_prompt() {
  prompt of{static_cast<uint32_t>(random_.below(world_.spaces)),
            static_cast<uint32_t>(random_.below(world_.prompts)),
            static_cast<uint32_t>(random_.between(1, world_.chunks))};
  of.tail = world_.tails && random_.below(4) == 0;
  return of;
}

uint32_t simulated_client::deadline() {
  uint64_t draw = random_.below(8);
  return draw == 0   ? static_cast<uint32_t>(random_.between(1, 20))
         : draw == 1 ? static_cast<uint32_t>(random_.between(100, 2000))
                     : 0;
}

std::optional<std::vector<uint64_t>> simulated_client::take_slots(const std::vector<named_object>& objects) {
  if (free_.size() < objects.size() || memory_ == nullptr || region_ == 0)
    return std::nullopt;
  std::vector<uint64_t> taken(free_.end() - static_cast<std::ptrdiff_t>(objects.size()), free_.end());
  free_.resize(free_.size() - objects.size());
  for (uint64_t number : taken)
    if (auto bytes = slot(number, 0);
        device_memory_ &&
        std::any_of(bytes.begin(), bytes.end(), [&](std::byte each) { return each != bytes.front(); }))
      world_.model.broke("memory of a client was written when no request referred to it");
  return taken;
}

/// The memory belongs to the client again, which uses it for something else.
void simulated_client::free_slots(const std::vector<uint64_t>& which) {
  for (uint64_t number : which) {
    auto bytes = slot(number, 0);
    std::memset(bytes.data(), 0x5a, bytes.size());
    free_.push_back(number);
  }
  renew_region();
}

flatbuffers::Offset<flatbuffers::Vector<const wire::Run*>>
simulated_client::runs(builder& b, const std::vector<uint64_t>& slots_of,
                       const std::vector<named_object>& objects) const {
  std::vector<wire::Run> all;
  for (size_t i = 0; i < objects.size(); ++i)
    all.emplace_back(static_cast<uint64_t>(slot(slots_of[i], 0).data() - memory_),
                     world_.pools[objects[i].pool], 0, 1);
  return b.CreateVectorOfStructs(all);
}

// ---- objects ----

void simulated_client::store() {
  prompt of = any_prompt();
  auto first = static_cast<uint32_t>(random_.coin() ? 0 : random_.below(of.all()));
  (void) store_objects(
      of, first, [&](builder& b) { return write(b, of); }, nullptr);
}

bool simulated_client::store_objects(const prompt& of, uint32_t first,
                                     const std::function<flatbuffers::Offset<wire::Prefix>(builder&)>& prefix,
                                     std::function<void(bool)> done) {
  auto objects = objects_of(of, first);
  auto taken = take_slots(objects);
  if (!taken)
    return false;
  std::vector<daemon_model::version> versions;
  for (size_t i = 0; i < objects.size(); ++i) {
    versions.push_back(world_.model.writes(objects[i]));
    daemon_model::fill(slot((*taken)[i], objects[i].pool), versions.back());
  }
  uint64_t at = world_.model.now();
  say("stores " + of.text() + " from chunk " + std::to_string(first) + " on");
  uint32_t chunks = of.all() - first;
  ask(
      kind::store,
      [&](builder& b) {
        auto written = prefix(b);
        auto places = runs(b, *taken, objects);
        return wire::CreateStore(b, spaces_[of.space], written, first, chunks, region_, places, 0,
                                 deadline());
      },
      [this, at, versions, chunks, slots_of = *taken, done = std::move(done)](answer& got) {
        auto table = got.good() ? protocol::parse<wire::StoreAnswer>(got.body) : fail(errc::internal, "");
        bool there = table && (*table)->stored_chunks() + (*table)->present_chunks() == chunks;
        world_.model.stored(versions, at, there);
        lose_region(got);
        free_slots(slots_of);
        if (done)
          done(there);
      });
  return true;
}

void simulated_client::load(bool leased) {
  lease* of_lease = leased ? any_lease() : nullptr;
  if (leased && of_lease == nullptr)
    return;
  prompt of = leased ? of_lease->of : any_prompt();
  auto first = static_cast<uint32_t>(leased && random_.coin() ? random_.below(of.all()) : 0);
  auto objects = objects_of(of, first);
  auto taken = take_slots(objects);
  if (!taken)
    return;
  for (size_t i = 0; i < objects.size(); ++i)
    std::memset(slot((*taken)[i], objects[i].pool).data(), 0xee, world_.pools[objects[i].pool]);
  // What a lease holds was found when it was asked for.
  uint64_t at = leased ? of_lease->asked : world_.model.now();
  std::vector<uint8_t> id = leased ? of_lease->id : std::vector<uint8_t>();
  if (leased)
    ++of_lease->busy;
  ask(
      kind::load,
      [&](builder& b) {
        auto prefix = leased ? 0 : write(b, of);
        auto named = leased ? b.CreateVector(id) : 0;
        auto places = runs(b, *taken, objects);
        return wire::CreateLoad(b, leased ? 0 : spaces_[of.space], prefix, named, leased ? first : 0,
                                leased ? of.all() - first : 0, region_, places, 0, deadline());
      },
      [this, at, objects, id, slots_of = *taken](answer& got) {
        for (lease& each : leases_)
          each.busy -= each.id == id && each.busy > 0 ? 1 : 0;
        auto table = got.good() ? protocol::parse<wire::LoadAnswer>(got.body) : fail(errc::internal, "");
        size_t count = table ? (*table)->delivered_chunks() * world_.pools.size() : 0;
        if (table && (*table)->missing() != nullptr && (*table)->missing()->damaged() && world_.sound)
          world_.model.broke("a load finds a damaged object, although no device fails");
        if (table && (*table)->missing() != nullptr && (*table)->missing()->damaged())
          for (size_t i = count; i < std::min(count + world_.pools.size(), objects.size()); ++i)
            world_.model.is_damaged(objects[i]);
        if (count > objects.size())
          world_.model.broke("a load delivered more than was asked for");
        for (size_t i = 0; i < std::min(count, objects.size()); ++i)
          world_.model.check(objects[i], slot(slots_of[i], objects[i].pool), at);
        if (table && !id.empty() && count < objects.size() && (*table)->missing() == nullptr)
          world_.model.broke("a load under a lease delivered a part, without a reason");
        lose_region(got);
        free_slots(slots_of);
      });
}

void simulated_client::look_up(const prompt& of, bool with_lease) {
  auto objects = objects_of(of);
  auto expected = world_.model.expects(objects);
  uint64_t at = expected.asked;
  if (with_lease) // for which there may be no room
    expected.because.clear();
  bool logits = of.tail && random_.coin();
  if (logits) // without them only the whole chunks count
    expected.because.resize(std::min(expected.because.size(), of.chunks * world_.pools.size()));
  say("looks up " + of.text());
  uint64_t named = world_.names_lookups && random_.coin() ? ++world_.named_lookups[group_] : 0;
  ask(
      kind::lookup,
      [&](builder& b) {
        auto prefix = write(b, of);
        auto id = named != 0 ? b.CreateVector(world_.lookup_id(named)) : 0;
        return wire::CreateLookup(b, spaces_[of.space], prefix, with_lease, 0, with_lease ? deadline() : 0, 0,
                                  id, false, logits);
      },
      [this, of, at, expected, objects, named](answer& got) {
        auto table = got.good() ? protocol::parse<wire::LookupAnswer>(got.body) : fail(errc::internal, "");
        if (!table)
          return;
        if (named != 0)
          world_.answered_lookups[{group_, named}] = world_.events.now();
        on_found(of, objects, at, expected, **table, named);
      });
}

void simulated_client::on_found(prompt of, const std::vector<named_object>& objects, uint64_t at,
                                const daemon_model::expectation& expected, const wire::LookupAnswer& told,
                                uint64_t named) {
  say("finds " + std::to_string(told.found_chunks()) + " of " + of.text());
  size_t found = told.found_chunks() * world_.pools.size();
  world_.model.found(found, expected);
  if (told.found_chunks() > of.all())
    world_.model.broke("a lookup found more than was asked for");
  if (const auto* logits = told.logits())
    world_.model.check(logits_of(of), std::as_bytes(std::span(logits->data(), logits->size())), at);
  const auto* id = told.lease();
  if (id == nullptr)
    return;
  of.tail = of.tail && told.found_chunks() == of.all();
  of.chunks = told.found_chunks() - (of.tail ? 1 : 0);
  size_t whole =
      of.chunks * world_.pools.size(); // a tail leaves with the last session that has it, leased or not
  bool cancelled = world_.cancelled_lookups.contains({group_, named});
  auto kept = cancelled ? 0 : world_.model.keeps(std::span(objects).first(whole), at);
  leases_.push_back({{id->begin(), id->end()}, of, at, 0, kept, named, false});
  if (named != 0 && !cancelled)
    world_.leased_lookups[{group_, named}] = this;
}

simulated_client::lease* simulated_client::any_lease() {
  return leases_.empty() ? nullptr : &leases_[random_.below(leases_.size())];
}

// ---- in place ----

void simulated_client::map_segment(uint32_t segment, std::function<void(const mapping*)> then) {
  if (auto found = segments_.find(segment); found != segments_.end()) {
    then(&found->second);
    return;
  }
  ask(
      kind::map_segment, [&](builder& b) { return wire::CreateMapSegment(b, segment); },
      [this, segment, then](answer& got) {
        auto table =
            got.good() ? protocol::parse<wire::MapSegmentAnswer>(got.body) : fail(errc::internal, "");
        if (!table || !got.descriptor) {
          then(nullptr);
          return;
        }
        mapping made{nullptr, (*table)->bytes()};
        void* data = ::mmap(nullptr, made.bytes, PROT_READ | ((*table)->writable() ? PROT_WRITE : 0),
                            MAP_SHARED, got.descriptor.get(), 0);
        made.data = data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
        if (made.data != nullptr && !segments_.emplace(segment, made).second)
          ::munmap(made.data, made.bytes); // another request was faster
        then(made.data != nullptr ? &segments_[segment] : nullptr);
      });
}

void simulated_client::read_leased() {
  lease* of_lease = any_lease();
  if (of_lease == nullptr || world_.isolated[group_])
    return;
  ++of_lease->busy;
  of_lease->read = true;
  prompt of = of_lease->of;
  auto id = of_lease->id;
  uint64_t at = of_lease->asked;
  auto first = static_cast<uint32_t>(random_.coin() ? 0 : random_.below(of.all()));
  ask(
      kind::read_lease,
      [&](builder& b) { return wire::CreateReadLease(b, b.CreateVector(id), first, 0, deadline()); },
      [this, of, id, at, first](answer& got) {
        auto table = got.good() ? protocol::parse<wire::ReadLeaseAnswer>(got.body) : fail(errc::internal, "");
        auto objects = objects_of(of, first);
        auto made = std::make_shared<reading>(reading{id, {}});
        std::set<uint32_t> needed;
        for (size_t i = 0; table && i < std::min<size_t>((*table)->locations()->size(), objects.size());
             ++i) {
          made->places.push_back({objects[i], *(*table)->locations()->Get(static_cast<uint32_t>(i)), at, 0});
          needed.insert(made->places.back().where.segment());
        }
        auto left = std::make_shared<size_t>(needed.size());
        auto done = [this, made, left](bool mapped) {
          if (mapped && *left != 0)
            return;
          for (lease& each : leases_)
            each.busy -= each.id == made->lease && each.busy > 0 ? 1 : 0;
          if (mapped) {
            look_at(*made);
            readings_.push_back(*made);
          }
        };
        if (needed.empty())
          done(false);
        for (uint32_t segment : needed)
          map_segment(segment, [left, done](const mapping* there) {
            --*left;
            if (there != nullptr || *left == 0)
              done(there != nullptr);
          });
      });
}

/// Reads the bytes in place; they are the same each time.
void simulated_client::look_at(reading& of) {
  for (place& one : of.places) {
    auto found = segments_.find(one.where.segment());
    if (found == segments_.end() || one.where.bytes() != world_.pools[one.object.pool] ||
        one.where.offset() + one.where.bytes() > found->second.bytes) {
      world_.model.broke("a leased object is nowhere");
      continue;
    }
    auto seen = world_.model.check(one.object, {found->second.data + one.where.offset(), one.where.bytes()},
                                   one.asked);
    if (one.seen != 0 && one.seen != seen)
      world_.model.broke(one.object.text() + ": its bytes changed while they were leased");
    one.seen = seen;
  }
}

void simulated_client::release() {
  auto which = std::find_if(leases_.begin(), leases_.end(), [](const lease& each) { return each.busy == 0; });
  if (which == leases_.end())
    return;
  auto id = which->id;
  world_.model.ends_keep(which->kept);
  leases_.erase(which);
  for (reading& each : readings_)
    if (each.lease == id)
      look_at(each);
  std::erase_if(readings_, [&](const reading& each) { return each.lease == id; });
  ask(kind::release, [&](builder& b) { return wire::CreateRelease(b, b.CreateVector(id)); });
}

void simulated_client::reserve() {
  prompt of = any_prompt();
  if (world_.isolated[group_])
    return;
  auto objects = objects_of(of);
  std::vector<daemon_model::version> versions;
  for (const named_object& each : objects)
    versions.push_back(world_.model.writes(each));
  uint64_t at = world_.model.now();
  say("reserves " + of.text());
  ask(
      kind::reserve,
      [&](builder& b) {
        auto prefix = write(b, of);
        return wire::CreateReserve(b, spaces_[of.space], prefix, 0, 0, deadline());
      },
      [this, versions, at](answer& got) {
        auto table = got.good() ? protocol::parse<wire::ReserveAnswer>(got.body) : fail(errc::internal, "");
        if (!table) {
          world_.model.stored(versions, at, false);
          return;
        }
        auto reserved = world_.hinder();
        std::vector<wire::Location> places;
        for (const wire::Location* each : *(*table)->locations())
          places.push_back(*each);
        map_segment((*table)->segment(), [this, number = (*table)->reservation(), places, versions, at,
                                          reserved](const mapping* there) {
          if (there != nullptr)
            write_reserved(number, places, versions, at, reserved);
          else
            left_reserved_.push_back(reserved);
        });
      });
}

void simulated_client::write_reserved(uint64_t reservation, const std::vector<wire::Location>& places,
                                      const std::vector<daemon_model::version>& versions, uint64_t at,
                                      const std::shared_ptr<void>& reserved) {
  for (size_t i = 0; i < std::min(places.size(), versions.size()); ++i) {
    const wire::Location& each = places[i];
    const mapping& in = segments_[each.segment()];
    if (each.bytes() != 0 && each.offset() + each.bytes() <= in.bytes)
      daemon_model::fill({in.data + each.offset(), each.bytes()}, versions[i]);
  }
  auto most = reserved_for * static_cast<uint64_t>(world_.thinks_most.count());
  if (random_.coin()) {
    end_reserved(reservation, versions, at, reserved);
    return;
  }
  world_.events.after(std::chrono::nanoseconds(random_.below(most)),
                      [this, reservation, versions, at, reserved, connection = connection_] {
                        if (connected() && connection_ == connection)
                          end_reserved(reservation, versions, at, reserved);
                      });
}

void simulated_client::end_reserved(uint64_t reservation, const std::vector<daemon_model::version>& versions,
                                    uint64_t at, const std::shared_ptr<void>& reserved) {
  simulated_sockets::touch();
  if (random_.below(4) == 0) {
    ask(
        kind::abort, [&](builder& b) { return wire::CreateAbort(b, reservation); },
        [this, versions, at, reserved](answer&) { world_.model.stored(versions, at, false); });
    return;
  }
  ask(
      kind::commit, [&](builder& b) { return wire::CreateCommit(b, reservation, deadline()); },
      [this, versions, at, reserved](answer& got) { world_.model.stored(versions, at, got.good()); });
}

} // namespace terrace::simulation
