// Which slot a key has, who has a slot, and what a node says that has not.
#include "remote/slot_map.hpp"

#include "remote/realm.hpp"
#include "remote/store_commands.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

TEST(Slots, AreThoseOfTheSpecification) {
  // As redis-cli CLUSTER KEYSLOT says.
  EXPECT_EQ(slot_of("123456789"), 0x31c3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(Slots, AreThoseOfTheTag) {
  EXPECT_EQ(slot_of("{foo}.a"), slot_of("foo"));
  EXPECT_EQ(slot_of("b{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("x{{foo}}"), slot_of("{foo"));
  EXPECT_EQ(slot_of("a{}{foo}"), 700) << "an empty tag is none";
  EXPECT_EQ(slot_of("a{foo"), 113) << "nor one without an end";
}

TEST(Slots, OfAllPartsOfAnObjectAreEqual) {
  const std::vector<uint8_t> key(32, 1);
  auto names = realm::make("kv/", key).value();
  for (uint8_t i = 0; i < 100; ++i) {
    remote_identity object{.epoch = 1};
    object.chunk.bytes[0] = i;
    EXPECT_EQ(slot_of(names.key_of(object, 7)), slot_of(names.key_of(object)));
  }
}

TEST(SlotMap, KnowsOwners) {
  const slot_map none;
  EXPECT_FALSE(none.owner(0));
  EXPECT_EQ(none.uncovered(), cluster_slots);
  const std::vector<slot_range> ranges{
      {0, 99, "10.0.0.1:1"}, {100, 100, "10.0.0.2:1"}, {200, 16'383, "10.0.0.1:1"}};
  const slot_map map(ranges);
  ASSERT_EQ(map.primaries(), (std::vector<std::string>{"10.0.0.1:1", "10.0.0.2:1"}));
  EXPECT_EQ(map.owner(0), 0U);
  EXPECT_EQ(map.owner(99), 0U);
  EXPECT_EQ(map.owner(100), 1U);
  EXPECT_FALSE(map.owner(101));
  EXPECT_EQ(map.owner(16'383), 0U);
  EXPECT_EQ(map.uncovered(), 99U);
  EXPECT_EQ(map.slots_of(1), 1U);
}

TEST(SlotMap, KnowsTheReplicasOfEachPrimaryOnce) {
  const std::vector<slot_range> ranges{{0, 99, "10.0.0.1:1", {"10.0.0.3:1", "10.0.0.4:1"}},
                                       {100, 199, "10.0.0.2:1", {"10.0.0.5:1", "10.0.0.1:1"}},
                                       {200, 16'383, "10.0.0.1:1", {"10.0.0.4:1", "10.0.0.6:1"}}};
  const slot_map map(ranges);
  EXPECT_EQ(map.replicas_of(0), (std::vector<std::string>{"10.0.0.3:1", "10.0.0.4:1", "10.0.0.6:1"}));
  EXPECT_EQ(map.replicas_of(1), (std::vector<std::string>{"10.0.0.5:1"})) << "a primary is no replica";
  const slot_map without(std::vector<slot_range>{{0, 99, "10.0.0.1:1"}});
  EXPECT_TRUE(without.replicas_of(0).empty());
}

TEST(SlotMap, KnowsABoundedNumberOfReplicas) {
  std::vector<slot_range> ranges;
  for (uint32_t slot = 0; slot < 2 * slot_map::replicas_max; ++slot)
    ranges.push_back(
        {slot, slot, "10.0.0.1:" + std::to_string(1 + slot % 2), {"10.0.0.2:" + std::to_string(1 + slot)}});
  const slot_map map(ranges);
  EXPECT_EQ(map.replicas_of(0).size() + map.replicas_of(1).size(), slot_map::replicas_max);
}

TEST(Addresses, AreCompletedByThatOfWhoWasAsked) {
  EXPECT_EQ(address_text("10.0.0.7", 6379), "10.0.0.7:6379");
  EXPECT_EQ(address_text("fd00::7", 6379), "[fd00::7]:6379");
  EXPECT_EQ(address_text("", 6379), ":6379");
  EXPECT_EQ(completed_address(":6379", "[fd00::7]:1"), "[fd00::7]:6379");
  EXPECT_EQ(completed_address("10.0.0.7:6379", "10.0.0.8:1"), "10.0.0.7:6379");
}

TEST(Guidance, OfNodesIsWhoHasTheSlots) {
  const auto cluster = parse_store_address("cluster://10.0.0.7:6379").value();
  finished_command told{.result = command_result::done};
  told.slots = {{0, 16'383, ":6380", {":6381"}}};
  auto read = read_guidance(cluster, "10.0.0.7:6379", told);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->slots.primaries(), std::vector<std::string>{"10.0.0.7:6380"});
  EXPECT_EQ(read->slots.replicas_of(0), std::vector<std::string>{"10.0.0.7:6381"});
  told.slots = {{0, 1, "?:6380"}};
  EXPECT_NE(
      read_guidance(cluster, "10.0.0.7:6379", told).error().text.find("cluster-preferred-endpoint-type"),
      std::string::npos);
  told.slots.clear();
  EXPECT_EQ(read_guidance(cluster, "10.0.0.7:6379", told).error().text, "it knows no node that has slots");
}

TEST(Guidance, OfSentinelsIsWhereThePrimaryIs) {
  const auto sentinels = parse_store_address("sentinel+tls://10.0.0.8:26379/kv?name=cache").value();
  auto read =
      read_guidance(sentinels, "10.0.0.8:26379", {.result = command_result::done, .text = "10.0.0.7:6379"});
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->server.text, "10.0.0.7:6379 (sentinel+tls://10.0.0.8:26379/kv?name=cache)");
  EXPECT_EQ(read->server.name, "cache");
  EXPECT_NE(read->server.length, 0U);
  EXPECT_NE(read_guidance(sentinels, "10.0.0.8:26379", {.result = command_result::absent})
                .error()
                .text.find("name kv"),
            std::string::npos);
  EXPECT_EQ(
      read_guidance(sentinels, "10.0.0.8:26379", {.result = command_result::done, .text = "/s"}).error().text,
      "it names no address and port");
}

TEST(Guidance, AServerThatDoesNotKnowTheQuestionIsNoGuide) {
  const auto sentinels = parse_store_address("sentinel://10.0.0.7:6379/kv").value();
  finished_command told{.result = command_result::refused, .why = {errc::internal, "ERR unknown command"}};
  EXPECT_EQ(
      read_guidance(sentinels, "10.0.0.7:6379", told).error().text,
      "it is a server of its own, and no sentinel: write 10.0.0.7:6379 as address (ERR unknown command)");
  told.why = {errc::denied, "the user may not do this"};
  EXPECT_EQ(read_guidance(sentinels, "10.0.0.7:6379", told).error().text, "the user may not do this");
}

TEST(Redirections, AreReadFromErrors) {
  EXPECT_EQ(parse_redirection("MOVED 3999 127.0.0.1:6381"), (redirection{false, "127.0.0.1:6381"}));
  EXPECT_EQ(parse_redirection("ASK 3999 fd00::7:6381"), (redirection{true, "[fd00::7]:6381"}));
  EXPECT_EQ(parse_redirection("MOVED 3999 :6381"), (redirection{false, ":6381"}));
  for (const char* other :
       {"", "MOVED", "MOVED 1", "MOVED 1 host", "MOVED 1 host:", "MOVED 1 host:0", "MOVED 1 host:65536",
        "MOVED 1:2 host", "ASKING 1 10.0.0.7:1", "ERR MOVED 1 10.0.0.7:1"})
    EXPECT_FALSE(parse_redirection(other)) << other;
}

} // namespace
} // namespace terrace::remote
