#include "index/expected_object.hpp"

#include "index/index_record.hpp"

namespace terrace {

expected_object expected_of(const opened_space& in, const volume_id& volume, const object_key& key,
                            uint64_t generation, uint64_t payload_bytes) {
  expected_object expected;
  object_identity& identity = expected.identity;
  identity.space = in.fingerprint.bytes;
  identity.pool = key.pool;
  identity.rank = key.rank;
  identity.chunk = key.chunk;
  identity.generation = generation;
  identity.epoch = epoch_of(generation);
  identity.volume = volume;
  expected.payload_bytes = payload_bytes;
  return expected;
}

bool is_expected(const object_header& found, const expected_object& expected) {
  return found.payload_bytes == expected.payload_bytes && matches(found, expected.identity).has_value();
}

bool is_expected(std::span<const std::byte, object_header_bytes> header, const expected_object& expected,
                 uint64_t payload_checksum) {
  auto found = decode(header);
  return found && is_expected(*found, expected) && found->payload_checksum == payload_checksum;
}

} // namespace terrace
