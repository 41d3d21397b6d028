#include "connection/request_values.hpp"

#include "base/tier_properties.hpp"
#include "index/space_spec.hpp"

#include <string>
#include <utility>
#include <vector>

namespace terrace {

namespace {

std::string text(const flatbuffers::String* from) { return from == nullptr ? std::string() : from->str(); }

std::vector<tensor_shape> tensors_of(const wire::Pool& pool, const std::string& dtype) {
  std::vector<tensor_shape> tensors;
  if (pool.tensors() != nullptr)
    for (const wire::Tensor* tensor : *pool.tensors())
      tensors.push_back({static_cast<tensor_format>(tensor->format()),
                         tensor->dtype() == nullptr ? dtype : tensor->dtype()->str(), tensor->kv_size(),
                         tensor->layers(), tensor->hidden(), tensor->first_layer()});
  return tensors;
}

} // namespace

result<space_spec> spec_of(const wire::OpenSpace& request) {
  if (request.rank() >= request.world_size())
    return fail(errc::bad_request, "rank is " + std::to_string(request.rank()) +
                                       "; expected less than world_size, " +
                                       std::to_string(request.world_size()));
  space_spec spec;
  spec.model = text(request.model());
  spec.revision = text(request.revision());
  spec.dtype = text(request.dtype());
  spec.layout = text(request.layout());
  spec.chunk_tokens = request.chunk_tokens();
  spec.hash_block_tokens = request.hash_block_tokens();
  spec.world_size = request.world_size();
  for (const wire::Pool* pool : *request.pools()) {
    auto pools =
        shaped_pools({pool->name()->str(), pool->object_bytes(), static_cast<hit_rule>(pool->hit_rule()),
                      pool->trailing(), pool->replicated(), tensors_of(*pool, spec.dtype)},
                     pool->layer_groups(), spec.chunk_tokens);
    if (!pools)
      return tl::unexpected(pools.error());
    spec.pools.insert(spec.pools.end(), pools->begin(), pools->end());
  }
  spec.salt = text(request.salt());
  spec.algorithm = static_cast<hash_algorithm>(request.algorithm());
  spec.seed = text(request.seed());
  return spec;
}

// ---- terms ----

request_defaults defaults_of(const wire::OpenSpace& request) {
  request_defaults defaults;
  if (const wire::RequestDefaults* told = request.defaults())
    defaults = {told->tiers(), told->priority(), told->deadline_ms(), told->no_load(), told->no_store()};
  defaults.prefill_tokens_per_s = request.prefill_tokens_per_s();
  return defaults;
}

uint32_t prefill_speed_of(const wire::Options* options, const request_defaults& space) {
  uint32_t otherwise = space.prefill_tokens_per_s;
  return options == nullptr ? otherwise : options->prefill_tokens_per_s().value_or(otherwise);
}

uint8_t priority_of(const wire::Options* options, const request_defaults& space) {
  return options == nullptr ? space.priority : options->priority().value_or(space.priority);
}

bool no_load_of(const wire::Options* options, const request_defaults& space) {
  return options == nullptr ? space.no_load : options->no_load().value_or(space.no_load);
}

bool no_store_of(const wire::Options* options, const request_defaults& space) {
  return options == nullptr ? space.no_store : options->no_store().value_or(space.no_store);
}

prefix_input input_of(const wire::Prefix& prefix) {
  prefix_input input;
  input.tokens = span_of(prefix.tokens());
  input.parent = span_of(prefix.parent());
  input.parent_tokens = prefix.parent_tokens();
  input.digests = span_of(prefix.digests());
  input.digest_width = prefix.digest_width();
  input.unit = prefix.digest_unit() == wire::DigestUnit::chunk ? digest_unit::chunk : digest_unit::hash_block;
  input.end_offsets = span_of(prefix.end_offsets());
  input.tail = prefix.tail();
  if (prefix.lora() != nullptr)
    input.extra.lora = prefix.lora()->str();
  if (prefix.salt() != nullptr)
    input.extra.salt = prefix.salt()->str();
  if (prefix.items() != nullptr)
    for (const wire::Item* item : *prefix.items())
      input.extra.items.push_back({item->identifier()->str(), item->first_token(), item->tokens()});
  if (prefix.tags() != nullptr)
    for (const auto* tag : *prefix.tags())
      input.tags.push_back(tag->str());
  return input;
}

result<void> check_sent(const wire::Prefix& prefix, const space_spec& spec, const chunk_range& range) {
  if (prefix.session() == nullptr)
    return {};
  uint32_t first = prefix.parent_tokens() / spec.chunk_tokens;
  if (range.first >= first)
    return {};
  return fail(errc::bad_request,
              "chunks from " + std::to_string(range.first) +
                  " on were asked for, and the session is "
                  "continued at token " +
                  std::to_string(prefix.parent_tokens()) + " (parent_tokens): expected a first_chunk of " +
                  std::to_string(first) +
                  " or more, because in a session it counts from the start of the prompt; to name earlier "
                  "chunks, send the tokens from them on");
}

result<set_policy_request> policy_of(const wire::SetPolicy& request) {
  std::string tier = request.tier()->str();
  for (tier_kind kind : governed_tiers)
    if (tier == to_string(kind))
      return set_policy_request{kind, request.policy()->str()};
  return fail(errc::not_found, "expected a tier named host or disk, got '" + tier + "'");
}

// ---- inferences ----

request_hints hints_of(const wire::Options& options, uint8_t priority) {
  request_hints hints;
  hints.session = options.session();
  hints.turn = options.turn();
  hints.retention = static_cast<uint8_t>((255 - priority) / 32);
  return hints;
}

std::optional<policy_time> time_of(const wire::Options& options) {
  auto told = options.time_ns();
  return told ? std::optional<policy_time>(*told) : std::nullopt;
}

inference_begin begin_of(const request_context& request, const wire::Options& options,
                         object_source objects) {
  return {request.inference, std::move(objects), hints_of(options, request.priority), time_of(options)};
}

inference_end end_of(const wire::EndInference& request) {
  inference_end end;
  end.inference = request.inference();
  if (auto tokens = request.output_tokens())
    end.outcome.output_tokens = *tokens;
  end.outcome.reason = static_cast<finish_reason>(request.reason());
  end.outcome.session_closed = request.session_closed();
  if (auto think = request.think_time_ms())
    end.outcome.think_time_ns = uint64_t{*think} * 1'000'000;
  if (auto time = request.time_ns())
    end.told = *time;
  return end;
}

shadow_use shadow_use_of(const request_context& request, const wire::Options* options, space_ptr space,
                         std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  shadow_use use{std::move(space), std::move(prefix), rank, request.inference, {}, {}};
  if (options != nullptr)
    use.hints = hints_of(*options, request.priority);
  if (options != nullptr && request.inference != 0)
    use.told = time_of(*options);
  return use;
}

} // namespace terrace
