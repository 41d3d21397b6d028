#include "cli/file_object.hpp"

#include "cli/digest_text.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

namespace terrace::cli {

namespace {

constexpr char magic[8] = {'T', 'E', 'R', 'R', 'F', 'I', 'L', 'E'};
constexpr uint32_t header_version = 1;

struct file_header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t file_bytes;
  uint8_t zero[40];
};
static_assert(sizeof(file_header) == file_header_bytes);
static_assert(offsetof(file_header, file_bytes) == 16);

EVP_MD_CTX* context(void* raw) { return static_cast<EVP_MD_CTX*>(raw); }

} // namespace

file_hasher::file_hasher() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context(context_), EVP_sha256(), nullptr);
}

file_hasher::~file_hasher() { EVP_MD_CTX_free(context(context_)); }

void file_hasher::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context(context_), bytes.data(), bytes.size());
}

digest file_hasher::finish() {
  digest result;
  EVP_DigestFinal_ex(context(context_), result.bytes.data(), nullptr);
  return result;
}

client::space_spec file_space(uint64_t object_bytes) {
  client::space_spec space;
  space.model = "terrace-files";
  space.dtype = "u8";
  space.layout = "file";
  space.chunk_tokens = 1;
  space.hash_block_tokens = 1;
  space.pools.push_back({.name = "piece", .object_bytes = object_bytes});
  space.algorithm = client::hash_algorithm::sha256;
  return space;
}

uint64_t pieces_of(uint64_t file_bytes, uint64_t object_bytes) {
  return (file_bytes + file_header_bytes + object_bytes - 1) / object_bytes;
}

std::vector<digest> piece_digests(const digest& key, uint64_t pieces) {
  std::vector<digest> chain{key};
  while (chain.size() < pieces) {
    file_hasher hasher;
    hasher.add(std::as_bytes(std::span(chain.back().bytes)));
    chain.push_back(hasher.finish());
  }
  return chain;
}

void write_file_header(std::span<std::byte> piece, uint64_t file_bytes) {
  file_header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = header_version;
  header.file_bytes = file_bytes;
  std::memcpy(piece.data(), &header, sizeof header);
}

std::optional<uint64_t> read_file_header(std::span<const std::byte> piece) {
  file_header header;
  if (piece.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, piece.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.version != header_version)
    return std::nullopt;
  return header.file_bytes;
}

outcome<digest> parse_file_key(const std::string& text) {
  auto bytes = parse_hex(text);
  if (!bytes || bytes->size() != digest::max_size)
    return bad_usage(
        fmt::format("expected a key of 64 hexadecimal digits, as `terrace put` or `sha256sum` print it, "
                    "found \"{}\"",
                    text));
  return digest::from(*bytes);
}

} // namespace terrace::cli
