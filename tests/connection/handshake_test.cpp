#include "connection/handshake.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace terrace;

namespace {

const boot_id boot{{1, 2, 3}};

struct Handshake : ::testing::Test {
  const wire::Hello& hello(uint32_t version, const std::vector<uint64_t>& resumes, const boot_id& known) {
    body.Clear();
    auto name = body.CreateString("engine");
    auto ids = body.CreateVector(resumes);
    auto daemon = body.CreateVector(known.bytes.data(), known.bytes.size());
    wire::HelloBuilder out(body);
    out.add_client_name(name);
    out.add_version(version);
    out.add_resumes(ids);
    out.add_resumes_boot(daemon);
    body.Finish(out.Finish());
    return *flatbuffers::GetRoot<wire::Hello>(body.GetBufferPointer());
  }

  std::vector<std::string> features(bool isolated, const std::vector<tier_kind>& tiers) {
    body.Clear();
    client_environment environment;
    environment.boot = boot;
    environment.limits.credit_requests = 17;
    client_state client;
    client.id = connection_id{5};
    client.group = "default";
    body.Finish(write_hello_answer(body, environment, client, isolated, tiers));
    const auto& answer = *flatbuffers::GetRoot<wire::HelloAnswer>(body.GetBufferPointer());
    EXPECT_EQ(answer.connection(), 5u);
    EXPECT_EQ(answer.group()->str(), "default");
    EXPECT_EQ(answer.credit_requests(), 17u);
    EXPECT_TRUE(std::equal(boot.bytes.begin(), boot.bytes.end(), answer.boot()->begin()));
    std::vector<std::string> listed;
    for (const auto* one : *answer.features())
      listed.push_back(one->str());
    return listed;
  }

  flatbuffers::FlatBufferBuilder body;
};

} // namespace

TEST_F(Handshake, IsForOneVersion) {
  EXPECT_TRUE(checked_version(hello(1, {}, boot)));
  auto refused = checked_version(hello(2, {}, boot));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  EXPECT_EQ(refused.error().text, "protocol version 2 is not supported; expected 1");
}

TEST_F(Handshake, ResumesConnectionsOfTheSameDaemon) {
  EXPECT_EQ(resumed_connections(hello(1, {3, 4}, boot), boot),
            (std::vector{connection_id{3}, connection_id{4}}));
  EXPECT_TRUE(resumed_connections(hello(1, {3, 4}, boot_id{{9}}), boot).empty());
  body.Clear();
  body.Finish(wire::CreateHelloDirect(body, 1, "engine"));
  EXPECT_TRUE(resumed_connections(*flatbuffers::GetRoot<wire::Hello>(body.GetBufferPointer()), boot).empty());
}

TEST_F(Handshake, TheAnswerNamesWhatTheGroupCan) {
  using list = std::vector<std::string>;
  EXPECT_EQ(features(false, {tier_kind::host, tier_kind::disk}),
            (list{"sha256_cbor", "sha256", "xxh3_128", "memfd_regions", "mapped_arena", "staging", "disk"}));
  EXPECT_EQ(features(true, {tier_kind::host}), (list{"sha256_cbor", "sha256", "xxh3_128", "memfd_regions"}));
}
