// load: chunks into a region; read_lease: where leased chunks lie in the mapped arena.
#include "actors/load_actor.hpp"
#include "actors/prefixes.hpp"
#include "actors/verbs.hpp"
#include "storage/object_header.hpp"

namespace terrace::actors::verbs {

namespace {

template <class F>
void start(connection& client, const connection::request& what, load_job job, F on_result) {
  auto* self = client.self;
  auto worker = spawn_load(self->system(), std::move(job));
  self->request(worker, caf::infinite, start_load{})
      .then(
          [&client, what, on_result](const load_result& done) {
            if (done.failure.code != errc::ok)
              client.refuse(what, done.failure);
            else
              on_result(done);
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "the load's actor has ended"});
          });
}

/// Checks the runs and starts the load of `objects`.
void load_objects(connection& client, const connection::request& what, const wire::Load& request,
                  const space_ptr& in, const std::shared_ptr<metrics::space_probe>& probe, batch_ptr objects,
                  hold_ptr disk_held, const std::shared_ptr<const client_region>& region, bool note_use) {
  if (region->mapped() && !region->writable()) {
    client.refuse(what,
                  {errc::denied, "the region is sealed against writing; register one that may be written"});
    return;
  }
  auto runs = runs_of(*request.runs(), request.runs_per_object(), *objects, region->size());
  if (!runs) {
    client.refuse(what, runs.error());
    return;
  }
  load_job job;
  job.group = client.group_handle();
  job.in = in;
  job.objects_per_chunk = in->spec.pools.size();
  job.disk_held = std::move(disk_held);
  job.runs = std::move(*runs);
  job.target = outside(region);
  job.context = what.context;
  job.note_use = note_use;
  size_t requested = objects->size() / job.objects_per_chunk;
  job.objects = std::move(objects);
  start(client, what, std::move(job), [&client, what, in, probe, requested](const load_result& done) {
    probe->loaded(done.bytes);
    client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
      auto tiers = body.CreateVector(done.bytes_by_tier.data(), done.bytes_by_tier.size());
      return wire::CreateLoadAnswer(body, static_cast<uint32_t>(requested),
                                    static_cast<uint32_t>(done.chunks), done.chunks * in->spec.chunk_tokens,
                                    done.bytes, tiers);
    });
  });
}

/// From here on the client may read these places, until it releases the lease or ends.
void tell_places(connection& client, const connection::request& what, const lease_ptr& from,
                 const load_result& done) {
  auto& held = client.reading(from);
  held.reading.insert(held.reading.end(), done.holds.begin(), done.holds.end());
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<wire::Location> locations;
    locations.reserve(done.places.size());
    for (const object_place& place : done.places) {
      auto at = client.group().memory->locate(place.offset + object_header_bytes);
      locations.emplace_back(at.offset, place.payload_bytes, at.segment, 0);
    }
    return wire::CreateReadLeaseAnswer(body, body.CreateVectorOfStructs(locations));
  });
}

} // namespace

void load(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Load>(frame);
  if (request == nullptr)
    return;
  auto region = client.find_region(what, request->region());
  if (!region)
    return;
  const client_space* found = client.find_space(what, request->space());
  if (found == nullptr)
    return;
  client_space in = *found;
  client.set_deadline(what, request->deadline_ms());
  if (request->prefix() != nullptr) {
    with_chunks(client, what, in, *request->prefix(),
                [&client, what, request, region, in](const chunk_prefix& prefix) {
                  auto range = checked_range(prefix.chunks.size(), request->first_chunk(), request->chunks());
                  if (!range) {
                    client.refuse(what, range.error());
                    return;
                  }
                  auto objects = objects_of(*in.what, prefix.chunks, prefix.parent, *range, in.rank);
                  load_objects(client, what, *request, in.what, in.probe, std::move(objects), nullptr, region,
                               true);
                });
    return;
  }
  auto keep = client.channel().hold(); // the lease may be another connection's
  client.with_lease(what, protocol::to_lease_id(request->lease()),
                    [&client, what, request, region, in, keep](const lease_ptr& from) {
                      if (from->in->id != in.what->id) {
                        client.refuse(what, {errc::bad_request, "the lease belongs to another space"});
                        return;
                      }
                      auto range =
                          checked_range(from->chunks.size(), request->first_chunk(), request->chunks());
                      if (!range) {
                        client.refuse(what, range.error());
                        return;
                      }
                      auto objects = objects_of(*in.what, from->chunks, from->before, *range, in.rank);
                      auto disk = leased_on_disk(from, *range, in.rank);
                      load_objects(client, what, *request, in.what, in.probe, std::move(objects),
                                   std::move(disk), region, false);
                    });
}

void read_lease(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::ReadLease>(frame);
  if (request == nullptr)
    return;
  if (client.group().isolated) {
    client.refuse(what, {errc::denied, "nothing is mapped in the isolated group " + client.group().name +
                                           "; use load with a region"});
    return;
  }
  client.set_deadline(what, request->deadline_ms());
  uint32_t first = request->first_chunk();
  uint32_t count = request->chunks();
  client.with_lease(
      what, protocol::to_lease_id(request->lease()), [&client, what, first, count](const lease_ptr& from) {
        auto range = checked_range(from->chunks.size(), first, count);
        if (!range) {
          client.refuse(what, range.error());
          return;
        }
        uint16_t rank = client.rank_in(from->in->id);
        load_job job;
        job.group = client.group_handle();
        job.in = from->in;
        job.objects = objects_of(*from->in, from->chunks, from->before, *range, rank);
        job.objects_per_chunk = from->in->spec.pools.size();
        job.disk_held = leased_on_disk(from, *range, rank);
        job.context = what.context;
        job.note_use = false; // the lookup that took the lease was the use
        start(client, what, std::move(job),
              [&client, what, from](const load_result& done) { tell_places(client, what, from, done); });
      });
}

} // namespace terrace::actors::verbs
