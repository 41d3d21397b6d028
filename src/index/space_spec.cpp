#include "index/space_spec.hpp"

#include "base/printable.hpp"
#include "index/sha256.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace terrace {

namespace {

constexpr std::string_view fingerprint_version = "terrace space v1";

using text = std::string;

tl::unexpected<error> wrong(const text& field, const text& came, const text& expected) {
  return fail(errc::bad_request, "space: " + field + " is " + came + ": expected " + expected);
}

tl::unexpected<error> wrong(const text& field, uint64_t came, uint64_t low, uint64_t high) {
  return wrong(field, std::to_string(came), std::to_string(low) + " to " + std::to_string(high));
}

result<void> check_texts(const space_spec& s) {
  struct {
    const char* name;
    const text& value;
    size_t min;
  } const fields[] = {{"model", s.model, 1},   {"revision", s.revision, 0}, {"dtype", s.dtype, 1},
                      {"layout", s.layout, 1}, {"salt", s.salt, 0},         {"seed", s.seed, 0}};
  for (auto& field : fields)
    if (field.value.size() < field.min || field.value.size() > space_spec::text_bytes_max)
      return wrong(text("the length of ") + field.name, field.value.size(), field.min,
                   space_spec::text_bytes_max);
  return {};
}

result<void> check_pools(const space_spec& s) {
  if (s.pools.empty() || s.pools.size() > space_spec::pools_max)
    return wrong("the number of pools", s.pools.size(), 1, space_spec::pools_max);
  std::set<std::string_view> names;
  for (auto& pool : s.pools) {
    if (pool.name.empty() || pool.name.size() > space_spec::pool_name_bytes_max)
      return wrong("the length of a pool's name", pool.name.size(), 1, space_spec::pool_name_bytes_max);
    if (!names.insert(pool.name).second)
      return wrong("the name of a second pool", "'" + pool.name + "'", "different names");
    auto of_pool = [&](const char* field) { return text(field) + " of pool '" + pool.name + "'"; };
    if (pool.object_bytes == 0 || pool.object_bytes > space_spec::object_bytes_max)
      return wrong(of_pool("object_bytes"), pool.object_bytes, 1, space_spec::object_bytes_max);
    if (pool.rule > hit_rule::trailing_chunks)
      return wrong(of_pool("hit_rule"), std::to_string(static_cast<int>(pool.rule)),
                   "0 (all_chunks) or 1 (trailing_chunks)");
    if (!pool.tensors.empty()) {
      auto shape = object_shape::make(pool.tensors, s.chunk_tokens);
      if (!shape)
        return wrong(of_pool("shape"), "wrong", "another: " + shape.error().text);
      if (shape->bytes() != pool.object_bytes)
        return wrong(of_pool("object_bytes"), std::to_string(pool.object_bytes),
                     std::to_string(shape->bytes()) + ", the size of its tensors");
    }
    if (pool.rule == hit_rule::trailing_chunks &&
        (pool.trailing == 0 || pool.trailing > space_spec::trailing_max))
      return wrong(of_pool("trailing"), pool.trailing, 1, space_spec::trailing_max);
  }
  return {};
}

void put(sha256& hash, uint64_t number) {
  uint8_t bytes[8];
  for (auto& byte : bytes) {
    byte = static_cast<uint8_t>(number);
    number >>= 8;
  }
  hash.update(bytes);
}

void put(sha256& hash, std::string_view words) {
  put(hash, words.size());
  hash.update({reinterpret_cast<const uint8_t*>(words.data()), words.size()});
}

/// Adds nothing for a space without shapes, so that its fingerprint equals that of earlier versions without
/// shapes.
void put_shapes(sha256& hash, const std::vector<pool_spec>& pools) {
  for (size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].tensors.empty())
      continue;
    put(hash, i);
    put(hash, pools[i].tensors.size());
    for (auto& tensor : pools[i].tensors) {
      put(hash, static_cast<uint64_t>(tensor.format));
      put(hash, tensor.dtype);
      for (uint64_t number : {tensor.kv_size, tensor.layers, tensor.hidden, tensor.first_layer})
        put(hash, number);
    }
  }
}

} // namespace

std::string_view to_string(hash_algorithm algorithm) {
  switch (algorithm) {
    case hash_algorithm::sha256_cbor: return "sha256_cbor";
    case hash_algorithm::sha256: return "sha256";
    case hash_algorithm::xxh3_128: return "xxh3_128";
  }
  return "unknown";
}

std::string differences(const space_spec& here, const space_spec& there) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  auto compare = [&](const char* field, const std::string& in_here, const std::string& in_there) {
    if (in_here != in_there)
      add(std::string(field) + " is " + (in_there.empty() ? "empty" : printable(in_there)) + " there and " +
          (in_here.empty() ? "empty" : printable(in_here)) + " here");
  };
  compare("model", here.model, there.model);
  compare("revision", here.revision, there.revision);
  compare("dtype", here.dtype, there.dtype);
  compare("layout", here.layout, there.layout);
  compare("chunk_tokens", std::to_string(here.chunk_tokens), std::to_string(there.chunk_tokens));
  compare("hash_block_tokens", std::to_string(here.hash_block_tokens),
          std::to_string(there.hash_block_tokens));
  compare("world_size", std::to_string(here.world_size), std::to_string(there.world_size));
  compare("algorithm", std::string(to_string(here.algorithm)), std::string(to_string(there.algorithm)));
  if (here.pools != there.pools)
    add("the pools differ");
  if (here.salt != there.salt)
    add("the salt differs");
  if (here.seed != there.seed)
    add("the seed differs");
  return text;
}

result<void> space_spec::validate(bool isolated) const {
  if (auto valid = check_texts(*this); !valid)
    return valid;
  if (chunk_tokens == 0 || chunk_tokens > chunk_tokens_max)
    return wrong("chunk_tokens", chunk_tokens, 1, chunk_tokens_max);
  if (hash_block_tokens == 0 || chunk_tokens % hash_block_tokens != 0)
    return wrong("hash_block_tokens", std::to_string(hash_block_tokens),
                 "a divisor of chunk_tokens (" + std::to_string(chunk_tokens) + ")");
  if (world_size == 0 || world_size > world_size_max)
    return wrong("world_size", world_size, 1, world_size_max);
  if (algorithm > hash_algorithm::xxh3_128)
    return wrong("algorithm", std::to_string(static_cast<int>(algorithm)),
                 "0 (sha256_cbor), 1 (sha256) or 2 (xxh3_128)");
  if (isolated && algorithm == hash_algorithm::xxh3_128)
    return fail(errc::denied,
                "space: algorithm xxh3_128 is not collision-resistant and is refused in an isolated trust "
                "group: expected sha256_cbor or sha256");
  return check_pools(*this);
}

digest space_spec::fingerprint() const {
  sha256 hash;
  hash.begin();
  put(hash, fingerprint_version);
  for (std::string_view field : {model, revision, dtype, layout})
    put(hash, field);
  for (uint64_t number : {chunk_tokens, hash_block_tokens, world_size})
    put(hash, number);
  put(hash, salt);
  put(hash, static_cast<uint64_t>(algorithm));
  put(hash, seed);
  put(hash, pools.size());
  for (auto& pool : pools) {
    put(hash, pool.name);
    put(hash, pool.object_bytes);
    put(hash, static_cast<uint64_t>(pool.rule));
    put(hash, pool.rule == hit_rule::trailing_chunks ? pool.trailing : 0);
    put(hash, pool.replicated ? 1 : 0);
  }
  put_shapes(hash, pools);
  return hash.finish();
}

namespace {

template <class R>
tl::unexpected<error> of_pool(const pool_spec& pool, const R& failed) {
  return fail(failed.error().code, "pool '" + pool.name + "': " + failed.error().text);
}

} // namespace

result<object_shape> shape_of(const pool_spec& pool, uint32_t chunk_tokens) {
  auto shape = object_shape::make(pool.tensors, chunk_tokens);
  if (!shape)
    return of_pool(pool, shape);
  return shape;
}

result<std::vector<pool_spec>> shaped_pools(const pool_spec& stated, uint32_t layer_groups,
                                            uint32_t chunk_tokens) {
  if (stated.tensors.empty()) {
    if (layer_groups > 1)
      return fail(errc::bad_request, "pool '" + stated.name + "' has " + std::to_string(layer_groups) +
                                         " layer groups but no tensors: expected tensors, whose layers "
                                         "can be divided, or one group");
    return std::vector{stated};
  }
  auto whole = shape_of(stated, chunk_tokens);
  if (!whole)
    return tl::unexpected(whole.error());
  if (stated.object_bytes != 0 && stated.object_bytes != whole->bytes())
    return fail(errc::bad_request, "pool '" + stated.name + "': object_bytes is " +
                                       std::to_string(stated.object_bytes) + ": expected 0, or " +
                                       std::to_string(whole->bytes()) + ", the size of its tensors");
  if (layer_groups > space_spec::pools_max)
    return fail(errc::bad_request, "pool '" + stated.name + "' has " + std::to_string(layer_groups) +
                                       " layer groups: expected at most " +
                                       std::to_string(space_spec::pools_max));
  if (layer_groups <= 1) {
    std::vector<pool_spec> one{stated};
    one[0].object_bytes = whole->bytes();
    return one;
  }
  auto groups = divide_layers(stated.tensors, layer_groups);
  if (!groups)
    return of_pool(stated, groups);
  std::vector<pool_spec> pools(layer_groups, stated);
  for (size_t g = 0; g < pools.size(); ++g) {
    pools[g].name += "." + std::to_string(g);
    pools[g].tensors = std::move((*groups)[g]);
    auto shape = shape_of(pools[g], chunk_tokens);
    if (!shape)
      return tl::unexpected(shape.error());
    pools[g].object_bytes = shape->bytes();
  }
  return pools;
}

namespace {

tl::unexpected<error> wrong_tensor(const text& field, const text& came, const text& expected) {
  return fail(errc::bad_request, "tensor: " + field + " is " + came + ": expected " + expected);
}

constexpr std::pair<std::string_view, uint32_t> dtypes[] = {
    {"float64", 64},         {"float32", 32},        {"float16", 16},    {"bfloat16", 16}, {"float8_e4m3", 8},
    {"float8_e4m3fn", 8},    {"fp8_e4m3", 8},        {"float8_e5m2", 8}, {"fp8_e5m2", 8},  {"fp8", 8},
    {"int64", 64},           {"int32", 32},          {"int8", 8},        {"uint8", 8},     {"int4", 4},
    {"float4_e2m1fn_x2", 8}, // two per byte
    {"float8_e4m3fnuz", 8},  {"float8_e5m2fnuz", 8},
};

} // namespace

std::string_view to_string(tensor_format format) {
  switch (format) {
    case tensor_format::binary: return "BINARY";
    case tensor_format::kv_2ltd: return "KV_2LTD";
    case tensor_format::kv_t2d: return "KV_T2D";
    case tensor_format::kv_2td: return "KV_2TD";
    case tensor_format::kv_mla: return "KV_MLA";
  }
  return "unknown";
}

std::optional<uint32_t> bits_of_dtype(std::string_view dtype) {
  auto known = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& d) { return d.first == dtype; });
  return known == std::end(dtypes) ? std::nullopt : std::optional(known->second);
}

result<void> tensor_shape::validate() const {
  if (format > tensor_format::kv_mla)
    return wrong_tensor("format", std::to_string(static_cast<int>(format)), "0 (BINARY) to 4 (KV_MLA)");
  if (!bits_of_dtype(dtype)) {
    text known;
    for (auto& [name, bits] : dtypes)
      known.append(known.empty() ? "" : ", ").append(name);
    return wrong_tensor("dtype", "'" + dtype + "'", "one of " + known);
  }
  bool single = format == tensor_format::binary || format == tensor_format::kv_mla;
  if (kv_size == 0 || kv_size > (single ? 1 : 2))
    return wrong_tensor("kv_size", std::to_string(kv_size),
                        single ? "1 for " + text(to_string(format)) : "1 or 2");
  if (layers == 0 || layers > layers_max)
    return wrong_tensor("layers", std::to_string(layers), "1 to " + std::to_string(layers_max));
  if (hidden == 0 || hidden > hidden_max)
    return wrong_tensor("hidden", std::to_string(hidden), "1 to " + std::to_string(hidden_max));
  if (first_layer > layers_max - layers)
    return wrong_tensor("first_layer", std::to_string(first_layer),
                        "at most " + std::to_string(layers_max - layers) + " with " + std::to_string(layers) +
                            " layers");
  return {};
}

uint64_t tensor_shape::elements(uint32_t tokens) const {
  uint64_t product = 1; // below 2^(1 + 12 + 16 + 24) within the bounds
  for (uint64_t dimension : dimensions(tokens))
    product *= dimension;
  return product;
}

std::vector<uint64_t> tensor_shape::dimensions(uint32_t tokens) const {
  switch (format) {
    case tensor_format::binary: return {layers, hidden};
    case tensor_format::kv_2ltd: return {kv_size, layers, tokens, hidden};
    case tensor_format::kv_t2d: return {layers, tokens, kv_size, hidden};
    case tensor_format::kv_2td: return {layers, kv_size, tokens, hidden};
    case tensor_format::kv_mla: return {layers, tokens, hidden};
  }
  return {};
}

result<object_shape> object_shape::make(std::vector<tensor_shape> tensors, uint32_t tokens) {
  if (tensors.empty() || tensors.size() > tensors_max)
    return wrong_tensor("the number of them in an object", std::to_string(tensors.size()),
                        "1 to " + std::to_string(tensors_max));
  object_shape made;
  made.offsets_.push_back(0);
  for (const tensor_shape& tensor : tensors) {
    if (auto valid = tensor.validate(); !valid)
      return tl::unexpected(valid.error());
    uint64_t bits = tensor.bits(tokens);
    if (bits % 8 != 0)
      return wrong_tensor("its size", std::to_string(bits) + " bits", "whole bytes");
    made.offsets_.push_back(made.offsets_.back() + bits / 8);
  }
  made.tensors_ = std::move(tensors);
  return made;
}

result<std::vector<std::vector<tensor_shape>>> divide_layers(std::span<const tensor_shape> tensors,
                                                             uint32_t groups) {
  std::vector<std::vector<tensor_shape>> divided(groups);
  for (const tensor_shape& whole : tensors) {
    if (groups == 0 || whole.layers < groups)
      return wrong_tensor("layers", std::to_string(whole.layers),
                          "at least as many as layer groups, of which there are " + std::to_string(groups));
    for (uint64_t group = 0; group < groups; ++group) {
      auto begin = static_cast<uint32_t>(group * whole.layers / groups);
      auto end = static_cast<uint32_t>((group + 1) * whole.layers / groups);
      tensor_shape part = whole;
      part.first_layer += begin;
      part.layers = end - begin;
      divided[group].push_back(std::move(part));
    }
  }
  return divided;
}

} // namespace terrace
