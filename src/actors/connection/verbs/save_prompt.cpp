// save_prompt: keeps the logits of a prompt, all of whose chunks are present.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

namespace {

struct prompt_saving {
  connection& client;
  connection::request what;
  client_space_ptr in;
  std::shared_ptr<prompt_entry> entry;
  std::shared_ptr<const chunk_prefix> prefix;
};
using prompt_saving_ptr = std::shared_ptr<const prompt_saving>;

void refuse_absent(const prompt_saving& of, const prefix_plan& plan) {
  std::string which = "its chunk " + std::to_string(plan.found_chunks);
  if (plan.missing)
    which = "pool " + of.in->what->spec.pools[plan.missing->pool].name + " of rank " +
            std::to_string(plan.missing->rank) + " of its chunk " + std::to_string(plan.missing->chunk);
  of.client.refuse(of.what,
                   {errc::not_found, "prompt: " + which +
                                         " is in no tier: expected all chunks of the prompt, its tail "
                                         "included; store them, and then save it"});
}

void keep_prompt(const prompt_saving_ptr& of) {
  of->client.ask(of->what, of->client.group().group, save_prompt_request{of->entry},
                 "the trust group's actor has ended", [of](const save_prompt_answer& kept) {
                   if (!of->client.ok(of->what, kept.failure))
                     return;
                   of->client.reply(of->what, [&](flatbuffers::FlatBufferBuilder& body) {
                     return wire::CreateSavePromptAnswer(body, kept.prompts, kept.bytes);
                   });
                 });
}

void search_prompt(const prompt_saving_ptr& of) {
  connection& client = of->client;
  lookup_request request;
  request.group = client.group_handle();
  request.in = of->in->what;
  request.objects = {of->in->what, {of->prefix, &of->prefix->chunks}};
  request.context = of->what.context;
  request.plan = {static_cast<uint32_t>(of->prefix->chunks.size()), of->prefix->first_token,
                  of->prefix->prompt_tokens, of->prefix->tail_tokens, true};
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(of->what, worker, std::move(request), "the lookup's actor has ended",
             [of, worker](const lookup_answer& found) {
               of->client.idle_lookups().put_back(worker);
               if (!of->client.ok(of->what, found.failure))
                 return;
               if (found.plan.found_chunks != of->prefix->chunks.size())
                 refuse_absent(*of, found.plan);
               else
                 keep_prompt(of);
             });
}

void save_named(const prompt_saving_ptr& of) {
  const chunk_prefix& prefix = *of->prefix;
  saved_turn& end = of->entry->end;
  end.in = of->in->what;
  end.chunks = prefix.whole_chunks();
  end.tail_tokens = prefix.tail_tokens;
  end.key = prefix.chunks.back();
  if (end.chunks != 0)
    of->entry->last_chunk = prefix.chunks[end.chunks - 1];
  size_t objects =
      object_source(of->in->what, {of->prefix, &prefix.chunks}).size() / 64; // only the plan is kept
  of->client.with_room(of->what, objects, [of] { search_prompt(of); });
}

} // namespace

void save_prompt(connection& client, const connection::request& what, const wire::SavePrompt& asked,
                 protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto cursors = span_of(asked.cursors());
  if (size_t pools = in->what->spec.pools.size(); !cursors.empty() && cursors.size() != pools) {
    client.refuse(what, {errc::bad_request, std::to_string(cursors.size()) +
                                                " cursors: expected one for each of the " +
                                                std::to_string(pools) + " pools of the space"});
    return;
  }
  if (asked.prefix()->parent_tokens() != 0 && asked.prefix()->session() == nullptr) {
    client.refuse(what,
                  {errc::bad_request, "prompt: expected all of its tokens, or a session that has them"});
    return;
  }
  auto entry = std::make_shared<prompt_entry>();
  entry->end.cursors.assign(cursors.begin(), cursors.end());
  auto logits = span_of(asked.logits());
  entry->logits.assign(logits.begin(), logits.end());
  with_stored_chunks(
      client, what, *in, *asked.prefix(), [&client, what, in, entry](chunk_prefix prefix, const keep_alive&) {
        save_named(std::make_shared<const prompt_saving>(
            prompt_saving{client, what, in, entry, std::make_shared<const chunk_prefix>(std::move(prefix))}));
      });
}

} // namespace terrace::actors::verbs
