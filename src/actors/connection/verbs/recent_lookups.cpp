// recent_lookups: what clients of the trust group have looked up, for `terrace explain` and `terrace record`.
#include "group/recent_lookups.hpp"
#include "actors/connection/verbs.hpp"

#include <chrono>
#include <vector>

namespace terrace::actors::verbs {

namespace {

constexpr size_t digests_told_max = 16'384; ///< per answer, 512 KiB

flatbuffers::Offset<wire::RecentLookup> write_recent(flatbuffers::FlatBufferBuilder& body,
                                                     const recent_lookup& one,
                                                     std::chrono::steady_clock::time_point now) {
  const chunk_prefix& prefix = *one.prefix;
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> id, parent;
  if (one.id != lookup_id{})
    id = body.CreateVector(one.id.bytes.data(), one.id.bytes.size());
  if (prefix.parent)
    parent = body.CreateVector(prefix.parent->bytes.data(), prefix.parent->bytes.size());
  const size_t whole = prefix.whole_chunks();
  uint8_t* to = nullptr;
  auto digests = body.CreateUninitializedVector<uint8_t>(whole * digest::max_size, &to);
  for (size_t i = 0; i < whole; ++i)
    to = std::copy(prefix.chunks[i].bytes.begin(), prefix.chunks[i].bytes.end(), to);
  auto client = body.CreateString(one.client);
  auto trace = body.CreateString(one.trace);
  wire::RecentLookupBuilder written(body);
  written.add_number(one.number);
  written.add_age_ms(
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now - one.at).count()));
  written.add_connection(static_cast<uint64_t>(one.connection));
  written.add_client(client);
  written.add_trace(trace);
  if (!id.IsNull())
    written.add_lookup_id(id);
  written.add_space(static_cast<uint32_t>(one.space));
  written.add_chunk_tokens(one.chunk_tokens);
  written.add_prompt_tokens(prefix.prompt_tokens);
  written.add_first_token(prefix.first_token);
  if (!parent.IsNull())
    written.add_parent(parent);
  written.add_found_chunks(one.found_chunks);
  written.add_recompute_chunks(one.recompute_chunks);
  written.add_prefill_tokens_per_s(one.prefill_tokens_per_s);
  written.add_digests(digests);
  return written.Finish();
}

void tell_lookups(client_request& request, const recent_lookups::part& found) {
  auto now = request.client.environment().now();
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::RecentLookup>> written;
    for (const recent_lookup& one : found.lookups)
      written.push_back(write_recent(body, one, now));
    return wire::CreateRecentLookupsAnswer(body, body.CreateVector(written), found.lost, found.last);
  });
}

} // namespace

task<> recent_lookups(client_request& request, const wire::RecentLookups& asked, protocol::descriptor_list&) {
  co_await request.may_govern("lookups tell what all clients of the trust group ask for");
  request.inbox().set_deadline(request, asked.deadline_ms());
  auto& log = *request.client.group().lookups;
  change_count& changes = log.changes();
  const uint64_t after = asked.after();
  const bool waits = asked.waits();
  request.release_body();
  while (true) {
    if (!request.context->live()) {
      request.refuse({request.context->ended.load(),
                      "nobody has looked up anything behind lookup " + std::to_string(after)});
      co_return;
    }
    auto found = log.read(after, digests_told_max);
    if (!waits || !found.lookups.empty()) {
      tell_lookups(request, found);
      co_return;
    }
    request.context->work.end(); // it waits most of the time
    co_await request.changed(changes, after);
  }
}

} // namespace terrace::actors::verbs
