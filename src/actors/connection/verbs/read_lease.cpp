// read_lease: the locations of leased chunks in the mapped arena.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/start_load.hpp"
#include "connection/leased_part.hpp"
#include "storage/object_header.hpp"

namespace terrace::actors::verbs {

namespace {

/// Beyond so many, the answer is larger than a frame.
constexpr size_t locations_max = (protocol::frame_bytes_max - 4096) / sizeof(wire::Location);

/// From now on the client may read these locations, until it releases the lease or ends.
void tell_places(connection& client, const connection::request& what, const lease_ptr& from,
                 const transfer_scope& scope, const load_result& done) {
  if (!client.reads(what, from, done.places, done.holds))
    return;
  auto missing = missing_of(done, scope, client.rank_in(from->in->id), from->in->spec);
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<wire::Location> locations;
    locations.reserve(done.places.size());
    for (const object_place& place : done.places) {
      auto at = client.group().memory->locate(place.offset + object_header_bytes);
      locations.emplace_back(at.offset, place.payload_bytes, at.segment, 0);
    }
    return wire::CreateReadLeaseAnswer(body, protocol::create_structs(body, locations),
                                       token_of(*from, scope.range), missing ? &*missing : nullptr);
  });
}

void read_scope(connection& client, const connection::request& what, const lease_ptr& from,
                const transfer_scope& scope, const keep_alive& body) {
  uint16_t rank = client.rank_in(from->in->id);
  with_objects(client, what, subject_of(from, scope, rank), body,
               [&client, what, from, scope, rank](const batch_ptr& objects) {
                 load_job job;
                 job.group = client.group_handle();
                 job.in = from->in;
                 job.objects = objects;
                 job.objects_per_chunk = scope.pools.size();
                 job.leased = leased_part(from, scope, rank);
                 job.context = what.context;
                 job.held_by = from;
                 job.account = client.leased();
                 job.note_access = false; // the lookup that took the lease was the access
                 start_load(client, what, std::move(job),
                            [&client, what, from, scope](const load_result& done) {
                              tell_places(client, what, from, scope, done);
                            });
               });
}

} // namespace

void read_lease(connection& client, const connection::request& what, const wire::ReadLease& asked,
                protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_map(what, "load with a region"))
    return;
  auto body = client.channel().hold(); // contains `asked`
  client.with_lease(
      what, protocol::to_lease_id(asked.lease()), [&client, what, &asked, body](const lease_ptr& from) {
        if (!client.holds(from->id) && !client.may_lease(what))
          return;
        auto scope = scope_of(client, what, asked, from->in->spec, from->chunks.size());
        if (!scope)
          return;
        if (size_t objects = scope->range.count * scope->pools.size(); objects > locations_max) {
          client.refuse(what, {errc::bad_request,
                               std::to_string(objects) + " objects were asked for: expected at most " +
                                   std::to_string(locations_max) +
                                   ", whose locations fit in an answer; ask for fewer chunks at a time"});
          return;
        }
        if (asked.replaces())
          client.has_read(from->id);
        read_scope(client, what, from, *scope, body);
      });
}

} // namespace terrace::actors::verbs
