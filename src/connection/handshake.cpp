#include "connection/handshake.hpp"

#include "base/tier_properties.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/kinds.hpp"

#include <algorithm>
#include <string>

namespace terrace {

result<void> checked_version(const wire::Hello& asked) {
  if (asked.version() == protocol::version)
    return {};
  return fail(errc::unsupported, "protocol version " + std::to_string(asked.version()) +
                                     " is not supported; expected " + std::to_string(protocol::version));
}

std::vector<connection_id> resumed_connections(const wire::Hello& asked, const boot_id& boot) {
  std::vector<connection_id> resumed;
  const auto* known = asked.resumes_boot();
  if (asked.resumes() == nullptr || known == nullptr || known->size() != boot.bytes.size() ||
      !std::equal(boot.bytes.begin(), boot.bytes.end(), known->begin()))
    return resumed;
  for (uint64_t id : *asked.resumes())
    resumed.push_back(static_cast<connection_id>(id));
  return resumed;
}

flatbuffers::Offset<wire::HelloAnswer> write_hello_answer(flatbuffers::FlatBufferBuilder& body,
                                                          const client_environment& environment,
                                                          const client_state& client, bool isolated,
                                                          const std::vector<tier_kind>& tiers) {
  std::vector<std::string> features{"sha256_cbor", "sha256", "xxh3_128", "memfd_regions"};
  if (!isolated)
    features.insert(features.end(), {"mapped_arena", "staging"});
  for (tier_kind tier : tiers)
    if (tier != memory_tier)
      features.emplace_back(to_string(tier));
  auto boot = body.CreateVector(environment.boot.bytes.data(), environment.boot.bytes.size());
  auto listed = body.CreateVectorOfStrings(features);
  auto group = body.CreateString(client.group);
  auto version = body.CreateString(TERRACE_VERSION);
  return wire::CreateHelloAnswer(body, protocol::version, version, boot, static_cast<uint64_t>(client.id),
                                 group, listed, environment.limits.credit_requests,
                                 environment.limits.credit_bytes, protocol::frame_bytes_max);
}

} // namespace terrace
