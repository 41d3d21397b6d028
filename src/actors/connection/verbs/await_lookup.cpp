// await_lookup: the result of another client's lookup, and a share in its lease.
#include "actors/connection/verbs.hpp"
#include "connection/lookup_answers.hpp"

namespace terrace::actors::verbs {

namespace {

/// Whether the client may use the lease of the lookup from now on; otherwise the request was refused.
bool share(client_request& request, const lookup_outcome& found, const lease_ptr& held) {
  connected_client& client = request.client;
  if (!request.context->live()) { // the lease would never be released
    request.refuse({request.context->ended.load(), "the wait for a lookup ended"});
    return false;
  }
  if (found.leased && (!held || held->revoked.is_set())) {
    request.refuse({errc::gone, "the lookup was answered, and its lease has ended since"});
    return false;
  }
  if (!held || client.holdings().holds(held->id))
    return true;
  lease_reading nothing; // but from now on the lease ends with its last holder
  nothing.from = held;
  return request.ok(client.holdings().may_lease()) && read_some(request, nothing);
}

} // namespace

task<lookup_outcome_ptr> awaited(client_request& request, lookup_id wanted) {
  const auto& group = request.client.group().group;
  await_lookup_request wait{wanted, request.context};
  request.release_body();
  auto answered = co_await request.ask<await_lookup_answer>(group, std::move(wait), group_ended);
  co_await request.valid(answered.failure);
  co_return std::move(answered.found);
}

task<> await_lookup(client_request& request, const wire::AwaitLookup& asked, protocol::descriptor_list&) {
  lookup_id wanted = protocol::to_lookup_id(asked.lookup_id());
  auto answered = co_await awaited(request, wanted);
  const lookup_outcome& found = *answered;
  lease_ptr held = found.held.lock();
  if (!share(request, found, held))
    co_return;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    auto answer = write_lookup_answer(
        body, found.plan, {found.recompute_chunks, found.pending_chunks, found.brought_chunks},
        held ? held->id : lease_id{}, {}, {},
        {found.cursors, found.prompt ? std::span(found.prompt->logits) : std::span<const uint8_t>()});
    return wire::CreateAwaitLookupAnswer(body, answer, found.chunk_tokens);
  });
}

// cancel: ends a request of this connection early, or a lookup by its id.

task<> cancel(client_request& request, const wire::Cancel& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  bool found = false;
  if (asked.lookup_id() != nullptr) {
    const auto& group = client.group().group;
    cancel_lookup_request lookup{protocol::to_lookup_id(asked.lookup_id())};
    auto cancelled = co_await request.ask<cancel_lookup_answer>(group, std::move(lookup), group_ended);
    found = cancelled.found;
  } else {
    found = asked.request() != request.id && request.inbox().cancel(asked.request(), errc::cancelled);
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) { return wire::CreateCancelAnswer(body, found); });
}

} // namespace terrace::actors::verbs
