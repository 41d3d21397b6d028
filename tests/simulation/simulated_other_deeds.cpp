// What a simulated client asks ahead, cancels and does as an operator, and what it sends that no correct client would.
#include "simulated_client.hpp"

#include "tests/fuzz/sample_frames.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace terrace::simulation {

using protocol::kind;

namespace {

/// A client that reads is told of an answer within this.
constexpr auto told_within = std::chrono::seconds(2);

constexpr std::ptrdiff_t await_lookups_at_ease = 2; ///< of a client

/// Verbs whose samples do not disturb correct clients, however their bytes are changed.
bool harmless(kind verb) {
  switch (verb) {
    case kind::shutdown:
    case kind::clear:
    case kind::evict:
    case kind::move:
    case kind::revoke:
    case kind::quota:
    case kind::set_policy:
    case kind::set_log_level:
    case kind::commit:
    case kind::store: return false;
    default: return true;
  }
}

const std::vector<protocol::test::sample_frame>& samples() {
  static const auto all = protocol::test::sample_frames();
  return all;
}

} // namespace

// ---- operators ----

/// A pin is known to hold what it was told to hold, as long as no other request about it is in progress.
void simulated_client::pin() {
  prompt of = any_prompt();
  auto& name = world_.pins[objects_of(of).back()];
  world_.model.ends_keep(std::exchange(name.kept, 0));
  ++name.in_progress;
  uint64_t at = world_.model.now();
  say("pins " + of.text());
  ask(
      kind::pin,
      [&](builder& b) {
        auto prefix = write(b, of);
        return wire::CreatePin(b, spaces_[of.space], prefix);
      },
      [this, of, at, &name](answer& got) {
        auto table = got.good() ? protocol::parse<wire::PinAnswer>(got.body) : fail(errc::internal, "");
        if (--name.in_progress != 0 || !table)
          return;
        auto objects = objects_of(of);
        size_t count =
            std::min((*table)->pinned_chunks(), of.chunks) * world_.pools.size(); // tails: as with leases
        name.kept = world_.model.keeps(std::span(objects).first(count), at);
        say("holds " + std::to_string(count) + " objects by a pin of " + of.text());
      });
}

void simulated_client::unpin() {
  prompt of = any_prompt();
  auto& name = world_.pins[objects_of(of).back()];
  world_.model.ends_keep(std::exchange(name.kept, 0));
  ++name.in_progress;
  say("unpins " + of.text());
  ask(
      kind::unpin,
      [&](builder& b) {
        auto prefix = write(b, of);
        return wire::CreateUnpin(b, spaces_[of.space], prefix);
      },
      [&name](answer&) { --name.in_progress; });
}

void simulated_client::evict(bool moves) {
  prompt of = any_prompt();
  uint64_t at = world_.model.removes(objects_of(of));
  if (moves)
    ask(
        kind::move,
        [&](builder& b) {
          auto prefix = write(b, of);
          return wire::CreateMove(b, spaces_[of.space], prefix, static_cast<uint8_t>(random_.between(1, 2)),
                                  deadline());
        },
        [this](answer&) { world_.model.removed(); });
  else {
    auto tiers = static_cast<uint32_t>(random_.below(4)) * 2; // 0: all
    if (world_.gpu && random_.coin())
      tiers = random_.coin() ? 2 : tiers | 1; // host memory alone, or a device's tier as well
    bool stays_away = tiers == 0 && world_.healthy;
    ask(
        kind::evict,
        [&](builder& b) {
          auto prefix = write(b, of);
          return wire::CreateEvict(b, spaces_[of.space], prefix, tiers);
        },
        [this, of, at, stays_away](answer& got) {
          world_.model.removed();
          if (got.good() && stays_away)
            world_.model.evicted(objects_of(of), at);
        });
  }
}

void simulated_client::clear(bool all) {
  auto space = static_cast<uint32_t>(random_.below(world_.spaces));
  auto which = world_.model.clears(group_, all ? std::nullopt : std::optional(space));
  ask(
      kind::clear, [&](builder& b) { return wire::CreateClear(b, all ? 0 : spaces_[space]); },
      [this, which](answer& got) { world_.model.cleared(which, got.good()); });
}

/// Who waits for a lookup is told when it is answered, and not at the deadline.
void simulated_client::await_lookup() {
  uint64_t last = world_.named_lookups[group_];
  uint64_t number = random_.between(last > 2 ? last - 2 : 1, last + 1);
  world_.awaited_lookups.insert({group_, number});
  auto waiting = std::count_if(open_.begin(), open_.end(),
                               [](const auto& each) { return each.second.verb == kind::await_lookup; });
  // Many of them have all that a connection may ask at a time, so what it asks else waits for them.
  auto hinders = waiting >= await_lookups_at_ease ? world_.hinder() : nullptr;
  ask(
      kind::await_lookup,
      [&](builder& b) {
        auto id = b.CreateVector(client_world::lookup_id(number));
        return wire::CreateAwaitLookup(b, id, static_cast<uint32_t>(random_.between(1, 20'000)));
      },
      [this, number, hinders](answer& got) {
        auto answered = world_.answered_lookups.find({group_, number});
        if (got.code() != errc::deadline || answered == world_.answered_lookups.end())
          return;
        auto since = std::max(answered->second, reads_since_);
        if (reads_ && world_.events.now() - since > told_within)
          world_.model.broke("who waits for lookup " + std::to_string(number) + " is not told of its answer");
      });
}

void simulated_client::prefetch() {
  prompt of = any_prompt();
  lease* under = random_.coin() ? any_lease() : nullptr;
  std::vector<uint8_t> id = under != nullptr ? under->id : std::vector<uint8_t>();
  auto rule = static_cast<wire::StopRule>(random_.below(3));
  ask(kind::prefetch, [&](builder& b) {
    auto prefix = under != nullptr ? 0 : write(b, of);
    auto named = under != nullptr ? b.CreateVector(id) : 0;
    uint32_t until =
        rule == wire::StopRule::deadline ? static_cast<uint32_t>(random_.between(1, 500)) : deadline();
    return wire::CreatePrefetch(b, under != nullptr ? 0 : spaces_[of.space], prefix, named, 0, 1, rule,
                                until);
  });
}

void simulated_client::cancel() {
  if (open_.empty())
    return;
  auto which = open_.begin();
  std::advance(which, static_cast<std::ptrdiff_t>(random_.below(open_.size())));
  ask(kind::cancel, [id = which->first](builder& b) { return wire::CreateCancel(b, id); });
}

/// The lease of an answered lookup ends, whoever cancels it, unless others were told of it or it is read in place.
void simulated_client::cancel_lookup() {
  uint64_t last = world_.named_lookups[group_];
  if (last == 0)
    return;
  uint64_t number = random_.between(last > 4 ? last - 4 : 1, last);
  auto of = std::pair{group_, number};
  world_.cancelled_lookups.insert(of);
  auto leased = world_.leased_lookups.find(of);
  simulated_client* owner = leased == world_.leased_lookups.end() ? nullptr : leased->second;
  if (lease* one = owner == nullptr ? nullptr : owner->lease_of_lookup(number)) {
    world_.model.ends_keep(one->kept);
    if (one->read || world_.awaited_lookups.contains(of))
      owner = nullptr;
  }
  ask(
      kind::cancel,
      [&](builder& b) { return wire::CreateCancel(b, 0, b.CreateVector(client_world::lookup_id(number))); },
      [owner, number](answer& got) {
        auto table = got.good() ? protocol::parse<wire::CancelAnswer>(got.body) : fail(errc::internal, "");
        if (owner != nullptr && table && (*table)->found())
          owner->use_cancelled_lease(number);
      });
}

simulated_client::lease* simulated_client::lease_of_lookup(uint64_t named) {
  auto found =
      std::find_if(leases_.begin(), leases_.end(), [&](const lease& each) { return each.named == named; });
  return found == leases_.end() ? nullptr : &*found;
}

void simulated_client::use_cancelled_lease(uint64_t named) {
  lease* one = lease_of_lookup(named);
  if (one == nullptr || one->read || world_.awaited_lookups.contains({group_, named}))
    return;
  auto objects = objects_of(one->of);
  auto taken = take_slots(objects);
  if (!taken)
    return;
  ask(
      kind::load,
      [&](builder& b) {
        auto id = b.CreateVector(one->id);
        auto places = runs(b, *taken, objects);
        return wire::CreateLoad(b, 0, 0, id, 0, one->of.all(), region_, places);
      },
      [this, named, slots_of = *taken](answer& got) {
        if (got.good())
          world_.model.broke("a load under the lease of lookup " + std::to_string(named) +
                             ", which was cancelled, is answered");
        lose_region(got);
        free_slots(slots_of);
      });
}

void simulated_client::explain() {
  prompt of = any_prompt();
  auto expected = world_.model.expects(objects_of(of));
  ask(
      kind::explain,
      [&](builder& b) {
        auto prefix = write(b, of);
        return wire::CreateExplain(b, spaces_[of.space], prefix);
      },
      [this, of, expected](answer& got) {
        auto table = got.good() ? protocol::parse<wire::ExplainAnswer>(got.body) : fail(errc::internal, "");
        if (!table)
          return;
        if ((*table)->found_chunks() > of.all())
          world_.model.broke("more is explained than was asked for");
        world_.model.found((*table)->found_chunks() * world_.pools.size(), expected);
      });
}

/// What is being read stays as it is.
void simulated_client::revoke() {
  lease* which = any_lease();
  if (which == nullptr)
    return;
  world_.model.ends_keep(which->kept);
  ask(kind::revoke, [&](builder& b) { return wire::CreateRevoke(b, b.CreateVector(which->id)); });
}

void simulated_client::change_quota() {
  if (world_.quotas.empty())
    return;
  bool changes = random_.coin();
  ask(kind::quota, [&](builder& b) {
    if (!changes)
      return wire::CreateQuota(b);
    auto name = b.CreateString(world_.quotas[random_.below(world_.quotas.size())]);
    auto tier = b.CreateString(random_.coin() ? "host" : "disk");
    bool unlimited = random_.below(4) == 0;
    flatbuffers::Optional<uint8_t> percent;
    if (!unlimited)
      percent = static_cast<uint8_t>(random_.between(20, 100));
    return wire::CreateQuota(b, name, tier, flatbuffers::nullopt, percent, unlimited);
  });
}

void simulated_client::change_policy() {
  ask(kind::set_policy, [&](builder& b) {
    auto tier = b.CreateString(random_.coin() ? "host" : "disk");
    auto policy = b.CreateString(client_world::policies[random_.below(client_world::policies.size())]);
    return wire::CreateSetPolicy(b, tier, policy);
  });
}

void simulated_client::look_around() {
  switch (random_.below(5)) {
    case 0: ask(kind::status, [](builder& b) { return wire::CreateStatus(b); }); break;
    case 1: ask(kind::policies, [](builder& b) { return wire::CreatePolicies(b); }); break;
    case 2: ask(kind::leases, [](builder& b) { return wire::CreateLeases(b); }); break;
    case 3: ask(kind::sessions, [](builder& b) { return wire::CreateSessions(b); }); break;
    default:
      ask(
          kind::check, [](builder& b) { return wire::CreateCheck(b); },
          [this](answer& got) {
            auto table = got.good() ? protocol::parse<wire::CheckAnswer>(got.body) : fail(errc::internal, "");
            if (table && (*table)->count() != 0)
              world_.model.broke("terrace check: " + (*table)->differences()->Get(0)->str());
          });
  }
}

/// On a socket of its own, which nobody reads.
void simulated_client::be_hostile() {
  if (strange_.size() >= 2 || (!strange_.empty() && random_.coin())) {
    strange_.pop_front();
    return;
  }
  auto socket = world_.down ? unique_fd() : open_socket();
  if (!socket)
    return;
  std::vector<uint8_t> bytes;
  if (random_.below(4) != 0)
    bytes = test::hello_frame();
  for (uint64_t count = random_.between(1, 8), i = 0; i < count; ++i) {
    const auto& sample = samples()[random_.below(samples().size())];
    if (!harmless(sample.kind))
      continue;
    auto more = sample.bytes;
    uint64_t request = 100 + i;
    std::memcpy(more.data() + offsetof(protocol::frame_header, request_id), &request, sizeof request);
    for (uint64_t changes = random_.below(4); changes > 0; --changes)
      more[random_.between(protocol::header_bytes, more.size() - 1)] = static_cast<uint8_t>(random_.next());
    if (random_.below(16) == 0)
      more[random_.below(more.size())] ^= 1;
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  bytes.resize(random_.coin() ? bytes.size() : random_.below(bytes.size() + 1));
  (void) !::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  strange_.push_back(std::move(socket));
  world_.events.note({9, number_, bytes.size()});
}

} // namespace terrace::simulation
