// Receives the answers to submitted requests, and makes calls that submit one and wait for its answer.
#include "client/client.hpp"
#include "client/conversions.hpp"
#include "client/core.hpp"

#include <cstring>

namespace terrace::client {

using detail::answer;
using detail::body_builder;
using detail::pass_on;
using protocol::kind;

namespace {

struct location {
  uint64_t offset;
  uint64_t bytes;
  uint32_t segment;
};

/// Returns the locations of objects in an answer.
template <class Table>
std::vector<location> locations_in(const Table& table) {
  std::vector<location> list;
  list.reserve(table.locations()->size());
  for (const auto* place : *table.locations())
    list.push_back({place->offset(), place->bytes(), place->segment()});
  return list;
}

/// Returns the places in this process, whose segments are mapped; empty where there is no object.
result<std::vector<std::span<uint8_t>>> mapped_at(const detail::segments& mapped,
                                                  const std::vector<location>& places, bool for_writing) {
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

result<void> map_segments(detail::channel& channel_, std::span<const location> locations, deadline until) {
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

} // namespace

template <class Table, class Read>
auto detail::any_ticket::take(deadline until, Read&& read)
    -> result<decltype(read(std::declval<const Table&>()))> {
  if (id_ == 0)
    return fail(errc::bad_request, "expected a ticket of a request in flight, got an empty one");
  auto got = channel_->wait(id_, until);
  if (!got && got.error().code == errc::deadline)
    return pass_on(got); // the request is still in flight
  id_ = 0;
  if (!got)
    return pass_on(got);
  return detail::read_answer<Table>(*channel_, *got,
                                    [&](const Table& table, answer&) { return read(table); });
}

template <>
result<lookup_result> ticket<lookup_result>::wait(deadline until) {
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
                        .pending_chunks = table.pending_chunks(),
                        .brought_chunks = table.brought_chunks(),
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
      found.held = lease(channel_, protocol::to_lease_id(table.lease()));
    return found;
  };
  if (id_ != 0 && channel_->request_of(id_) == kind::await_lookup)
    return take<wire::AwaitLookupAnswer>(until, [&](const wire::AwaitLookupAnswer& table) {
      auto found = read(*table.found());
      found.chunk_tokens = table.chunk_tokens();
      return found;
    });
  return take<wire::LookupAnswer>(until, read);
}

template <>
result<load_result> ticket<load_result>::wait(deadline until) {
  return take<wire::LoadAnswer>(until, [](const auto& table) { return detail::decode(table); });
}

template <>
result<prefetch_result> ticket<prefetch_result>::wait(deadline until) {
  return take<wire::PrefetchAnswer>(until, [](const auto& table) { return detail::decode(table); });
}

template <>
result<store_result> ticket<store_result>::wait(deadline until) {
  // Stores and commits have equal answers.
  if (id_ != 0 && channel_->request_of(id_) == kind::commit)
    return take<wire::CommitAnswer>(until, [](const auto& table) { return detail::decode(table); });
  return take<wire::StoreAnswer>(until, [](const auto& table) { return detail::decode(table); });
}

template <>
result<announced_chunks> ticket<announced_chunks>::wait(deadline until) {
  if (id_ != 0 && channel_->request_of(id_) == kind::announce)
    return take<wire::AnnounceAnswer>(until, [](const auto& table) {
      return announced_chunks{table.announced_chunks(), table.announced_chunks(), true};
    });
  return take<wire::FollowAnswer>(until, [](const auto& table) {
    return announced_chunks{table.announced_chunks(), table.found_chunks(), table.ended()};
  });
}

template <>
result<located_objects> ticket<located_objects>::wait(deadline until) {
  auto in = channel_;
  uint64_t first_token = 0;
  std::optional<missing_object> missing;
  auto places = take<wire::ReadLeaseAnswer>(until, [&](const auto& table) {
    first_token = table.first_token();
    missing = detail::decode(table.missing());
    return locations_in(table);
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

template <>
result<reservation> ticket<reservation>::wait(deadline until) {
  reservation made; // from the answer on, the reservation aborts itself if anything fails
  auto in = channel_;
  auto places = take<wire::ReserveAnswer>(until, [&](const auto& table) {
    made.channel_ = in;
    made.id_ = table.reservation();
    return locations_in(table);
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

result<bool> detail::any_ticket::cancel(deadline until) const {
  if (id_ == 0)
    return fail(errc::bad_request, "expected a ticket of a request in flight, got an empty one");
  return detail::ask<kind::cancel>(
      *channel_, until, [&](body_builder& body) { return wire::CreateCancel(body, id_); },
      [](const wire::CancelAnswer& table) { return table.found(); });
}

void detail::any_ticket::give_up() {
  if (id_ == 0)
    return;
  channel_->post_cancel(id_);
  any_ticket forgotten(std::move(*this));
}

result<uint32_t> connection::poll(deadline until, on_signal signals) {
  return core_->now()->poll(until, signals);
}

// ---- calls that wait for their answer ----

result<lookup_result> connection::lookup(const lookup_request& request, deadline until) {
  return detail::finish(async().lookup(request, until), until);
}

result<lookup_result> connection::await_lookup(const lookup_id& id, deadline until,
                                               const request_options& options) {
  return detail::finish(async().await_lookup(id, until, options), until);
}

result<announced_chunks> connection::follow(const lookup_id& name, uint32_t chunks, deadline until,
                                            const request_options& options) {
  return detail::finish(async().follow(name, chunks, until, options), until);
}

result<located_objects> connection::read_lease(const lease_id& id, chunk_range range, deadline until,
                                               std::span<const uint8_t> pools, earlier_places earlier,
                                               const request_options& options) {
  return detail::finish(async().read_lease(id, range, until, pools, earlier, options), until);
}

result<load_result> connection::load(const load_request& request, deadline until) {
  auto done = detail::finish(async().load(request, until), until);
  if (request.progress)
    request.progress->end();
  if (request.layers)
    request.layers->in->end(*request.layers, done);
  return done;
}

result<prefetch_result> connection::prefetch(const prefetch_request& request, deadline until) {
  auto done = detail::finish(async().prefetch(request, until), until);
  if (request.progress)
    request.progress->end();
  return done;
}

result<store_result> connection::store(const store_request& request, deadline until) {
  return detail::finish(async().store(request, until), until);
}

result<reservation> connection::reserve(const reserve_request& request, deadline until) {
  return detail::finish(async().reserve(request, until), until);
}

result<store_result> connection::commit(reservation written, deadline until, const request_options& options) {
  return detail::finish(async().commit(std::move(written), until, options), until);
}

} // namespace terrace::client
