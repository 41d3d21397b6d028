// A remote tier on a cluster of three primaries with their replicas: what is shared, nodes that end, slots that move, and clears.
#include "cluster_fixture.hpp"

#include <map>
#include <thread>

namespace terrace::e2e {
namespace {

TEST_F(RemoteCluster, AnOperatorSeesTheNodes) {
  start(0);
  auto a = machine();
  auto shown = status(*a);
  EXPECT_EQ(shown["state"], "ready") << shown;
  EXPECT_TRUE(shown["address"].get<std::string>().starts_with("cluster://")) << shown;
  EXPECT_EQ(shown["tells_changes"], true);
  ASSERT_EQ(shown["nodes"].size(), 3U) << shown;
  std::map<std::string, uint32_t> slots;
  for (const auto& node : shown["nodes"]) {
    EXPECT_EQ(node["state"], "ready");
    slots[node["address"]] = node["slots"];
  }
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    EXPECT_EQ(slots[cluster_->address(i)], cluster_->first_slot(i + 1) - cluster_->first_slot(i));
  EXPECT_EQ(shown["warnings"].size(), 3U) << "no node has a bound of its memory\n" << shown;
  auto text = terrace(a->daemon, {"remote", "status"});
  EXPECT_NE(text.out.find(cluster_->address(2) + ", ready, 5,462 slots"), std::string::npos) << text.out;
}

TEST_F(RemoteCluster, AProbeTakesEachStepAtEachNode) {
  start(0);
  auto a = machine();
  auto probed = answer_of(a->daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
  std::map<std::string, int> nodes;
  size_t told = 0;
  for (const auto& step : probed["steps"]) {
    const auto name = step["step"].get<std::string>();
    if (name.ends_with(" slots"))
      told += step["failure"] == "" ? 1 : 0;
    else
      ++nodes[name.substr(0, name.find(' '))];
  }
  EXPECT_EQ(told, 1U) << "the first node that answers tells who has the slots\n" << probed;
  EXPECT_EQ(nodes.size(), redis_cluster::primaries) << probed;
  for (size_t i = 0; i < redis_cluster::primaries; ++i) {
    EXPECT_EQ(nodes[cluster_->address(i)], 5) << probed;
    EXPECT_TRUE(cluster_->keys(i, "*probe*").empty());
  }
}

// ---- nodes that end ----

TEST_F(RemoteCluster, OtherNodesServeWhileOneIsLost) {
  start(0);
  auto a = machine(), b = machine();
  auto all = singles(1, 20);
  store_all(*a, all);
  ASSERT_TRUE(finds_all(*b, all));
  size_t without_token = 0; // two tokens are at two nodes at most
  while (!cluster_->keys(without_token, "terrace/t1/epoch/*").empty())
    ++without_token;
  ASSERT_LT(without_token, redis_cluster::primaries);
  const size_t there = cluster_->keys(without_token, object_keys).size();
  cluster_->kill(without_token);
  ASSERT_TRUE(
      b->daemon.await_log("is out of service in part: the node at " + cluster_->address(without_token)));
  EXPECT_TRUE(eventually([&] { return found(*b, all) == all.size() - there; }));
  auto shown = status(*b);
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_NE(shown["notice"].get<std::string>().find("what its slots have is missed"), std::string::npos)
      << shown;
  size_t loaded = 0;
  for (const auto& each : all)
    loaded += b->client->load_and_check(each);
  EXPECT_EQ(loaded, all.size() - there);
  EXPECT_EQ(b->client->store(chain_of(1'000, 8)), 8U) << "stores do not wait for it";
  cluster_->start(without_token);
  ASSERT_TRUE(
      b->daemon.await_log("the node at " + cluster_->address(without_token) + " is in service again"));
  EXPECT_EQ(status(*b)["notice"], "");
}

TEST_F(RemoteCluster, AReplicaThatIsPromotedIsUsed) {
  start(redis_cluster::primaries);
  auto a = machine(), b = machine();
  auto all = singles(1, 12), later = singles(100, 6);
  store_all(*a, all);
  const size_t lost = cluster_->owner("terrace/t1/epoch/*"); // its replica has the token then
  const size_t replica = redis_cluster::primaries + lost;
  ASSERT_TRUE(eventually([&] { return cluster_->keys(replica) == cluster_->keys(lost); }));
  cluster_->kill(lost);
  ASSERT_TRUE(eventually([&] {
    const auto nodes = status(*b)["nodes"];
    return std::ranges::any_of(nodes, [&](const auto& node) {
      return node["address"] == cluster_->address(replica) && node["state"] == "ready";
    });
  }));
  EXPECT_TRUE(eventually([&] { return found(*b, all) == all.size(); }))
      << "the replica has its objects, and its tokens";
  for (const auto& each : all)
    EXPECT_EQ(b->client->load_and_check(each), 1U);
  store_all(*a, later);
  EXPECT_TRUE(finds_all(*b, later));
  EXPECT_EQ(status(*b)["nodes"].size(), 3U) << "the lost node has no slots any more";
  cluster_->start(lost);
  EXPECT_TRUE(eventually([&] {
    return cluster_->ask(lost, {"INFO", "replication"}).find("role:slave") != std::string::npos;
  }));
  EXPECT_TRUE(finds_all(*b, later));
}

// ---- slots that move ----

TEST_F(RemoteCluster, AnObjectOnItsWayIsAskedForWhereItGoes) {
  start(0);
  auto a = machine();
  auto all = singles(1, 12);
  store_all(*a, all);
  const std::string slot = cluster_->slot(object_of(0));
  cluster_->begin_move(slot, 0, 1);
  cluster_->move_keys(slot, 0, 1);
  auto b = machine();
  EXPECT_TRUE(finds_all(*b, all)) << "the node says where the object is";
  size_t loaded = 0;
  for (const auto& each : all)
    loaded += b->client->load_and_check(each);
  EXPECT_EQ(loaded, all.size());
  cluster_->end_move(slot, 0, 1);
}

TEST_F(RemoteCluster, ATokenOnItsWayIsReadWhereItGoes) {
  start(0);
  auto a = machine();
  auto all = singles(1, 4);
  store_all(*a, all);
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    for (const std::string& token : cluster_->keys(i, "terrace/t1/epoch/*")) {
      const std::string slot = cluster_->slot(token);
      const size_t to = (i + 1) % redis_cluster::primaries;
      cluster_->begin_move(slot, i, to);
      cluster_->move_keys(slot, i, to);
    }
  auto b = machine();
  EXPECT_TRUE(finds_all(*b, all));
  EXPECT_TRUE(finds_all(*a, all));
  ASSERT_TRUE((*b->client)->admin().clear(nullptr, patiently()));
  EXPECT_TRUE(a->daemon.await_log("was cleared by another machine"));
  EXPECT_EQ(found(*b, all), 0U);
}

TEST_F(RemoteCluster, ATokenOnItsWayIsReadAgainIfTheNodeThatToldItWasLost) {
  start(0);
  auto a = machine();
  auto all = singles(1, 4);
  store_all(*a, all);
  const size_t from = cluster_->owner("terrace/t1/epoch/*"), to = (from + 1) % redis_cluster::primaries;
  ASSERT_LT(from, redis_cluster::primaries);
  const std::string token = cluster_->keys(from, "terrace/t1/epoch/*").front();
  const std::string slot = cluster_->slot(token);
  cluster_->begin_move(slot, from, to);
  cluster_->move_keys(slot, from, to);
  EXPECT_TRUE(finds_all(*a, all));
  cluster_->lose_and_set(to, token, "00000000000000f1"); // as another machine's clear does
  EXPECT_TRUE(a->daemon.await_log("was cleared by another machine"));
  EXPECT_EQ(found(*a, all), 0U);
}

TEST_F(RemoteCluster, ASlotThatNobodyHadIsUsedOnceANodeHasIt) {
  start(0);
  auto a = machine();
  auto all = singles(1, 12);
  store_all(*a, all);
  const std::string slot = cluster_->slot(object_of(0));
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    cluster_->ask(i, {"CLUSTER", "DELSLOTS", slot});
  auto b = machine();
  EXPECT_LT(found(*b, all), all.size());
  const auto shown = status(*b);
  EXPECT_NE(shown["notice"].get<std::string>().find("1 slot of the cluster belongs to no node"),
            std::string::npos)
      << shown;
  EXPECT_EQ(cluster_->ask(0, {"CLUSTER", "ADDSLOTS", slot}), "OK");
  EXPECT_TRUE(eventually([&] {
    for (const auto& each : all) // what the slot has lost is written when it is used
      a->client->load_and_check(each);
    return found(*b, all) == all.size();
  })) << "nobody has told the daemon that the slot has an owner";
}

TEST_F(RemoteCluster, ASlotThatHasMovedIsAskedForAtItsNewNode) {
  start(0);
  auto a = machine(), b = machine();
  auto all = singles(1, 12);
  store_all(*a, all);
  auto slots_of = [&](size_t i) {
    const auto shown = status(*b);
    for (const auto& node : shown["nodes"])
      if (node["address"] == cluster_->address(i))
        return node["slots"].get<size_t>();
    return size_t{0};
  };
  const size_t before = slots_of(2);
  cluster_->move(cluster_->slot(object_of(0)), 0, 2);
  EXPECT_TRUE(eventually([&] { return found(*b, all) == all.size(); }));
  EXPECT_TRUE(eventually([&] { return slots_of(2) == before + 1; }));
  for (const auto& each : all)
    EXPECT_EQ(b->client->load_and_check(each), 1U);
}

TEST_F(RemoteCluster, ANodeThatJoinsIsUsedOnceItHasSlots) {
  start(0, 1);
  auto a = machine();
  auto all = singles(1, 12);
  store_all(*a, all);
  EXPECT_EQ(status(*a)["nodes"].size(), 3U) << "without slots it has no part";
  cluster_->move(cluster_->slot(object_of(0)), 0, 3);
  EXPECT_TRUE(eventually([&] { return found(*a, all) == all.size() && status(*a)["nodes"].size() == 4; }));
  auto b = machine();
  EXPECT_TRUE(finds_all(*b, all));
}

TEST_F(RemoteCluster, AnObjectOfSeveralPartsStaysTogether) {
  start(0);
  auto spec = test_space();
  spec.pools[0].object_bytes = 4 * object_bytes;
  auto a = machine(spec), b = machine(spec);
  const auto chain = chain_of(1, 1), contents = chain_of(2, 4);
  const std::vector<client::run> whole{{.offset = 0, .bytes = 4 * object_bytes}};
  auto load = [&](remote_machine& at) {
    auto wanted = at.client->load_of(chain);
    wanted.runs = whole;
    auto loaded = (*at.client)->load(wanted, patiently());
    EXPECT_TRUE(loaded) << loaded.error().text;
    for (size_t i = 0; i < contents.size(); ++i)
      EXPECT_TRUE(has_content(contents[i], at.client->piece(i)));
  };
  for (size_t i = 0; i < contents.size(); ++i)
    fill_content(contents[i], a->client->piece(i));
  auto request = a->client->store_of(chain);
  request.runs = whole;
  auto answer = (*a->client)->store(request, patiently());
  ASSERT_TRUE(answer) << answer.error().text;
  ASSERT_TRUE(a->finds_all(chain, on_remote));
  const size_t from = cluster_->owner(object_keys), to = (from + 1) % redis_cluster::primaries;
  ASSERT_LT(from, redis_cluster::primaries);
  EXPECT_EQ(cluster_->keys(from, object_keys).size(), 4U) << "all parts are at one node";
  EXPECT_EQ(b->found(chain), 1U);
  load(*b);
  const std::string slot = cluster_->slot(object_of(from));
  cluster_->begin_move(slot, from, to);
  cluster_->move_keys(slot, from, to, "2");
  auto c = machine(spec);
  EXPECT_EQ(c->found(chain), 0U) << "half of it is on its way";
  cluster_->move_keys(slot, from, to);
  cluster_->end_move(slot, from, to);
  EXPECT_TRUE(c->finds_all(chain));
  load(*c);
}

} // namespace

void RemoteCluster::store_and_load_while_slots_move(const std::string& more) {
  start(0);
  auto a = machine(test_space(), more), b = machine(test_space(), more);
  auto all = singles(1, 20), later = singles(100, 20);
  store_all(*a, all);
  std::vector<std::pair<std::string, size_t>> moves; // every slot of an object or a token, and where it is
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    for (const std::string& key : cluster_->keys(i, "*"))
      moves.emplace_back(cluster_->slot(key), i);
  std::atomic<bool> moving{true};
  std::thread mover([&] {
    for (const auto& [slot, from] : moves)
      cluster_->move(slot, from, (from + 1) % redis_cluster::primaries);
    moving = false;
  });
  size_t next = 0;
  do { // every byte that is delivered is checked
    const size_t i = next % all.size();
    EXPECT_LE(b->client->load_and_check(all[i]), 1U);
    if (next < later.size()) {
      EXPECT_EQ(a->client->store(later[next]), 1U);
    }
    ++next;
  } while (moving || next < later.size());
  mover.join();
  EXPECT_TRUE(eventually([&] { return found(*b, all) == all.size(); })) << "nothing was lost on its way";
  EXPECT_FALSE(a->daemon.has_logged("was cleared"));
  auto c = machine(test_space(), more);
  EXPECT_TRUE(finds_all(*c, all));
  for (const auto& each : all)
    EXPECT_EQ(c->client->load_and_check(each), 1U);
}

namespace {

TEST_F(RemoteCluster, SlotsMoveWhileMachinesStoreAndLoad) { store_and_load_while_slots_move(""); }

TEST_F(RemoteCluster, SlotsMoveWhileMachinesStoreAndLoadEncryptedValues) {
  store_and_load_while_slots_move("encrypt = true\n");
}

TEST_F(RemoteCluster, EncryptedValuesAreSpreadOverAllNodes) {
  start(0);
  auto a = machine(test_space(), "encrypt = true\n"), b = machine(test_space(), "encrypt = true\n");
  auto chain = chain_of(1, 24);
  EXPECT_EQ(a->client->store(chain), 24U);
  ASSERT_TRUE(b->finds_all(chain));
  EXPECT_EQ(b->client->load_and_check(chain), 24U);
  EXPECT_EQ(stored(), 24);
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    EXPECT_FALSE(cluster_->keys(i, object_keys).empty());
  EXPECT_EQ(machine()->found(chain), 0U) << "without encryption";
}

// ---- wrong use ----

TEST_F(RemoteCluster, ANodeThatIsGivenAsASingleServerIsRefused) {
  start(0);
  std::string text = section();
  const std::string path = folder_.path() + "/redis.sock";
  text.replace(text.find(path), path.size(), cluster_->address(0));
  remote_machine one({.more = text});
  ASSERT_TRUE(one.daemon.await_log("is out of service: the store at " + cluster_->address(0) +
                                   ": it is a node of a cluster: write cluster://"));
  EXPECT_EQ(one.client->store(chain_of(1, 2)), 2U) << "the daemon serves without the tier";
  auto probed = terrace(one.daemon, {"remote", "probe"});
  EXPECT_NE(probed.out.find("write cluster://" + cluster_->address(0) + " as address"), std::string::npos)
      << probed.out;
}

TEST_F(RemoteStores, AServerThatIsNoNodeOfAClusterIsRefusedAsOne) {
  const uint16_t port = test::free_port();
  start_store({"--port", std::to_string(port), "--bind", "127.0.0.1"});
  std::string text = section();
  const std::string path = folder_.path() + "/redis.sock";
  text.replace(text.find(path), path.size(), "cluster://127.0.0.1:" + std::to_string(port));
  remote_machine one({.more = text});
  const std::string fits =
      "it is a server of its own, and no node of a cluster: write 127.0.0.1:" + std::to_string(port) +
      " as address";
  ASSERT_TRUE(one.daemon.await_log(fits));
  EXPECT_EQ(one.client->store(chain_of(1, 2)), 2U);
  auto shown = answer_of(one.daemon, {"remote", "status"})["remotes"].at(0);
  EXPECT_EQ(shown["state"], "down") << shown;
  auto probed = terrace(one.daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("127.0.0.1:" + std::to_string(port) + " slots"), std::string::npos) << probed.out;
  EXPECT_NE(probed.out.find(fits), std::string::npos) << probed.out;
}

TEST_F(RemoteCluster, NeedsNoMoreRightsThanDocumented) {
  start(0, 0,
        {"--user", "kv", "on", ">hunter2", "~terrace/*", "+hello", "+auth", "+exists", "+get", "+set",
         "+unlink", "+client", "+info", "+scan", "+strlen", "+cluster|slots", "+asking"});
  write_file(folder_ / "password", "hunter2\nkv\n");
  ASSERT_EQ(::chmod((folder_ / "password").c_str(), 0600), 0);
  const std::string password = "password_file = \"" + folder_.path() + "/password\"\n";
  remote_machine one({.more = cluster_section("demotion = \"write_through\"\n" + password)});
  one.await_store();
  auto all = singles(1, 6);
  store_all(one, all);
  const std::string slot = cluster_->slot(object_of(0));
  cluster_->begin_move(slot, 0, 1);
  cluster_->move_keys(slot, 0, 1);
  EXPECT_TRUE(eventually([&] { return found(one, all) == all.size(); }));
  EXPECT_EQ(terrace(one.daemon, {"remote", "probe"}).exit_code, 0);
  write_file(folder_ / "password", "wrong\nkv\n");
  remote_machine other({.more = cluster_section("demotion = \"write_through\"\n" + password)});
  EXPECT_TRUE(other.daemon.await_log("check user and password_file"));
}

} // namespace
} // namespace terrace::e2e
