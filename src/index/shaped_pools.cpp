#include "index/shaped_pools.hpp"

namespace terrace {

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
