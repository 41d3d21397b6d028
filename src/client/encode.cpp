#include "client/conversions.hpp"

#include "client/arrivals.hpp"
#include "protocol/descriptors.hpp"

#include <vector>

namespace terrace::client::detail {

namespace {

static_assert(prefix::tokens_max == protocol::tokens_max && prefix::chunks_max == protocol::chunks_max);

using flatbuffers::Offset;
using text = Offset<flatbuffers::String>;

text optional_text(body_builder& body, std::string_view value) {
  return value.empty() ? text() : body.CreateString(value.data(), value.size());
}

template <class T>
Offset<flatbuffers::Vector<T>> optional_vector(body_builder& body, std::span<const T> values) {
  if (values.empty())
    return {};
  return body.CreateVector(values.data(), values.size());
}

} // namespace

Offset<wire::Prefix> encode(body_builder& body, const prefix& prompt) {
  std::vector<Offset<wire::Item>> items;
  for (const auto& item : prompt.items)
    items.push_back(wire::CreateItem(body, body.CreateString(item.identifier.data(), item.identifier.size()),
                                     item.first_token, item.tokens));
  std::vector<text> tags;
  for (auto tag : prompt.tags)
    tags.push_back(body.CreateString(tag.data(), tag.size()));
  auto session = optional_vector(body, prompt.session);
  // An empty prompt is one without tokens, and not one without a prompt.
  const bool has_tokens = !prompt.tokens.empty() || !prompt.session.empty() || prompt.digests.empty();
  auto tokens = has_tokens ? body.CreateVector(prompt.tokens.data(), prompt.tokens.size())
                           : Offset<flatbuffers::Vector<uint32_t>>();
  auto parent = optional_vector(body, prompt.parent);
  auto digests = optional_vector(body, prompt.digests);
  auto end_offsets = optional_vector(body, prompt.end_offsets);
  auto lora = optional_text(body, prompt.lora);
  auto salt = optional_text(body, prompt.salt);
  auto item_list = items.empty() ? 0 : body.CreateVector(items);
  auto tag_list = tags.empty() ? 0 : body.CreateVector(tags);
  return wire::CreatePrefix(body, tokens, parent, prompt.parent_tokens, digests, prompt.digest_width,
                            static_cast<wire::DigestUnit>(prompt.unit), end_offsets, lora, salt, item_list,
                            tag_list, session, prompt.tail);
}

Offset<wire::Options> encode(body_builder& body, const request_options& options) {
  if (options == request_options{})
    return {};
  auto trace = optional_text(body, options.trace);
  return wire::CreateOptions(body, to_wire(options.priority), trace, options.inference, options.session,
                             options.turn, to_wire(options.time), to_wire(options.prefill_tokens_per_s),
                             to_wire(options.no_load), to_wire(options.no_store));
}

namespace {

Offset<flatbuffers::Vector<const wire::Run*>> encode(body_builder& body, std::span<const run> runs) {
  static_assert(sizeof(run) == sizeof(wire::Run) && offsetof(run, count) == 24, "copied as they are");
  return body.CreateVectorOfStructs(reinterpret_cast<const wire::Run*>(runs.data()), runs.size());
}

Offset<flatbuffers::Vector<Offset<wire::Tensor>>> encode(body_builder& body,
                                                         const std::vector<tensor_shape>& shapes) {
  std::vector<Offset<wire::Tensor>> tensors;
  for (const auto& shape : shapes) {
    auto dtype = optional_text(body, shape.dtype);
    tensors.push_back(wire::CreateTensor(body, static_cast<wire::TensorFormat>(shape.format), dtype,
                                         shape.kv_size, shape.layers, shape.hidden, shape.first_layer));
  }
  return tensors.empty() ? 0 : body.CreateVector(tensors);
}

} // namespace

Offset<wire::Hello> encode(body_builder& body, const hello_request& request) {
  auto name = body.CreateString(request.name.data(), request.name.size());
  auto resumes = optional_vector(body, request.resumes);
  auto boot = request.resumes.empty() ? 0 : body.CreateVector(request.resumes_boot.bytes.data(), 16);
  return wire::CreateHello(body, protocol::version, name, resumes, boot, request.observes);
}

Offset<wire::OpenSpace> encode(body_builder& body, const space_spec& spec, uint32_t known) {
  std::vector<Offset<wire::Pool>> pools;
  for (const auto& pool : spec.pools) {
    auto tensors = encode(body, pool.tensors);
    pools.push_back(wire::CreatePool(body, body.CreateString(pool.name), pool.object_bytes,
                                     static_cast<wire::HitRule>(pool.rule), pool.trailing, pool.replicated,
                                     tensors, pool.layer_groups));
  }
  auto model = body.CreateString(spec.model);
  auto revision = optional_text(body, spec.revision);
  auto dtype = body.CreateString(spec.dtype);
  auto layout = body.CreateString(spec.layout);
  auto pool_list = body.CreateVector(pools);
  auto salt = optional_text(body, spec.salt);
  auto seed = optional_text(body, spec.seed);
  Offset<wire::RequestDefaults> defaults;
  if (spec.defaults != request_defaults{}) {
    const request_defaults& of = spec.defaults;
    defaults = wire::CreateRequestDefaults(body, of.tiers, of.priority,
                                           static_cast<uint32_t>(of.time.count()), of.no_load, of.no_store);
  }
  return wire::CreateOpenSpace(body, model, revision, dtype, layout, spec.chunk_tokens,
                               spec.hash_block_tokens, spec.world_size, pool_list, salt,
                               static_cast<wire::HashAlgorithm>(spec.algorithm), seed, spec.rank,
                               spec.prefill_tokens_per_s, defaults, known);
}

Offset<wire::Lookup> encode(body_builder& body, const lookup_request& request,
                            const request_context& context) {
  auto prefix = encode(body, request.what);
  auto options = encode(body, request.options);
  auto id = request.id ? body.CreateVector(request.id->bytes.data(), request.id->bytes.size()) : 0;
  return wire::CreateLookup(body, context.space, prefix, request.lease, request.tiers, context.deadline_ms,
                            options, id, request.digests, request.logits);
}

Offset<wire::AwaitLookup> encode(body_builder& body, const lookup_id& lookup, const request_options& with,
                                 const request_context& context) {
  auto id = body.CreateVector(lookup.bytes.data(), lookup.bytes.size());
  return wire::CreateAwaitLookup(body, id, context.deadline_ms, encode(body, with));
}

/// Encodes where the daemon counts what arrives; `where` provides the storage. Returns null if `progress` is
/// null.
static const wire::Arrivals* encode(const arrivals* progress, const request_context& context,
                                    wire::Arrivals& where) {
  if (progress == nullptr)
    return nullptr;
  where = wire::Arrivals(progress->offset(), context.progress_region);
  return &where;
}

Offset<wire::Load> encode(body_builder& body, const load_request& request, const request_context& context) {
  wire::Arrivals progress;
  wire::Generation layers;
  if (request.layers)
    layers = wire::Generation(request.layers->layer(0).offset, context.layers_region, request.layers->value);
  auto prefix = request.lease ? Offset<wire::Prefix>() : encode(body, request.what);
  auto lease = request.lease ? body.CreateVector(request.lease->bytes.data(), 16) : 0;
  auto runs = encode(body, request.runs);
  auto counts = optional_vector(body, request.runs_per_object);
  auto options = encode(body, request.options);
  auto pools = optional_vector(body, request.pools);
  return wire::CreateLoad(body, context.space, prefix, lease, request.range.first, request.range.count,
                          context.region, runs, counts, context.deadline_ms, options, pools,
                          encode(request.progress, context, progress), request.tiers,
                          request.layers ? &layers : nullptr);
}

Offset<wire::Prefetch> encode(body_builder& body, const prefetch_request& request,
                              const request_context& context) {
  wire::Arrivals progress;
  auto prefix = request.lease || request.lookup ? Offset<wire::Prefix>() : encode(body, request.what);
  auto lease = request.lease ? body.CreateVector(request.lease->bytes.data(), 16) : 0;
  auto lookup = request.lookup ? body.CreateVector(request.lookup->bytes.data(), 16) : 0;
  auto options = encode(body, request.options);
  auto time = request.time.count() > 0 ? static_cast<uint32_t>(request.time.count()) : context.deadline_ms;
  return wire::CreatePrefetch(body, context.space, prefix, lease, lookup, static_cast<uint8_t>(request.to),
                              static_cast<wire::StopRule>(request.rule), time, options,
                              encode(request.progress, context, progress), request.tiers);
}

Offset<wire::Announce> encode(body_builder& body, const announcement& request,
                              const request_context& context) {
  auto prefix = encode(body, request.what);
  auto name = body.CreateVector(request.name.bytes.data(), request.name.bytes.size());
  auto options = encode(body, request.options);
  return wire::CreateAnnounce(body, context.space, prefix, name, context.deadline_ms, options);
}

Offset<wire::EndInference> encode(body_builder& body, const inference_end& ended) {
  std::optional<uint32_t> think_ms;
  if (ended.think_time)
    think_ms = static_cast<uint32_t>(std::clamp<int64_t>(ended.think_time->count(), 0, UINT32_MAX));
  return wire::CreateEndInference(body, ended.inference, to_wire(ended.output_tokens),
                                  static_cast<wire::FinishReason>(ended.reason), ended.session_closed,
                                  to_wire(think_ms), to_wire(ended.time));
}

Offset<wire::Store> encode(body_builder& body, const store_request& request, const request_context& context) {
  auto prefix = encode(body, request.what);
  auto runs = encode(body, request.runs);
  auto counts = optional_vector(body, request.runs_per_object);
  auto options = encode(body, request.options);
  auto pools = optional_vector(body, request.pools);
  wire::Generation after;
  if (request.after)
    after = wire::Generation(request.after->offset, context.progress_region, request.after->value);
  return wire::CreateStore(body, context.space, prefix, request.range.first, request.range.count,
                           context.region, runs, counts, context.deadline_ms, options, pools,
                           request.after ? &after : nullptr);
}

Offset<wire::Reserve> encode(body_builder& body, const reserve_request& request,
                             const request_context& context) {
  auto prefix = encode(body, request.what);
  auto options = encode(body, request.options);
  auto pools = optional_vector(body, request.pools);
  return wire::CreateReserve(body, context.space, prefix, request.range.first, request.range.count,
                             context.deadline_ms, options, pools);
}

Offset<wire::ReadLease> encode(body_builder& body, const lease_id& lease, chunk_range range,
                               std::span<const uint8_t> pools, earlier_places earlier,
                               const request_options& with, const request_context& context) {
  auto id = body.CreateVector(lease.bytes.data(), lease.bytes.size());
  auto wanted = optional_vector(body, pools);
  auto options = encode(body, with);
  return wire::CreateReadLease(body, id, range.first, range.count, context.deadline_ms, options, wanted,
                               earlier == earlier_places::given_up);
}

Offset<wire::Commit> encode_commit(body_builder& body, uint64_t reservation, const request_options& with,
                                   const request_context& context) {
  auto options = encode(body, with);
  return wire::CreateCommit(body, reservation, context.deadline_ms, options);
}

} // namespace terrace::client::detail
