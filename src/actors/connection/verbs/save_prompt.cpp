// save_prompt: keeps the logits of a prompt, all of whose chunks are present.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

namespace {

error absent(const space_spec& spec, const prefix_plan& plan) {
  std::string which = "its chunk " + std::to_string(plan.found_chunks);
  if (plan.missing)
    which = "pool " + spec.pools[plan.missing->pool].name + " of rank " + std::to_string(plan.missing->rank) +
            " of its chunk " + std::to_string(plan.missing->chunk);
  return {errc::not_found, "prompt: " + which +
                               " is in no tier: expected all chunks of the prompt, its tail included; store "
                               "them, and then save it"};
}

saved_turn end_of(const space_ptr& space, const chunk_prefix& prefix, std::span<const uint64_t> cursors) {
  saved_turn end;
  end.space = space;
  end.chunks = prefix.whole_chunks();
  end.tail_tokens = prefix.tail_tokens;
  end.key = prefix.chunks.back();
  end.cursors.assign(cursors.begin(), cursors.end());
  return end;
}

} // namespace

task<> save_prompt(client_request& request, const wire::SavePrompt& asked, protocol::descriptor_list&) {
  auto space = co_await request.space_of(asked);
  const space_spec& spec = space->space->spec;
  auto cursors = span_of(asked.cursors());
  if (size_t pools = spec.pools.size(); !cursors.empty() && cursors.size() != pools) {
    request.refuse({errc::bad_request, std::to_string(cursors.size()) +
                                           " cursors: expected one for each of the " + std::to_string(pools) +
                                           " pools of the space"});
    co_return;
  }
  const wire::Prefix& sent = *asked.prefix();
  if (sent.parent_tokens() != 0 && sent.session() == nullptr) {
    request.refuse({errc::bad_request, "prompt: expected all of its tokens, or a session that has them"});
    co_return;
  }
  auto named = co_await stored_chunks(request, *space, sent);
  auto prefix = std::make_shared<const chunk_prefix>(std::move(named));
  auto entry = std::make_shared<prompt_entry>();
  auto logits = span_of(asked.logits());
  entry->logits.assign(logits.begin(), logits.end());
  entry->end = end_of(space->space, *prefix, cursors);
  if (entry->end.chunks != 0)
    entry->last_chunk = prefix->chunks[entry->end.chunks - 1];
  auto question = lookup_of(request, space->space, prefix);
  question.plan.logits = true;
  size_t charged = question.objects.size() / 64; // only the plan is kept
  co_await request.room(charged);
  auto found = co_await request.look_up(std::move(question));
  if (found.plan.found_chunks != prefix->chunks.size()) {
    request.refuse(absent(spec, found.plan));
    co_return;
  }
  const auto& group = request.client.group().group;
  save_prompt_request saved{entry};
  auto kept = co_await request.ask<save_prompt_answer>(group, std::move(saved), group_ended);
  co_await request.valid(kept.failure);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSavePromptAnswer(body, kept.prompts, kept.bytes);
  });
}

} // namespace terrace::actors::verbs
