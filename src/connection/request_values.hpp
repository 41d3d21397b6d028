// Translates wire requests into the values that other rooms take.
#pragma once

#include "base/eviction_types.hpp"
#include "base/request_context.hpp"
#include "index/prefix_resolver.hpp"
#include "index/space_spec.hpp"
#include "index/transfer_scope.hpp"
#include "protocol/terrace_generated.h"
#include "tier/policy/policy_messages.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace terrace {

// The defaults that a client declares when it opens a space. They apply to all its requests there that say
// nothing else.

struct request_defaults {
  uint32_t tiers = 0;                ///< bit n: tier_kind n may be searched; 0: all
  uint8_t priority = 128;            ///< smaller numbers are more urgent
  uint32_t deadline_ms = 0;          ///< 0: connection.request_deadline
  bool no_load = false;              ///< lookups find nothing
  bool no_store = false;             ///< nothing is stored
  uint32_t prefill_tokens_per_s = 0; ///< speed at which the client computes KV; 0: not declared
};

/// A set of tiers to search that contains no tier.
constexpr uint32_t no_tier = uint32_t{1} << 31;

/// Returns an empty span if there is no vector.
template <class T>
std::span<const T> span_of(const flatbuffers::Vector<T>* from) {
  return from == nullptr ? std::span<const T>() : std::span<const T>(from->data(), from->size());
}

/// The spec of a space, with its pools computed from their shapes. Errors: `bad_request` for a rank outside
/// the world; those of `shaped_pools`.
result<space_spec> spec_of(const wire::OpenSpace& request);

/// The result refers to the vectors of the prefix.
prefix_input input_of(const wire::Prefix& prefix);

/// The part of `chunks` chunks that a request selects. Errors: those of `checked_range` and `checked_pools`.
template <class Request>
result<transfer_scope> scope_of(const Request& request, const space_spec& spec, size_t chunks) {
  auto range = checked_range(chunks, request.first_chunk(), request.chunks());
  if (!range)
    return tl::unexpected(range.error());
  auto pools = checked_pools(spec, span_of(request.pools()), range->count);
  if (!pools)
    return tl::unexpected(pools.error());
  return transfer_scope{*range, std::move(*pools)};
}

/// Checks that the selected part of a prefix lies in the tokens or digests that were sent. In a session,
/// ranges count from the start of the prompt like the chunks of the prefix, otherwise from `parent_tokens`.
/// Error: `bad_request`.
result<void> check_sent(const wire::Prefix& prefix, const space_spec& spec, const chunk_range& range);

/// The part of its prefix, which has `chunks` chunks, that a request selects. Errors: those of `scope_of` and
/// `check_sent`.
template <class Request>
result<transfer_scope> prefix_scope_of(const Request& request, const space_spec& spec, size_t chunks) {
  const wire::Prefix& prefix = *request.prefix();
  auto scope = scope_of(request, spec, chunks);
  if (!scope && prefix.session() == nullptr && prefix.parent_tokens() != 0)
    return fail(scope.error().code, scope.error().text + "; first_chunk and chunks count from token " +
                                        std::to_string(prefix.parent_tokens()) + " (parent_tokens)");
  if (!scope)
    return scope;
  if (auto sent = check_sent(prefix, spec, scope->range); !sent)
    return tl::unexpected(sent.error());
  return scope;
}

/// Error: `not_found` for a tier that has no policy.
result<set_policy_request> policy_of(const wire::SetPolicy& request);

// ---- terms: of the request, or else of its space. `options`: may be null ----

request_defaults defaults_of(const wire::OpenSpace& request);

/// The speed at which the client computes, in tokens per second; 0: none is declared.
uint32_t prefill_speed_of(const wire::Options* options, const request_defaults& space);
uint8_t priority_of(const wire::Options* options, const request_defaults& space);
bool no_load_of(const wire::Options* options, const request_defaults& space);
bool no_store_of(const wire::Options* options, const request_defaults& space);
/// The tiers to search. It is `no_tier` for a request that loads nothing.
template <class Request>
uint32_t tiers_of(const Request& request, const request_defaults& space) {
  if (no_load_of(request.options(), space))
    return no_tier;
  return request.tiers() != 0 ? request.tiers() : space.tiers;
}

// ---- inferences ----

request_hints hints_of(const wire::Options& options, uint8_t priority);
/// The time by the client's clock, if the client sent it.
std::optional<policy_time> time_of(const wire::Options& options);

/// Begins an access to these objects, root first.
inference_begin begin_of(const request_context& request, const wire::Options& options, object_source objects);
inference_end end_of(const wire::EndInference& request);
/// The same access as shadow policies see it. `options` may be null. Without `rank` it is an access of all
/// ranks.
shadow_use shadow_use_of(const request_context& request, const wire::Options* options, space_ptr space,
                         std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank);

} // namespace terrace
