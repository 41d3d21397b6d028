#include "protocol/bounds.hpp"
#include "base/tier_properties.hpp"
#include "protocol/bounds_checks.hpp"

namespace terrace::protocol {

namespace {

/// A bit for each kind of tier.
constexpr uint64_t tier_bits_max = (uint64_t{1} << tier_kinds) - 1;

result<void> check_cursors(const flatbuffers::Vector<uint64_t>* cursors) {
  if (auto ok = check_aligned("cursors", cursors); !ok)
    return ok;
  return check_number("number of cursors", size_of(cursors), 0, open_pools_max);
}

result<void> check_range(uint32_t first_chunk, uint32_t chunks) {
  return check_number("first_chunk + chunks", uint64_t{first_chunk} + chunks, 0, chunks_max);
}

/// The verb checks whether the space has these pools, and how large a tensor may be, because only there the
/// space is known.
result<void> check_shape(const wire::Pool& pool) {
  if (auto ok = check_number("layer_groups of a pool", pool.layer_groups(), 1, open_pools_max); !ok)
    return ok;
  if (!pool.tensors())
    return check_number("object_bytes of a pool", pool.object_bytes(), 1, object_bytes_max);
  if (auto ok = check_number("number of tensors", pool.tensors()->size(), 1, tensors_max); !ok)
    return ok;
  for (const auto* tensor : *pool.tensors()) {
    if (auto ok = check_number("format of a tensor", static_cast<uint8_t>(tensor->format()), 0,
                               static_cast<uint8_t>(wire::TensorFormat::MAX));
        !ok)
      return ok;
    if (auto ok = check_text("dtype of a tensor", tensor->dtype(), name_bytes_max); !ok)
      return ok;
  }
  return check_number("object_bytes of a pool", pool.object_bytes(), 0, object_bytes_max);
}

result<void> check_pool_numbers(const byte_vector* pools) {
  if (!pools)
    return {};
  if (auto ok = check_number("number of pools", pools->size(), 1, open_pools_max); !ok)
    return ok;
  for (flatbuffers::uoffset_t i = 0; i < pools->size(); ++i)
    if (pools->Get(i) >= open_pools_max || (i > 0 && pools->Get(i) <= pools->Get(i - 1)))
      return refuse("expected numbers of pools that rise and are below " + std::to_string(open_pools_max) +
                    ", got " + std::to_string(pools->Get(i)));
  return {};
}

} // namespace

result<void> check(const wire::Options* options) {
  return options ? check_text("trace", options->trace(), name_bytes_max) : result<void>{};
}

// ---- requests ----

result<void> check(const wire::Hello& table) {
  if (auto ok = check_text("client_name", table.client_name(), name_bytes_max, false); !ok)
    return ok;
  if (auto ok = check_aligned("resumes", table.resumes()); !ok)
    return ok;
  if (auto ok = check_number("number of resumes", size_of(table.resumes()), 0, resumes_max); !ok)
    return ok;
  return check_id("resumes_boot", table.resumes_boot(), size_of(table.resumes()) == 0);
}

result<void> check(const wire::OpenSpace& table) {
  if (table.known_space() != 0)
    return check_number("rank", table.rank(), 0, 0);
  for (auto [field, value] :
       {std::pair{"model", table.model()}, {"dtype", table.dtype()}, {"layout", table.layout()}})
    if (auto ok = check_text(field, value, name_bytes_max, false); !ok)
      return ok;
  for (auto [field, value] :
       {std::pair{"revision", table.revision()}, {"salt", table.salt()}, {"seed", table.seed()}})
    if (auto ok = check_text(field, value, string_bytes_max); !ok)
      return ok;
  if (auto ok = check_number("chunk_tokens", table.chunk_tokens(), 1, chunk_tokens_max); !ok)
    return ok;
  if (auto ok = check_number("hash_block_tokens", table.hash_block_tokens(), 1, table.chunk_tokens()); !ok)
    return ok;
  if (table.chunk_tokens() % table.hash_block_tokens() != 0)
    return refuse("expected chunk_tokens to be a multiple of hash_block_tokens, got " +
                  std::to_string(table.chunk_tokens()) + " and " + std::to_string(table.hash_block_tokens()));
  if (auto ok = check_number("world_size", table.world_size(), 1, world_size_max); !ok)
    return ok;
  if (auto ok = check_number("rank", table.rank(), 0, table.world_size() - 1); !ok)
    return ok;
  if (auto ok = check_number("algorithm", static_cast<uint8_t>(table.algorithm()), 0,
                             static_cast<uint8_t>(wire::HashAlgorithm::MAX));
      !ok)
    return ok;
  if (auto ok = check_number("number of pools", table.pools()->size(), 1, pools_max); !ok)
    return ok;
  for (const auto* pool : *table.pools()) {
    if (auto ok = check_text("name of a pool", pool->name(), pool_name_bytes_max, false); !ok)
      return ok;
    if (auto ok = check_shape(*pool); !ok)
      return ok;
    if (auto ok = check_number("hit_rule of a pool", static_cast<uint8_t>(pool->hit_rule()), 0,
                               static_cast<uint8_t>(wire::HitRule::MAX));
        !ok)
      return ok;
    if (auto ok = check_number("trailing of a pool", pool->trailing(), 1, chunks_max); !ok)
      return ok;
    for (const auto* other : *table.pools())
      if (other != pool && other->name()->string_view() == pool->name()->string_view())
        return refuse("expected pools with different names, got two named \"" + pool->name()->str() + "\"");
  }
  const auto* defaults = table.defaults();
  return defaults == nullptr ? result<void>{}
                             : check_number("tiers of the defaults", defaults->tiers(), 0, tier_bits_max);
}

result<void> check(const wire::RegisterRegion& table) {
  if (auto ok = check_number("kind of a region", static_cast<uint8_t>(table.kind()), 0,
                             static_cast<uint8_t>(wire::RegionKind::MAX));
      !ok)
    return ok;
  if (auto ok = check_number("bytes of a region", table.bytes(), 1, region_bytes_max); !ok)
    return ok;
  if (auto ok = check_number("events of a region", table.events(), 0, region_events_max); !ok)
    return ok;
  if (table.events() != 0 &&
      (table.kind() != wire::RegionKind::generations || table.bytes() < table.events() * region_event_bytes))
    return refuse("expected events only with generations, in a region of at least " +
                  std::to_string(region_event_bytes) + " bytes for each");
  if (table.kind() == wire::RegionKind::memfd)
    return {};
  if (auto ok = check_text("device of a region", table.device(), name_bytes_max, false); !ok)
    return ok;
  size_t handle = table.kind() == wire::RegionKind::cuda_ipc ? 64 : 0;
  return check_number("bytes of a handle", size_of(table.handle()), handle, handle);
}

result<void> check(const wire::Lookup& table) {
  if (auto ok = check_number("tiers", table.tiers(), 0, tier_bits_max); !ok)
    return ok;
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (auto ok = check_id("lookup_id", table.lookup_id(), true); !ok)
    return ok;
  if (table.logits() && !table.prefix()->tail())
    return refuse("expected a prefix with a tail with logits: a prompt is named by all of its tokens");
  return check(table.options());
}

result<void> check(const wire::AwaitLookup& table) {
  if (auto ok = check_id("lookup_id", table.lookup_id(), false); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::Announce& table) {
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (auto ok = check_id("name", table.name(), false); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::Follow& table) {
  if (auto ok = check_id("name", table.name(), false); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::ReadLease& table) {
  if (auto ok = check_id("lease", table.lease(), false); !ok)
    return ok;
  if (auto ok = check_range(table.first_chunk(), table.chunks()); !ok)
    return ok;
  if (auto ok = check_pool_numbers(table.pools()); !ok)
    return ok;
  return check(table.options());
}

/// A request can choose which tiers are searched only for a prefix: the objects of a lease have been found already.
template <class Request>
result<void> check_prefix_terms(const Request& table) {
  if (auto ok = check_number("tiers", table.tiers(), 0, tier_bits_max); !ok)
    return ok;
  if (table.prefix() == nullptr && table.tiers() != 0)
    return refuse("expected tiers with a prefix only: what a lease or a lookup_id names has been found");
  bool no_load = table.options() != nullptr && table.options()->no_load().value_or(false);
  if (table.prefix() == nullptr && no_load)
    return refuse("expected no_load with a prefix only: release the lease instead");
  return {};
}

result<void> check(const wire::Load& table) {
  if (!table.prefix() == !table.lease())
    return refuse("expected exactly one of prefix and lease, got " +
                  std::string(table.prefix() ? "both" : "neither"));
  if (auto ok = table.prefix() ? check(*table.prefix()) : check_id("lease", table.lease(), false); !ok)
    return ok;
  if (auto ok = check_range(table.first_chunk(), table.chunks()); !ok)
    return ok;
  if (auto ok = check_run_lists(*table.runs(), table.runs_per_object()); !ok)
    return ok;
  if (auto ok = check_prefix_terms(table); !ok)
    return ok;
  if (auto ok = check_pool_numbers(table.pools()); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::Prefetch& table) {
  int subjects = (table.prefix() ? 1 : 0) + (table.lease() ? 1 : 0) + (table.lookup_id() ? 1 : 0);
  if (subjects != 1)
    return refuse("expected exactly one of prefix, lease and lookup_id, got " + std::to_string(subjects));
  if (auto ok = table.prefix() ? check(*table.prefix()) : result<void>{}; !ok)
    return ok;
  if (auto ok = check_id("lease", table.lease(), true); !ok)
    return ok;
  if (auto ok = check_id("lookup_id", table.lookup_id(), true); !ok)
    return ok;
  if (auto ok = check_prefix_terms(table); !ok)
    return ok;
  if (auto ok = check_number("to", table.to(), 0, 3); !ok)
    return ok;
  if (auto ok = check_number("rule", static_cast<uint8_t>(table.rule()), 0,
                             static_cast<uint8_t>(wire::StopRule::MAX));
      !ok)
    return ok;
  if (table.rule() == wire::StopRule::deadline && table.deadline_ms() == 0)
    return refuse("expected deadline_ms with the rule deadline, got 0");
  return check(table.options());
}

result<void> check(const wire::Store& table) {
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (auto ok = check_range(table.first_chunk(), table.chunks()); !ok)
    return ok;
  if (auto ok = check_run_lists(*table.runs(), table.runs_per_object()); !ok)
    return ok;
  if (auto ok = check_pool_numbers(table.pools()); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::Reserve& table) {
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (auto ok = check_range(table.first_chunk(), table.chunks()); !ok)
    return ok;
  if (auto ok = check_pool_numbers(table.pools()); !ok)
    return ok;
  return check(table.options());
}

result<void> check(const wire::Cancel& table) {
  if ((table.request() == 0) == (table.lookup_id() == nullptr))
    return refuse("expected exactly one of request and lookup_id, got " +
                  std::string(table.lookup_id() ? "both" : "neither"));
  return check_id("lookup_id", table.lookup_id(), true);
}
result<void> check(const wire::SetPolicy& table) {
  if (auto ok = check_text("tier", table.tier(), name_bytes_max, false); !ok)
    return ok;
  return check_text("policy", table.policy(), name_bytes_max, false);
}

namespace {

/// Checks a prompt and the options of the request.
template <class Table>
result<void> check_prompt(const Table& table) {
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  return check(table.options());
}

} // namespace

result<void> check(const wire::Pin& table) { return check_prompt(table); }
result<void> check(const wire::Unpin& table) { return check_prompt(table); }
result<void> check(const wire::Evict& table) {
  if (auto ok = check_number("tiers", table.tiers(), 0, tier_bits_max); !ok)
    return ok;
  return check_prompt(table);
}
result<void> check(const wire::Explain& table) { return check_prompt(table); }
result<void> check(const wire::Move& table) {
  if (auto ok = check_number("to", table.to(), 0, 2); !ok)
    return ok;
  return check_prompt(table);
}
result<void> check(const wire::Quota& table) {
  if (auto ok = check_text("name", table.name(), name_bytes_max); !ok)
    return ok;
  if (auto ok = check_text("tier", table.tier(), name_bytes_max); !ok)
    return ok;
  if (auto ok = check_number("max_percent", table.max_percent().value_or(0), 0, 100); !ok)
    return ok;
  return check_number("guaranteed_percent", table.guaranteed_percent().value_or(0), 0, 100);
}
result<void> check(const wire::SaveSession& table) {
  if (!table.prefix()->session())
    return refuse("expected a prefix that continues a session");
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (table.cursors() && !table.prefix()->tail())
    return refuse("expected a tail with cursors, which are those of the turn's end");
  if (auto ok = check_cursors(table.cursors()); !ok)
    return ok;
  return check(table.options());
}
result<void> check(const wire::SavePrompt& table) {
  if (auto ok = check(*table.prefix()); !ok)
    return ok;
  if (!table.prefix()->tail())
    return refuse("expected a prefix with a tail: a prompt is named by all of its tokens");
  if (auto ok = check_number("size of logits in bytes", table.logits()->size(), 1, logits_bytes_max); !ok)
    return ok;
  if (auto ok = check_cursors(table.cursors()); !ok)
    return ok;
  return check(table.options());
}
result<void> check(const wire::OpenSession& table) {
  if (auto ok = check_number("mode of a session", static_cast<uint8_t>(table.mode()), 0,
                             static_cast<uint8_t>(wire::SessionMode::MAX));
      !ok)
    return ok;
  if (table.parent())
    if (auto ok = check_number("size of parent in bytes", table.parent()->size(), digest::min_size,
                               digest::max_size);
        !ok)
      return ok;
  if (auto ok = check_text("lora", table.lora(), name_bytes_max); !ok)
    return ok;
  return check_text("salt", table.salt(), name_bytes_max);
}
result<void> check(const wire::EndInference& table) {
  if (table.inference() == 0)
    return refuse("inference is 0: expected the number that the inference's requests carried");
  return check_number("reason", static_cast<uint64_t>(table.reason()), 0,
                      static_cast<uint64_t>(wire::FinishReason::aborted));
}

} // namespace terrace::protocol
