#include "spaces.hpp"

#include "arguments.hpp"

#include <nanobind/stl/vector.h>

namespace terrace::python {

namespace {

template <class T>
T member(nb::handle of, const char* name) {
  return part_of<T>(of.attr(name), name);
}

client::tensor_shape tensor_of(nb::handle given) {
  return {.format = static_cast<client::tensor_format>(member<uint8_t>(given, "format")),
          .dtype = member<std::string>(given, "dtype"),
          .kv_size = member<uint32_t>(given, "kv_size"),
          .layers = member<uint32_t>(given, "layers"),
          .hidden = member<uint32_t>(given, "hidden"),
          .first_layer = member<uint32_t>(given, "first_layer")};
}

client::pool_spec pool_of(nb::handle given) {
  client::pool_spec pool{.name = member<std::string>(given, "name"),
                         .object_bytes = member<uint64_t>(given, "object_bytes"),
                         .rule = static_cast<client::hit_rule>(member<uint8_t>(given, "rule")),
                         .trailing = member<uint32_t>(given, "trailing"),
                         .replicated = member<bool>(given, "replicated"),
                         .tensors = {},
                         .layer_groups = member<uint32_t>(given, "layer_groups")};
  for (nb::handle tensor : given.attr("tensors"))
    pool.tensors.push_back(tensor_of(tensor));
  return pool;
}

} // namespace

client::space_spec spec_of(nb::handle described) {
  client::space_spec spec;
  spec.model = member<std::string>(described, "model");
  spec.revision = member<std::string>(described, "revision");
  spec.dtype = member<std::string>(described, "dtype");
  spec.layout = member<std::string>(described, "layout");
  spec.chunk_tokens = member<uint32_t>(described, "chunk_tokens");
  spec.hash_block_tokens = member<uint32_t>(described, "hash_block_tokens");
  spec.world_size = member<uint32_t>(described, "world_size");
  for (nb::handle pool : described.attr("pools"))
    spec.pools.push_back(pool_of(pool));
  spec.salt = member<std::string>(described, "salt");
  spec.algorithm = static_cast<client::hash_algorithm>(member<uint8_t>(described, "algorithm"));
  spec.seed = member<std::string>(described, "seed");
  spec.rank = member<uint32_t>(described, "rank");
  spec.prefill_tokens_per_s = member<uint32_t>(described, "prefill_tokens_per_s");
  nb::object defaults = described.attr("defaults");
  spec.defaults = {.tiers = tiers_of(defaults.attr("tiers")),
                   .priority = member<uint8_t>(defaults, "priority"),
                   .time = std::chrono::milliseconds(member<uint32_t>(defaults, "deadline_ms")),
                   .no_load = member<bool>(defaults, "no_load"),
                   .no_store = member<bool>(defaults, "no_store")};
  return spec;
}

const client::space& space_in(const std::shared_ptr<shared_connection>& in, const space_handle& given) {
  if (given.in != in)
    refuse("expected a space of this connection, got one that another connection opened");
  return given.space;
}

void bind_spaces(nb::module_& in) {
  nb::class_<client::tensor_place>(in, "TensorPlace")
      .def_ro("offset", &client::tensor_place::offset)
      .def_ro("nbytes", &client::tensor_place::bytes)
      .def_ro("first_layer", &client::tensor_place::first_layer)
      .def_ro("layers", &client::tensor_place::layers);
  nb::class_<client::open_pool>(in, "OpenPool")
      .def_ro("name", &client::open_pool::name)
      .def_ro("object_bytes", &client::open_pool::object_bytes)
      .def_ro("tensors", &client::open_pool::tensors);
  nb::class_<space_handle>(in, "Space")
      .def_prop_ro("fingerprint",
                   [](const space_handle& self) { return to_bytes(self.space.fingerprint.bytes); })
      .def_ro("pools", &space_handle::pools)
      .def("__repr__", [](const space_handle& self) {
        return "<terrace.Space " + to_hex(self.space.fingerprint, 4) + " of " +
               std::to_string(self.pools.size()) + " pools>";
      });
}

} // namespace terrace::python
