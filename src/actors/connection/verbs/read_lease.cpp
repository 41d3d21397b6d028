// read_lease: the locations of leased chunks in the mapped arena.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/start_load.hpp"
#include "group/leased_part.hpp"
#include "index/object_header.hpp"

namespace terrace::actors::verbs {

namespace {

/// Beyond so many, the answer is larger than a frame.
constexpr size_t locations_max = (protocol::frame_bytes_max - 4096) / sizeof(wire::Location);

/// The answer is made in steps between other messages: a million locations take many milliseconds.
struct telling {
  connection::request what;
  lease_ptr from;
  transfer_scope scope;
  std::shared_ptr<const std::vector<object_place>> places;
  lease_reading reading;
  std::optional<wire::Missing> missing;
  std::unique_ptr<protocol::frame_builder> frame;
  size_t left = 0; ///< locations that the frame does not have yet: they are written from the last one on
};

/// False: there is another step.
bool write_some(connection& client, telling& work) {
  if (!work.frame) {
    work.left = work.places->size();
    work.frame =
        std::make_unique<protocol::frame_builder>(work.left * sizeof(wire::Location) + 1024); // never moved
    protocol::start_structs<wire::Location>(work.frame->start(), work.left);
  }
  size_t first = work.left - std::min(work.left, lease_reading::step_objects);
  std::vector<wire::Location> locations;
  locations.reserve(work.left - first);
  for (size_t i = first; i < work.left; ++i) {
    const object_place& place = (*work.places)[i];
    auto at = client.group().memory->locate(place.offset + object_header_bytes);
    locations.emplace_back(at.offset, place.payload_bytes, at.segment, 0);
  }
  protocol::push_structs(work.frame->body(), locations);
  work.left = first;
  return work.left == 0;
}

void finish(connection& client, telling& work) {
  auto& body = work.frame->body();
  auto locations = protocol::end_structs<wire::Location>(body, work.places->size());
  auto root = wire::CreateReadLeaseAnswer(body, locations, token_of(*work.from, work.scope.range),
                                          work.missing ? &*work.missing : nullptr);
  work.frame->finish(protocol::answer_to(work.what.kind), work.what.id, root);
  client.reply(work.what, std::move(work.frame));
}

/// When it ends, the client may read these locations, until it releases the lease or ends.
bool tell_some(connection& client, telling& work) {
  bool written = work.frame && work.left == 0;
  if (!written)
    written = write_some(client, work) && work.places->size() <= lease_reading::step_objects;
  if (!written)
    return false;
  auto more = client.read_some(work.what, work.reading); // last, because the answer must follow at once
  if (more && !*more)
    finish(client, work);
  return !more || !*more;
}

void tell_places(connection& client, const connection::request& what, const lease_ptr& from,
                 const transfer_scope& scope, uint16_t rank, const load_result& done) {
  bool many = done.places->size() >= object_hold::many_places;
  std::shared_ptr<telling> work(new telling, deleted_by{many ? client.group().lease_ends : nullptr});
  work->what = what;
  work->from = from;
  work->scope = scope;
  work->places = done.places;
  work->missing = missing_of(done, scope, rank, from->in->spec);
  work->reading.from = from;
  work->reading.places = *done.places;
  work->reading.holds = done.holds;
  work->reading.number = [numbers = scope_numbers(from->in->spec, scope, rank)](size_t i) {
    return numbers.of(i);
  };
  client.in_steps(what, "its locations were made ready",
                  [&client, work] { return tell_some(client, *work); });
}

void read_scope(connection& client, const connection::request& what, const lease_ptr& from,
                const transfer_scope& scope, const keep_alive& body) {
  auto rank = client.holdings().rank_in(*from->in);
  if (!client.ok(what, rank))
    return;
  with_leased_objects(
      client, what, from, scope, *rank, body,
      [&client, what, from, scope, rank = *rank](const batch_ptr& objects, tier_holds leased) {
        load_job job;
        job.group = client.group_handle();
        job.in = from->in;
        job.objects = objects;
        job.objects_per_chunk = scope.pools.size();
        job.leased = std::move(leased);
        job.context = what.context;
        job.held_by = from;
        job.account = client.leased();
        job.note_access = false; // the lookup that took the lease was the access
        start_load(client, what, std::move(job), [&client, what, from, scope, rank](const load_result& done) {
          tell_places(client, what, from, scope, rank, done);
        });
      });
}

} // namespace

void read_lease(connection& client, const connection::request& what, const wire::ReadLease& asked,
                protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_map(what, "load with a region"))
    return;
  auto body = client.hold_body(); // contains `asked`
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
        bool later = asked.replaces() && client.has_read(from->id);
        if (!later) {
          read_scope(client, what, from, *scope, body);
          return;
        }
        client.resume_after_lease_ends(what, [&client, what, from, scope = *scope, body] {
          if (what.context->live())
            read_scope(client, what, from, scope, body);
          else
            client.refuse(what, {what.context->ended.load(), "the request ended before it was served"});
        });
      });
}

} // namespace terrace::actors::verbs
