#include "client_world.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace terrace::simulation {

namespace {

sockaddr_un address_of(const std::string& name, bool abstract, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  size_t from = abstract ? 1 : 0;
  std::memcpy(address.sun_path + from, name.data(), std::min(name.size(), sizeof address.sun_path - 2));
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return address;
}

} // namespace

std::shared_ptr<void> client_world::hinder() {
  ++hinderers;
  return {this, [this](void*) {
            --hinderers;
            hindered_until = events.now();
          }};
}

std::vector<uint32_t> client_world::tokens_of(const prompt& of, uint32_t first) const {
  std::vector<uint32_t> tokens;
  for (uint32_t chunk = first; chunk < of.chunks + (of.tail ? 1 : 0); ++chunk) {
    bool shared = chunk < shared_chunks;
    uint32_t begin = (shared ? of.root / 4 : 1'000'000 + of.root) * 64 + chunk * chunk_tokens;
    for (uint32_t index = 0; index < (chunk < of.chunks ? chunk_tokens : tail_tokens); ++index)
      tokens.push_back(begin + index);
  }
  return tokens;
}

std::vector<named_object> client_world::objects_of(uint32_t group, const prompt& of, uint32_t first) const {
  std::vector<named_object> objects;
  for (uint32_t chunk = first; chunk < of.chunks + (of.tail ? 1 : 0); ++chunk)
    for (uint32_t pool = 0; pool < pools.size(); ++pool) {
      uint64_t chain = chunk < shared_chunks ? of.root / 4 : (uint64_t{1} << 32 | of.root);
      objects.push_back({group, of.space, chain << 8 | chunk, pool, chunk == of.chunks});
    }
  return objects;
}

flatbuffers::Offset<wire::Prefix> client_world::write_prefix(flatbuffers::FlatBufferBuilder& b,
                                                             const prompt& of) const {
  auto sent = b.CreateVector(tokens_of(of, 0));
  return wire::CreatePrefix(b, sent, 0, 0, 0, 32, wire::DigestUnit::chunk, 0, 0, 0, 0, 0, 0, of.tail);
}

std::vector<uint8_t> client_world::lookup_id(uint64_t number) {
  std::vector<uint8_t> id(16, 0x51);
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

unique_fd client_world::connect(const simulated_peer& as, const std::string& path) const {
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socklen_t length = 0;
  calls.know(as);
  sockaddr_un own = address_of(as.name, true, length);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), length) != 0)
    return {};
  sockaddr_un to = address_of(path, false, length);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return {};
  return socket;
}

flatbuffers::Offset<wire::OpenSpace> client_world::open_space(flatbuffers::FlatBufferBuilder& b,
                                                              uint32_t group, uint32_t space) const {
  std::vector<flatbuffers::Offset<wire::Pool>> listed;
  for (size_t pool = 0; pool < pools.size(); ++pool)
    listed.push_back(wire::CreatePool(b, b.CreateString("p" + std::to_string(pool)), pools[pool]));
  auto model_name = b.CreateString("model " + std::to_string(space)), dtype = b.CreateString("bf16"),
       layout = b.CreateString("paged");
  auto salt = salts[space].empty() ? 0 : b.CreateString(salts[space]);
  return wire::CreateOpenSpace(
      b, model_name, 0, dtype, layout, chunk_tokens, chunk_tokens, 1, b.CreateVector(listed), salt,
      isolated[group] ? wire::HashAlgorithm::sha256_cbor : wire::HashAlgorithm::xxh3_128);
}

} // namespace terrace::simulation
