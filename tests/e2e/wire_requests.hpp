// Requests of which a test changes some fields, as frames with request id 2: for requests that libterrace
// never sends.
#pragma once

#include "tests/support/raw_client.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace::e2e {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using protocol::kind;
using test::frame_bytes;
using test::frame_with;

constexpr uint64_t small_object = 4096; ///< the size of an object unless a test sets another

inline std::vector<uint8_t> bytes_of(size_t count) { return std::vector<uint8_t>(count, 7); }

template <class T>
Offset<flatbuffers::Vector<T>> list_of(FlatBufferBuilder& b, const std::optional<std::vector<T>>& list) {
  return list ? b.CreateVector(*list) : 0;
}

struct tensor_fields {
  wire::TensorFormat format = wire::TensorFormat::kv_2ltd;
  std::string dtype = "uint8";
  uint32_t kv_size = 2, layers = 1, hidden = 1, first_layer = 0;
};

struct pool_fields {
  std::string name = "kv";
  uint64_t object_bytes = small_object;
  wire::HitRule rule = wire::HitRule::all_chunks;
  std::vector<tensor_fields> tensors{};
  uint32_t groups = 1;
};

struct space_fields {
  std::string model = "rules";
  uint32_t chunk = 16, block = 16, world = 1, rank = 0;
  std::vector<pool_fields> pools{{}};
  wire::HashAlgorithm algorithm = wire::HashAlgorithm::sha256_cbor;
  uint32_t deadline_ms = 0; ///< the default of the space's requests
};

inline frame_bytes open_space(const space_fields& with) {
  return frame_with(kind::open_space, 2, [&](FlatBufferBuilder& b) {
    std::vector<Offset<wire::Pool>> pools;
    for (const auto& pool : with.pools) {
      std::vector<Offset<wire::Tensor>> tensors;
      for (const auto& t : pool.tensors)
        tensors.push_back(wire::CreateTensor(b, t.format, b.CreateString(t.dtype), t.kv_size, t.layers,
                                             t.hidden, t.first_layer));
      auto list = tensors.empty() ? 0 : b.CreateVector(tensors);
      pools.push_back(wire::CreatePool(b, b.CreateString(pool.name), pool.object_bytes, pool.rule, 1, false,
                                       list, pool.groups));
    }
    auto defaults =
        with.deadline_ms == 0 ? 0 : wire::CreateRequestDefaults(b, 0, 128, with.deadline_ms, false, false);
    auto model = b.CreateString(with.model), dtype = b.CreateString("uint8"), layout = b.CreateString("l");
    return wire::CreateOpenSpace(b, model, 0, dtype, layout, with.chunk, with.block, with.world,
                                 b.CreateVector(pools), 0, with.algorithm, 0, with.rank, 0, defaults);
  });
}

/// A space with one pool of tensors. It has no `object_bytes` unless they are given.
inline frame_bytes open_tensors(std::vector<tensor_fields> tensors, uint64_t bytes = 0, uint32_t groups = 1) {
  return open_space({.pools = {{.object_bytes = bytes, .tensors = std::move(tensors), .groups = groups}}});
}

struct item_fields {
  uint32_t first = 0, tokens = 1;
};

struct prefix_fields {
  std::optional<std::vector<uint32_t>> tokens{};
  std::optional<std::vector<uint8_t>> parent{};
  uint32_t parent_tokens = 0;
  std::optional<std::vector<uint8_t>> digests{};
  uint8_t width = 32;
  wire::DigestUnit unit = wire::DigestUnit::chunk;
  std::optional<std::vector<uint32_t>> end_offsets{};
  std::string lora{}, salt{};
  std::vector<item_fields> items{};
  std::optional<std::vector<uint8_t>> session{};
  bool tail = false;
};

inline prefix_fields of_tokens(size_t count) { return {.tokens = std::vector<uint32_t>(count, 5)}; }
inline prefix_fields of_digests(size_t count, uint8_t width = 32) {
  return {.digests = bytes_of(count * width), .width = width};
}
inline prefix_fields after(size_t parent_bytes, uint32_t parent_tokens, size_t tokens = 32) {
  auto made = of_tokens(tokens);
  made.parent = bytes_of(parent_bytes);
  made.parent_tokens = parent_tokens;
  return made;
}
inline prefix_fields ending_at(std::vector<uint32_t> ends, size_t digests = 2) {
  auto made = of_digests(digests);
  made.end_offsets = std::move(ends);
  return made;
}
inline prefix_fields with_items(std::vector<item_fields> items, size_t tokens = 32) {
  auto made = of_tokens(tokens);
  made.items = std::move(items);
  return made;
}
/// Adds this many items of a token each, one after the other.
inline prefix_fields with_items(uint32_t count) {
  std::vector<item_fields> items(count);
  for (uint32_t i = 0; i < count; ++i)
    items[i].first = i;
  return with_items(std::move(items), 16);
}

inline Offset<wire::Prefix> add(FlatBufferBuilder& b, const prefix_fields& with) {
  std::vector<Offset<wire::Item>> items;
  for (const auto& one : with.items)
    items.push_back(wire::CreateItem(b, b.CreateString("x"), one.first, one.tokens));
  auto text = [&](const std::string& value) { return value.empty() ? 0 : b.CreateString(value); };
  auto tokens = list_of(b, with.tokens), ends = list_of(b, with.end_offsets);
  auto parent = list_of(b, with.parent), digests = list_of(b, with.digests);
  auto lora = text(with.lora), salt = text(with.salt);
  auto list = items.empty() ? 0 : b.CreateVector(items);
  auto session = list_of(b, with.session);
  return wire::CreatePrefix(b, tokens, parent, with.parent_tokens, digests, with.width, with.unit, ends, lora,
                            salt, list, 0, session, with.tail);
}

struct lookup_fields {
  uint32_t tiers = 0;
  std::optional<std::vector<uint8_t>> id{};
  bool logits = false;
};

inline frame_bytes lookup(uint32_t space, const prefix_fields& prefix, const lookup_fields& with = {}) {
  return frame_with(kind::lookup, 2, [&](FlatBufferBuilder& b) {
    auto what = add(b, prefix);
    auto id = list_of(b, with.id);
    return wire::CreateLookup(b, space, what, false, with.tiers, 0, 0, id, false, with.logits);
  });
}

struct prefetch_fields {
  std::optional<prefix_fields> prefix = of_digests(2);
  std::optional<std::vector<uint8_t>> lease{}, id{};
  wire::StopRule rule = wire::StopRule::best_effort;
  uint32_t deadline_ms = 0;
  std::optional<wire::Arrivals> arrivals{};
  uint32_t tiers = 0;
  std::optional<bool> no_load{};
};

inline flatbuffers::Offset<wire::Options> options_with(FlatBufferBuilder& b, std::optional<bool> no_load) {
  if (!no_load)
    return 0;
  wire::OptionsBuilder options(b);
  options.add_no_load(*no_load);
  return options.Finish();
}

inline frame_bytes prefetch(uint32_t space, const prefetch_fields& with) {
  return frame_with(kind::prefetch, 2, [&](FlatBufferBuilder& b) {
    auto prefix = with.prefix ? add(b, *with.prefix) : 0;
    auto lease = list_of(b, with.lease), id = list_of(b, with.id);
    auto options = options_with(b, with.no_load);
    return wire::CreatePrefetch(b, space, prefix, lease, id, 1, with.rule, with.deadline_ms, options,
                                with.arrivals ? &*with.arrivals : nullptr, with.tiers);
  });
}

struct transfer_fields {
  std::optional<prefix_fields> prefix = of_digests(2);
  std::optional<std::vector<uint8_t>> lease{};
  uint32_t first = 0, chunks = 0;
  std::vector<wire::Run> runs{{0, small_object, 0, 1}, {small_object, small_object, 0, 1}};
  std::optional<std::vector<uint32_t>> runs_per_object{};
  std::optional<wire::Arrivals> arrivals{};
  uint32_t tiers = 0;
  std::optional<bool> no_load{};
};

inline frame_bytes load(uint32_t space, uint32_t region, const transfer_fields& with) {
  return frame_with(kind::load, 2, [&](FlatBufferBuilder& b) {
    auto runs = protocol::create_structs(b, with.runs);
    auto prefix = with.prefix ? add(b, *with.prefix) : 0;
    auto lease = list_of(b, with.lease);
    auto counts = list_of(b, with.runs_per_object);
    auto options = options_with(b, with.no_load);
    return wire::CreateLoad(b, space, prefix, lease, with.first, with.chunks, region, runs, counts, 0,
                            options, 0, with.arrivals ? &*with.arrivals : nullptr, with.tiers);
  });
}

inline frame_bytes store(uint32_t space, uint32_t region, const transfer_fields& with) {
  return frame_with(kind::store, 2, [&](FlatBufferBuilder& b) {
    auto runs = protocol::create_structs(b, with.runs);
    auto prefix = add(b, with.prefix.value());
    auto counts = list_of(b, with.runs_per_object);
    return wire::CreateStore(b, space, prefix, with.first, with.chunks, region, runs, counts);
  });
}

struct reserve_fields {
  prefix_fields prefix = of_digests(2);
  uint32_t first = 0, chunks = 0;
  std::optional<std::vector<uint8_t>> pools{};
};

inline frame_bytes reserve(uint32_t space, const reserve_fields& with) {
  return frame_with(kind::reserve, 2, [&](FlatBufferBuilder& b) {
    auto prefix = add(b, with.prefix);
    auto pools = list_of(b, with.pools);
    return wire::CreateReserve(b, space, prefix, with.first, with.chunks, 0, 0, pools);
  });
}

inline frame_bytes cancel(uint64_t request, std::optional<std::vector<uint8_t>> id = {}) {
  return frame_with(kind::cancel, 2,
                    [&](FlatBufferBuilder& b) { return wire::CreateCancel(b, request, list_of(b, id)); });
}

inline frame_bytes save_session(uint32_t space, const prefix_fields& prefix, size_t cursors = 0) {
  return frame_with(kind::save_session, 2, [&](FlatBufferBuilder& b) {
    auto what = add(b, prefix);
    auto told = cursors == 0 ? flatbuffers::Offset<flatbuffers::Vector<uint64_t>>()
                             : b.CreateVector(std::vector<uint64_t>(cursors, 7));
    return wire::CreateSaveSession(b, space, what, 0, 0, told);
  });
}

inline frame_bytes save_prompt(uint32_t space, const prefix_fields& prefix) {
  return frame_with(kind::save_prompt, 2, [&](FlatBufferBuilder& b) {
    auto what = add(b, prefix);
    return wire::CreateSavePrompt(b, space, what, b.CreateVector(bytes_of(8)));
  });
}

inline frame_bytes end_inference(uint64_t number, wire::FinishReason reason = wire::FinishReason::stop) {
  return frame_with(kind::end_inference, 2, [&](FlatBufferBuilder& b) {
    return wire::CreateEndInference(b, number, flatbuffers::nullopt, reason);
  });
}

} // namespace terrace::e2e
