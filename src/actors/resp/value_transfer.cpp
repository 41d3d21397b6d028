#include "actors/resp/value_transfer.hpp"

namespace terrace::resp {

namespace {
constexpr std::string_view reserved_layout = "terrace.resp";
}

space_spec value_space() {
  space_spec spec;
  spec.model = "resp";
  spec.dtype = "bytes";
  spec.layout = reserved_layout;
  spec.chunk_tokens = 1;
  spec.hash_block_tokens = 1;
  spec.algorithm = hash_algorithm::sha256;
  spec.pools = {{.name = "value", .object_bytes = value_bytes_most}};
  return spec;
}

bool is_value_space(const space_spec& spec) { return spec.layout == reserved_layout; }

digest name_of(sha256& with, std::string_view key) {
  with.begin();
  with.update(key);
  return with.finish();
}

} // namespace terrace::resp
