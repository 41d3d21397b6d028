#include "index/space_spec.hpp"

#include "base/printable.hpp"
#include "index/sha256.hpp"

#include <set>

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

} // namespace terrace
