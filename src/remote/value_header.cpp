#include "remote/value_header.hpp"

#include "index/payload_checksum.hpp"

#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

namespace terrace::remote {

namespace {

constexpr std::array<char, 8> value_magic = {'T', 'E', 'R', 'R', 'R', 'M', 'T', '\0'};

struct stored_header {
  std::array<char, 8> magic;
  uint32_t version;
  uint16_t pool;
  uint16_t rank;
  std::array<uint8_t, 16> space;
  std::array<uint8_t, 32> chunk;
  uint8_t digest_width;
  std::array<uint8_t, 7> zero;
  uint64_t epoch;
  uint64_t generation;
  uint64_t payload_bytes;
  uint32_t part;
  uint32_t packed_bytes;
  uint64_t checksum;
  uint64_t header_checksum;
  std::array<uint8_t, 32> writer;
  std::array<uint8_t, 12> nonce;
  uint32_t zero_as_well;
  std::array<uint8_t, 16> tag;
  std::array<uint8_t, 72> rest;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<stored_header> && sizeof(stored_header) == value_header_bytes);
static_assert(offsetof(stored_header, space) == 16 && offsetof(stored_header, chunk) == 32 &&
              offsetof(stored_header, digest_width) == 64);
static_assert(offsetof(stored_header, epoch) == 72 && offsetof(stored_header, payload_bytes) == 88);
static_assert(offsetof(stored_header, checksum) == 104 && offsetof(stored_header, header_checksum) == 112);
static_assert(offsetof(stored_header, writer) == 120 && offsetof(stored_header, nonce) == 152 &&
              offsetof(stored_header, tag) == 168);

bool is_valid(const value_header& header) {
  const remote_identity& is = header.identity;
  return is.digest_width >= digest::min_size && is.digest_width <= digest::max_size && is.epoch != 0 &&
         header.part < parts_of(header.payload_bytes);
}

bool is_packed(uint32_t version) {
  return version == packed_value_header_version || version == packed_sealed_value_header_version;
}

uint32_t version_of(const value_header& header) {
  if (header.packed_bytes != 0)
    return header.seal ? packed_sealed_value_header_version : packed_value_header_version;
  return header.seal ? sealed_value_header_version : value_header_version;
}

uint64_t bytes_behind(const value_header& header, const expected_part& expected) {
  return header.packed_bytes != 0
             ? header.packed_bytes
             : bytes_of_part(expected.payload_bytes, expected.part, expected.bytes_of_each);
}

rejected_value expected_but_found(value_fault fault, const char* field, const std::string& expected,
                                  const std::string& found) {
  return {fault,
          std::string(field) + " " + expected + " was expected, " + found + " found; treated as a miss"};
}

std::optional<rejected_value> compare(const remote_identity& found, const remote_identity& expected) {
  auto differs = [](const char* field, const std::string& want, const std::string& got) {
    return expected_but_found(value_fault::other_object, field, want, got);
  };
  if (found.space != expected.space)
    return differs("space", to_hex(expected.space), to_hex(found.space));
  if (found.epoch != expected.epoch)
    return differs("epoch", epoch_text(expected.epoch), epoch_text(found.epoch));
  if (found.pool != expected.pool)
    return differs("pool", std::to_string(expected.pool), std::to_string(found.pool));
  if (found.rank != expected.rank)
    return differs("rank", std::to_string(expected.rank), std::to_string(found.rank));
  if (found.digest_width != expected.digest_width || found.chunk != expected.chunk)
    return differs("chunk", to_hex(expected.chunk, expected.digest_width),
                   to_hex(found.chunk, found.digest_width));
  return std::nullopt;
}

} // namespace

const char* to_string(value_fault fault) {
  constexpr const char* names[] = {"not_ours",      "other_version",    "damaged",
                                   "other_object",  "other_length",     "other_part",
                                   "wrong_payload", "other_encryption", "not_authentic"};
  static_assert(std::size(names) == value_faults);
  return names[static_cast<size_t>(fault)];
}

void encode(const value_header& header, std::span<std::byte, value_header_bytes> out) {
  assert(is_valid(header) && (!header.seal || header.checksum == 0));
  stored_header raw{};
  raw.magic = value_magic;
  raw.version = version_of(header);
  raw.pool = header.identity.pool;
  raw.rank = header.identity.rank;
  raw.space = header.identity.space;
  raw.chunk = header.identity.chunk.bytes;
  raw.digest_width = header.identity.digest_width;
  raw.epoch = header.identity.epoch;
  raw.generation = header.generation;
  raw.payload_bytes = header.payload_bytes;
  raw.part = header.part;
  raw.packed_bytes = header.packed_bytes;
  raw.checksum = header.checksum;
  if (header.seal) {
    raw.writer = header.seal->writer;
    raw.nonce = header.seal->nonce;
    raw.tag = header.seal->tag;
  }
  raw.header_checksum = block_checksum(raw, &stored_header::header_checksum);
  std::memcpy(out.data(), &raw, sizeof raw);
}

std::array<std::byte, value_header_bytes>
authenticated_part(std::span<const std::byte, value_header_bytes> header) {
  stored_header raw;
  std::memcpy(&raw, header.data(), sizeof raw);
  raw.header_checksum = 0;
  raw.tag = {};
  return std::bit_cast<std::array<std::byte, value_header_bytes>>(raw);
}

tl::expected<value_header, rejected_value>
decode_value_header(std::span<const std::byte, value_header_bytes> bytes) {
  stored_header raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != value_magic)
    return tl::unexpected(rejected_value{
        value_fault::not_ours, "the magic TERRRMT was expected; something else writes under this prefix: "
                               "give Terrace a prefix of its own"});
  if (raw.version < value_header_version || raw.version > packed_sealed_value_header_version)
    return tl::unexpected(expected_but_found(value_fault::other_version, "value header version", "1 to 4",
                                             std::to_string(raw.version)));
  if (uint64_t sum = block_checksum(raw, &stored_header::header_checksum); sum != raw.header_checksum)
    return tl::unexpected(expected_but_found(value_fault::damaged, "header checksum",
                                             std::to_string(raw.header_checksum), std::to_string(sum)));
  value_header header{
      .identity = {.space = raw.space,
                   .epoch = raw.epoch,
                   .pool = raw.pool,
                   .rank = raw.rank,
                   .chunk = {raw.chunk},
                   .digest_width = raw.digest_width},
      .generation = raw.generation,
      .payload_bytes = raw.payload_bytes,
      .part = raw.part,
      .packed_bytes = is_packed(raw.version) ? raw.packed_bytes : 0,
      .checksum = raw.checksum,
      .seal = {},
  };
  if (raw.version == sealed_value_header_version || raw.version == packed_sealed_value_header_version)
    header.seal = {raw.writer, raw.nonce, raw.tag};
  if (!is_valid(header) || is_packed(raw.version) != (header.packed_bytes != 0))
    return tl::unexpected(rejected_value{
        value_fault::damaged,
        "a digest of 8 to 32 bytes, an epoch, a part that the payload has and a length were expected; "
        "the header contradicts itself although its checksum matches"});
  return header;
}

bool has_length(std::span<const std::byte, value_header_bytes> header, uint64_t bytes,
                const expected_part& expected) {
  return bytes == bytes_behind(decode_value_header(header).value_or(value_header{}), expected);
}

tl::expected<value_header, rejected_value>
verify_header(std::span<const std::byte, value_header_bytes> header, uint64_t bytes,
              const expected_part& expected) {
  auto differs = [](value_fault fault, const char* field, uint64_t want, uint64_t got) {
    return tl::unexpected(expected_but_found(fault, field, std::to_string(want), std::to_string(got)));
  };
  auto found = decode_value_header(header);
  if (!found)
    return found;
  if (found->seal.has_value() != expected.encrypted)
    return tl::unexpected(rejected_value{
        value_fault::other_encryption,
        expected.encrypted
            ? "an encrypted value was expected, one without encryption found; treated as a miss"
            : "a value without encryption was expected, an encrypted one found; treated as a miss"});
  if (auto wrong = compare(found->identity, expected.identity))
    return tl::unexpected(*wrong);
  if (found->payload_bytes != expected.payload_bytes)
    return differs(value_fault::other_length, "a payload of bytes", expected.payload_bytes,
                   found->payload_bytes);
  if (found->part != expected.part)
    return differs(value_fault::other_part, "part", expected.part, found->part);
  if (expected.generation && found->generation != *expected.generation)
    return differs(value_fault::other_part, "generation", *expected.generation, found->generation);
  const uint64_t of_part = bytes_of_part(expected.payload_bytes, expected.part, expected.bytes_of_each);
  if (bytes != bytes_behind(*found, expected) || (found->packed_bytes != 0 && found->packed_bytes >= of_part))
    return differs(value_fault::other_length, "a number of bytes behind the header",
                   bytes_behind(*found, expected), bytes);
  return found;
}

tl::expected<uint64_t, rejected_value> verify(std::span<const std::byte, value_header_bytes> header,
                                              std::span<const std::byte> bytes,
                                              const expected_part& expected) {
  assert(!expected.encrypted);
  auto found = verify_header(header, bytes.size(), expected);
  if (!found)
    return tl::unexpected(found.error());
  if (uint64_t sum = payload_checksum(bytes); sum != found->checksum)
    return tl::unexpected(expected_but_found(value_fault::wrong_payload, "payload checksum",
                                             std::to_string(found->checksum), std::to_string(sum)));
  return found->generation;
}

} // namespace terrace::remote
