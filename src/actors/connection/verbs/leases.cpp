// leases: those of the client's trust group, for operators: an id is the right to use a lease.
#include "actors/connection/verbs.hpp"
#include "connection/client_holdings.hpp"
#include "group/leased_part.hpp"
#include "index/object_header.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

flatbuffers::Offset<wire::LeaseStatus> write(flatbuffers::FlatBufferBuilder& body, const lease_report& one,
                                             clock::time_point now) {
  auto id = body.CreateVector(one.id.bytes.data(), one.id.bytes.size());
  auto age = std::chrono::duration_cast<std::chrono::milliseconds>(std::max(now, one.taken) - one.taken);
  return wire::CreateLeaseStatus(body, id, one.number, static_cast<uint64_t>(one.owner),
                                 static_cast<uint32_t>(one.space), static_cast<uint32_t>(one.chunks),
                                 one.tokens, one.bytes, static_cast<uint64_t>(age.count()), one.revoked);
}

} // namespace

task<> leases(client_request& request, const wire::Leases& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("the id of a lease is the right to use it");
  const auto& group = client.group().group;
  leases_request all{asked.after(), protocol::leases_listed_max};
  auto found = co_await request.ask<leases_answer>(group, std::move(all), group_ended);
  auto now = client.environment().now();
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::LeaseStatus>> listed;
    for (const lease_report& one : found.listed)
      listed.push_back(write(body, one, now));
    return wire::CreateLeasesAnswer(body, found.count, body.CreateVector(listed));
  });
}

// release: ends a lease.

task<> release(client_request& request, const wire::Release& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto id = protocol::to_lease_id(asked.lease());
  bool later = client.holdings().ends_elsewhere(id);
  if (!request.actor.release_lease(id)) {
    request.refuse({errc::gone, "this connection neither owns nor reads such a lease"});
    co_return;
  }
  if (later) { // the answer says that what it held may be evicted
    co_await request.leases_ended();
  }
  request.reply(wire::CreateReleaseAnswer);
}

// revoke: ends a lease of any connection of the trust group.

task<> revoke(client_request& request, const wire::Revoke& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a revoked lease ends for its owner and all readers");
  auto id = protocol::to_lease_id(asked.lease());
  // The lease is marked first, so that no connection begins to read under it after it was asked.
  const auto& group = client.group().group;
  mark_revoked_request mark{id};
  auto marked = co_await request.ask<mark_revoked_answer>(group, std::move(mark), group_ended);
  co_await request.valid(marked.failure);
  uint32_t holders = 0;
  uint64_t quarantined_bytes = 0;
  // One after the other: if this connection ends meanwhile, the lease is still listed and can be revoked again.
  auto clients = client.environment().clients->of_group(client.group().name);
  for (const client_ptr& each : clients) {
    revoke_request question{id};
    auto answer = co_await request.try_ask<revoke_answer>(each->actor, std::move(question), "it has ended");
    if (!answer)
      continue; // and so has what it held
    holders += answer->held ? 1 : 0;
    quarantined_bytes += answer->quarantined_bytes;
  }
  co_await request.leases_ended(); // the answer says that what it held may be evicted
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRevokeAnswer(body, holders, quarantined_bytes);
  });
}

// read_lease: the locations of leased chunks in the mapped arena.

namespace {

/// Beyond so many, the answer is larger than a frame.
constexpr size_t locations_max = (protocol::frame_bytes_max - 4096) / sizeof(wire::Location);

/// Writes the locations, from the last one on. Some at a time: a million of them take many milliseconds.
class location_writer {
 public:
  location_writer(const segmented_arena& memory, std::span<const object_place> places)
      : memory_(memory), places_(places), left_(places.size()),
        frame_(std::make_unique<protocol::frame_builder>(left_ * sizeof(wire::Location) + 1024)) {
    protocol::start_structs<wire::Location>(frame_->start(), left_);
  }

  /// False: there is another step.
  bool step() {
    size_t first = left_ - std::min(left_, lease_reading::step_objects);
    std::vector<wire::Location> locations;
    locations.reserve(left_ - first);
    for (size_t i = first; i < left_; ++i) {
      auto at = memory_.locate(places_[i].offset + object_header_bytes);
      locations.emplace_back(at.offset, places_[i].payload_bytes, at.segment, 0);
    }
    protocol::push_structs(frame_->body(), locations);
    left_ = first;
    return left_ == 0;
  }
  std::unique_ptr<protocol::frame_builder> finish(const client_request& request, uint64_t first_token,
                                                  const std::optional<wire::Missing>& missing) {
    auto& body = frame_->body();
    auto locations = protocol::end_structs<wire::Location>(body, places_.size());
    auto root = wire::CreateReadLeaseAnswer(body, locations, first_token, missing ? &*missing : nullptr);
    frame_->finish(protocol::answer_to(request.kind), request.id, root);
    return std::move(frame_);
  }

 private:
  const segmented_arena& memory_;
  std::span<const object_place> places_;
  size_t left_; ///< locations that the frame does not have yet
  std::unique_ptr<protocol::frame_builder> frame_;
};

/// From its end on the client may read these locations, until it releases the lease or ends.
task<> tell_places(client_request& request, lease_ptr from, transfer_scope scope, uint16_t rank,
                   load_result done) {
  connected_client& client = request.client;
  bool many = done.places->size() >= object_hold::many_places;
  std::shared_ptr<lease_reading> reading(new lease_reading,
                                         deleted_by{many ? client.group().lease_ends : nullptr});
  reading->from = from;
  reading->places = *done.places;
  reading->holds = std::move(done.holds);
  reading->number = [numbers = scope_numbers(from->space->spec, scope, rank)](size_t i) {
    return numbers.of(i);
  };
  location_writer writer(*client.group().memory, *done.places);
  while (!writer.step()) {
    co_await request.turn("its locations were made ready");
  }
  if (done.places->size() > lease_reading::step_objects) {
    co_await request.turn("its locations were made ready");
  }
  while (true) { // last, because the answer must follow at once
    auto more = read_some(request, *reading);
    if (!more)
      co_return;
    if (!*more)
      break;
    co_await request.turn("its locations were made ready");
  }
  auto missing = missing_of(done, scope, rank, from->space->spec);
  request.reply(writer.finish(request, token_of(*from, scope.range), missing));
}

} // namespace

task<> read_lease(client_request& request, const wire::ReadLease& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  const clock::time_point began = client.environment().now();
  co_await request.may_map("load with a region");
  lease_id id = protocol::to_lease_id(asked.lease());
  auto from = co_await request.lease(id);
  if (!client.holdings().holds(from->id) && !request.ok(client.holdings().may_lease()))
    co_return;
  auto scope = terrace::scope_of(asked, from->space->spec, from->chunks.size());
  co_await request.valid(scope);
  if (size_t objects = scope->range.count * scope->pools.size(); objects > locations_max) {
    request.refuse(
        {errc::bad_request, std::to_string(objects) + " objects were asked for: expected at most " +
                                std::to_string(locations_max) +
                                ", whose locations fit in an answer; ask for fewer chunks at a time"});
    co_return;
  }
  if (asked.replaces() && request.actor.has_read(from->id)) {
    co_await request.leases_ended("it was served");
  }
  auto rank = client.holdings().spaces().rank_in(*from->space);
  co_await request.valid(rank);
  const uint32_t speed = declared_speed(client, asked.options(), from->space);
  auto part = co_await transfer_objects(request, from, *scope, *rank);
  load_job job;
  job.group = client.group_handle();
  job.space = from->space;
  job.objects = std::move(part.objects);
  job.objects_per_chunk = scope->pools.size();
  job.leased = std::move(part.held);
  job.context = request.context;
  job.held_by = from;
  job.account = client.leased();
  job.note_access = false; // the lookup that took the lease was the access
  auto& idle = request.actor.idle().loads;
  auto done = co_await run_job<load_result>(request, idle, spawn_load, std::move(job));
  co_await request.valid(done.failure);
  const bool is_end = scope->range.first + scope->range.count == from->chunks.size();
  const uint64_t tokens = tokens_of_chunks(done.chunks, scope->range.count, is_end ? from->tail_tokens : 0,
                                           from->space->spec.chunk_tokens);
  count_spared(client, speed, {from->space, scope->pools.size(), tokens, began});
  co_await tell_places(request, from, *scope, *rank, std::move(done));
}

} // namespace terrace::actors::verbs
