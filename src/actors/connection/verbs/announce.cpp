// announce: chunks that a client is going to store, for others who follow it.
#include "actors/connection/verbs.hpp"
#include "group/announcements.hpp"
#include "index/transfer_scope.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace terrace::actors::verbs {

namespace {

/// How many leading chunks are present, if `known` are. Looks behind these alone where each chunk counts for itself.
task<uint32_t> chunks_present(client_request& request, space_ptr space,
                              std::shared_ptr<const chunk_prefix> all, uint32_t known) {
  uint32_t before = has_trailing_pools(space->spec) ? 0 : known;
  auto rest = all;
  if (before != 0)
    rest = std::make_shared<const chunk_prefix>(
        part_of(*all, {before, static_cast<uint32_t>(all->chunks.size()) - before}));
  auto question = lookup_of(request, space, rest);
  question.counts = false; // nobody asks for them yet
  auto found = co_await request.look_up(std::move(question));
  co_return before + found.plan.found_chunks;
}

} // namespace

task<> announce(client_request& request, const wire::Announce& asked, protocol::descriptor_list&) {
  auto space = co_await request.space_of(asked);
  auto prefix = co_await request.chunks_of(*space, asked);
  auto all = std::make_shared<const chunk_prefix>(std::move(prefix));
  const auto chunks = static_cast<uint32_t>(all->chunks.size());
  co_await request.room(chunks); // the digests stay
  announcements& named = *request.client.group().announced;
  auto begun = named.begin(protocol::to_lookup_id(asked.name()), chunks);
  co_await request.valid(begun);
  announcements::owner announced = std::move(*begun);
  request.release_body();
  change_count& stores = named.stores();
  uint32_t found = 0;
  while (true) {
    if (!request.context->live()) {
      request.refuse(
          {request.context->ended.load(),
           std::to_string(found) + " of the " + std::to_string(chunks) + " announced chunks are stored"});
      co_return;
    }
    const uint64_t before = stores.now();
    found = co_await chunks_present(request, space->space, all, found);
    announced.found(found);
    if (found == chunks)
      break;
    request.context->work.end(); // it waits most of the time
    co_await request.changed(stores, before);
  }
  request.reply(
      [&](flatbuffers::FlatBufferBuilder& body) { return wire::CreateAnnounceAnswer(body, chunks); });
}

// follow: waits for what another client has announced.

task<> follow(client_request& request, const wire::Follow& asked, protocol::descriptor_list&) {
  announcements& named = *request.client.group().announced;
  const lookup_id name = protocol::to_lookup_id(asked.name());
  const uint32_t wanted = asked.chunks();
  change_count& changes = named.changes();
  request.release_body();
  while (true) {
    if (!request.context->live()) {
      request.refuse(
          {request.context->ended.load(), "what was announced did not come before the request ended"});
      co_return;
    }
    const uint64_t before = changes.now();
    auto state = named.of(name);
    if (state &&
        (state->ended || state->found >= (wanted == 0 ? state->chunks : std::min(wanted, state->chunks)))) {
      request.reply([&](flatbuffers::FlatBufferBuilder& body) {
        return wire::CreateFollowAnswer(body, state->chunks, state->found, state->ended);
      });
      co_return;
    }
    request.context->work.end(); // it waits most of the time
    co_await request.changed(changes, before);
  }
}

} // namespace terrace::actors::verbs
