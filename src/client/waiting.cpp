// Receives the answers to submitted requests, and makes calls that submit one and wait for its answer.
#include "client/client.hpp"
#include "client/core.hpp"
#include "client/decode.hpp"

#include <cstring>

namespace terrace::client {

using detail::answer;
using detail::body_builder;
using detail::pass_on;
using protocol::kind;

namespace {

/// Returns the locations of objects in an answer.
template <class Location, class Table>
std::vector<Location> locations_in(const Table& table) {
  std::vector<Location> list;
  list.reserve(table.locations()->size());
  for (const auto* place : *table.locations())
    list.push_back({place->offset(), place->bytes(), place->segment()});
  return list;
}

/// Returns the places in this process, whose segments are mapped; empty where there is no object.
template <class Location>
result<std::vector<std::span<uint8_t>>> mapped_at(const detail::segments& mapped,
                                                  const std::vector<Location>& places, bool for_writing) {
  std::vector<std::span<uint8_t>> objects;
  objects.reserve(places.size());
  for (const auto& place : places) {
    if (place.bytes == 0) {
      objects.emplace_back();
      continue;
    }
    auto bytes = mapped.at(place.segment, place.offset, place.bytes, for_writing);
    if (!bytes)
      return pass_on(bytes);
    objects.push_back(*bytes);
  }
  return objects;
}

} // namespace

template <class Table, class T, class Read>
auto connection::take(ticket<T>& under_way, deadline until, Read&& read)
    -> result<decltype(read(std::declval<const Table&>()))> {
  if (!under_way)
    return fail(errc::bad_request, "expected a ticket of a request in flight, got an empty one");
  auto got = under_way.channel_->wait(under_way.id_, until);
  if (!got && got.error().code == errc::deadline)
    return pass_on(got); // the request is still in flight
  under_way.id_ = 0;
  if (!got)
    return pass_on(got);
  return detail::read_answer<Table>(*under_way.channel_, *got,
                                    [&](const Table& table, answer&) { return read(table); });
}

result<lookup_result> connection::wait(ticket<lookup_result>& under_way, deadline until) {
  auto read = [&](const wire::LookupAnswer& table) {
    lookup_result found{.requested_chunks = table.requested_chunks(),
                        .found_chunks = table.found_chunks(),
                        .found_tokens = table.found_tokens(),
                        .usable_tokens = table.usable_tokens(),
                        .tiers = std::vector<tier_kind>(table.found_chunks()),
                        .held = {},
                        .first_token = table.first_token(),
                        .missing = detail::decode(table.missing()),
                        .digests = detail::decode_digests(table),
                        .digest_width = table.digest_width(),
                        .recompute_chunks = table.recompute_chunks(),
                        .session = {},
                        .tail_tokens = table.tail_tokens(),
                        .cursors = {},
                        .logits = {}};
    if (table.logits())
      found.logits.assign(table.logits()->begin(), table.logits()->end());
    if (table.cursors())
      found.cursors.assign(table.cursors()->begin(), table.cursors()->end());
    if (table.tiers() && table.found_chunks() > 0)
      std::memcpy(found.tiers.data(), table.tiers()->data(), table.found_chunks());
    if (table.session_digest())
      found.session = {table.session_tokens(),
                       digest::from({table.session_digest()->data(), table.session_digest()->size()}),
                       table.session_digest()->size()};
    if (table.lease())
      found.held = lease(under_way.channel_, protocol::to_lease_id(table.lease()));
    return found;
  };
  if (under_way && under_way.channel_->request_of(under_way.id_) == kind::await_lookup)
    return take<wire::AwaitLookupAnswer>(under_way, until, [&](const wire::AwaitLookupAnswer& table) {
      auto found = read(*table.found());
      found.chunk_tokens = table.chunk_tokens();
      return found;
    });
  return take<wire::LookupAnswer>(under_way, until, read);
}

result<load_result> connection::wait(ticket<load_result>& under_way, deadline until) {
  return take<wire::LoadAnswer>(under_way, until, [](const auto& table) { return detail::decode(table); });
}

result<prefetch_result> connection::wait(ticket<prefetch_result>& under_way, deadline until) {
  return take<wire::PrefetchAnswer>(under_way, until,
                                    [](const auto& table) { return detail::decode(table); });
}

result<store_result> connection::wait(ticket<store_result>& under_way, deadline until) {
  // Stores and commits have equal answers.
  if (under_way && under_way.channel_->request_of(under_way.id_) == kind::commit)
    return take<wire::CommitAnswer>(under_way, until,
                                    [](const auto& table) { return detail::decode(table); });
  return take<wire::StoreAnswer>(under_way, until, [](const auto& table) { return detail::decode(table); });
}

result<void> connection::map_segments(detail::channel& channel_, std::span<const location> locations,
                                      deadline until) {
  for (const auto& place : locations) {
    if (place.bytes == 0 || channel_.mapped()->knows(place.segment))
      continue;
    auto mapped = detail::ask<kind::map_segment>(
        channel_, until, [&](body_builder& body) { return wire::CreateMapSegment(body, place.segment); },
        [&](const wire::MapSegmentAnswer& table, answer& with) -> result<void> {
          if (with.descriptors.empty())
            return fail(errc::internal, "expected a descriptor with the segment, got none");
          return channel_.mapped()->map(place.segment, with.descriptors[0], table.bytes(), table.writable());
        });
    if (!mapped)
      return mapped;
  }
  return {};
}

result<located_objects> connection::wait(ticket<located_objects>& under_way, deadline until) {
  auto in = under_way.channel_;
  uint64_t first_token = 0;
  std::optional<missing_object> missing;
  auto places = take<wire::ReadLeaseAnswer>(under_way, until, [&](const auto& table) {
    first_token = table.first_token();
    missing = detail::decode(table.missing());
    return locations_in<location>(table);
  });
  if (!places)
    return pass_on(places);
  if (auto ok = map_segments(*in, *places, until); !ok)
    return pass_on(ok);
  auto objects = mapped_at(*in->mapped(), *places, false);
  if (!objects)
    return pass_on(objects);
  return located_objects{.objects = {objects->begin(), objects->end()},
                         .mappings = in->mapped(),
                         .first_token = first_token,
                         .missing = missing};
}

result<reservation> connection::wait(ticket<reservation>& under_way, deadline until) {
  reservation made; // from the answer on, the reservation aborts itself if anything fails
  auto in = under_way.channel_;
  auto places = take<wire::ReserveAnswer>(under_way, until, [&](const auto& table) {
    made.channel_ = in;
    made.id_ = table.reservation();
    return locations_in<location>(table);
  });
  if (!places)
    return pass_on(places);
  if (auto ok = map_segments(*in, *places, until); !ok)
    return pass_on(ok);
  auto objects = mapped_at(*in->mapped(), *places, true);
  if (!objects)
    return pass_on(objects);
  made.objects_ = std::move(*objects);
  return made;
}

void connection::give_up(detail::any_ticket& under_way) {
  if (!under_way)
    return;
  under_way.channel_->post_cancel(under_way.id_);
  detail::any_ticket forgotten(std::move(under_way));
}

result<uint32_t> connection::poll(deadline until, on_signal signals) {
  return core_->now()->poll(until, signals);
}

// ---- calls that wait for their answer ----

template <class T>
result<T> connection::finish(result<ticket<T>> submitted, deadline until) {
  if (!submitted)
    return pass_on(submitted);
  auto done = wait(*submitted, until);
  // The ticket is valid but timed out, and nobody will take its answer.
  if (!done)
    give_up(*submitted);
  return done;
}

result<lookup_result> connection::lookup(const lookup_request& request, deadline until) {
  return finish(submit_lookup(request, until), until);
}

result<lookup_result> connection::await_lookup(const lookup_id& id, deadline until,
                                               const request_options& options) {
  return finish(submit_await_lookup(id, until, options), until);
}

result<located_objects> connection::read_lease(const lease_id& id, chunk_range range, deadline until,
                                               std::span<const uint8_t> pools, earlier_places earlier,
                                               const request_options& options) {
  return finish(submit_read_lease(id, range, until, pools, earlier, options), until);
}

result<load_result> connection::load(const load_request& request, deadline until) {
  auto done = finish(submit_load(request, until), until);
  if (request.progress)
    request.progress->end();
  if (request.layers)
    request.layers->in->end(*request.layers, done);
  return done;
}

result<prefetch_result> connection::prefetch(const prefetch_request& request, deadline until) {
  auto done = finish(submit_prefetch(request, until), until);
  if (request.progress)
    request.progress->end();
  return done;
}

result<store_result> connection::store(const store_request& request, deadline until) {
  return finish(submit_store(request, until), until);
}

result<reservation> connection::reserve(const reserve_request& request, deadline until) {
  return finish(submit_reserve(request, until), until);
}

result<store_result> connection::commit(reservation written, deadline until, const request_options& options) {
  return finish(submit_commit(std::move(written), until, options), until);
}

} // namespace terrace::client
