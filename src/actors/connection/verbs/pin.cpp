// pin: keeps what is found of a prompt until it is unpinned.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"
#include "group/leased_part.hpp"

namespace terrace::actors::verbs {

task<> pin(client_request& request, const wire::Pin& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a pin takes memory from all clients of the trust group");
  auto space = co_await request.space_of(asked);
  auto named = co_await request.chunks_of(*space, asked);
  if (named.chunks.empty()) {
    request.refuse({errc::bad_request, "expected a prompt of at least one whole chunk"});
    co_return;
  }
  auto prefix = std::make_shared<const chunk_prefix>(std::move(named));
  auto question = lookup_of(request, space->space, prefix);
  question.hold = true; // charged to nobody's share: pins have their own bound
  question.copies = true;
  size_t objects = question.objects.size();
  co_await request.room(objects);
  auto found = co_await request.look_up(std::move(question));
  lease_ptr held;
  if (found.plan.found_chunks != 0) { // the group keeps the lease from now on
    held = lease_on(found, *prefix, space->space, random_lease_id(), connection_id{},
                    client.environment().now(), reference_kind::pin);
    uint64_t most = client.group().memory->size() / 100 * client.environment().limits.pin_percent;
    const auto& group = client.group().group;
    pin_request pinned{held, prefix->chunks.back(), most};
    auto kept = co_await request.ask<pin_answer>(group, std::move(pinned), group_ended);
    co_await request.valid(kept.failure);
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    auto requested = static_cast<uint32_t>(prefix->chunks.size());
    if (!held)
      return wire::CreatePinAnswer(body, requested);
    auto id = body.CreateVector(held->id.bytes.data(), held->id.bytes.size());
    auto chunks = static_cast<uint32_t>(held->chunks.size());
    return wire::CreatePinAnswer(body, requested, chunks, tokens_of(*held), held->bytes, id);
  });
}

// unpin: ends the pin of a prompt.

task<> unpin(client_request& request, const wire::Unpin& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a pin serves all clients of the trust group");
  auto space = co_await request.space_of(asked);
  auto prefix = co_await request.chunks_of(*space, asked);
  if (prefix.chunks.empty()) {
    request.refuse({errc::bad_request, "expected a prompt of at least one whole chunk"});
    co_return;
  }
  const auto& group = client.group().group;
  unpin_request prompt{space->space->id, prefix.chunks.back()};
  auto done = co_await request.ask<unpin_answer>(group, std::move(prompt), group_ended);
  co_await request.leases_ended(); // what was pinned can be evicted then
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateUnpinAnswer(body, done.pins, done.bytes);
  });
}

} // namespace terrace::actors::verbs
