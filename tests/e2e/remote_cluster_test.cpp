// A remote tier on a cluster of three primaries with their replicas: what is shared, nodes that end, slots that move, and clears.
#include "command_line.hpp"
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"

#include <map>
#include <thread>

namespace terrace::e2e {
namespace {

constexpr const char* object_keys = "terrace/t1/*/*/*/*";

/// Real servers with `--cluster-enabled`. The first three are primaries of a third of the slots each.
class redis_cluster {
 public:
  static constexpr size_t primaries = 3;

  /// The next `replicas` are those of the first ones, and `spares` are nodes without slots.
  explicit redis_cluster(size_t replicas, size_t spares = 0, std::vector<std::string> more = {},
                         const std::string& node_timeout_ms = "15000")
      : more_(std::move(more)), node_timeout_ms_(node_timeout_ms) {
    more_.insert(more_.end(),
                 {"--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
                  "--cluster-node-timeout", node_timeout_ms_, "--repl-diskless-sync-delay", "0"});
    for (size_t i = 0; i < primaries + replicas + spares; ++i)
      nodes_.push_back(std::make_unique<node>());
    for (size_t i = 0; i < nodes_.size(); ++i)
      start(i);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      EXPECT_EQ(ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}), "OK");
      if (i < primaries) {
        EXPECT_EQ(ask(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first_slot(i)),
                          std::to_string(first_slot(i + 1) - 1)}),
                  "OK");
      }
      if (i != 0) {
        EXPECT_EQ(
            ask(0, {"CLUSTER", "MEET", "127.0.0.1", text_of(nodes_[i]->port), text_of(nodes_[i]->bus_port)}),
            "OK");
      }
    }
    const std::string all = "cluster_known_nodes:" + std::to_string(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      EXPECT_TRUE(eventually([&] { return ask(i, {"CLUSTER", "INFO"}).find(all) != std::string::npos; }));
    for (size_t i = 0; i < replicas; ++i) {
      EXPECT_TRUE(eventually([&] { return ask(primaries + i, {"CLUSTER", "REPLICATE", id(i)}) == "OK"; }));
      EXPECT_TRUE(eventually([&] {
        return ask(primaries + i, {"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
      }));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) // one that has not heard of all slots says ok as well
      EXPECT_TRUE(eventually([&] {
        const std::string told = ask(i, {"CLUSTER", "INFO"});
        return told.starts_with("cluster_state:ok") &&
               told.find("cluster_slots_assigned:16384") != std::string::npos;
      }));
  }

  static size_t first_slot(size_t primary) { return primary * 16'384 / primaries; }
  size_t size() const { return nodes_.size(); }
  bool runs(size_t i) const { return nodes_[i]->server != nullptr; }
  void start(size_t i) {
    node& each = *nodes_[i];
    auto options = more_;
    options.insert(options.end(), {"--port", text_of(each.port), "--cluster-port", text_of(each.bus_port)});
    each.server = std::make_unique<test::redis_process>(each.folder.path(), options);
  }
  void kill(size_t i) {
    nodes_[i]->server.reset();
    std::filesystem::remove(nodes_[i]->folder / "redis.sock");
  }

  std::string ask(size_t i, const std::vector<std::string>& words) const {
    return resp_client(nodes_[i]->server->socket()).call({words.begin(), words.end()});
  }
  std::string id(size_t i) const { return ask(i, {"CLUSTER", "MYID"}); }
  std::string address(size_t i) const { return "127.0.0.1:" + text_of(nodes_[i]->port); }
  int64_t keys(size_t i) const { return number(ask(i, {"DBSIZE"})); }
  std::vector<std::string> keys(size_t i, const std::string& pattern) const {
    const std::string all =
        ask(i, {"EVAL", "return table.concat(redis.call('keys', ARGV[1]), ' ')", "0", pattern});
    std::vector<std::string> each;
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find(' ', begin), all.size());
      each.push_back(all.substr(begin, end - begin));
      begin = end + 1;
    }
    return each;
  }
  /// The one among the primaries that has the key.
  size_t owner(const std::string& pattern) const {
    for (size_t i = 0; i < primaries; ++i)
      if (runs(i) && !keys(i, pattern).empty())
        return i;
    return primaries;
  }
  std::string slot(const std::string& key) const {
    return std::to_string(number(ask(0, {"CLUSTER", "KEYSLOT", key})));
  }

  // ---- moving slots ----

  void begin_move(const std::string& slot, size_t from, size_t to) const {
    EXPECT_EQ(ask(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id(from)}), "OK");
    EXPECT_EQ(ask(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id(to)}), "OK");
  }
  /// At most `count` of them.
  void move_keys(const std::string& slot, size_t from, size_t to, const std::string& count = "1000") const {
    const std::string moved =
        ask(from, {"EVAL",
                   "for _, key in ipairs(redis.call('cluster', 'getkeysinslot', ARGV[1], ARGV[3])) do "
                   "redis.call('migrate', '127.0.0.1', ARGV[2], key, 0, 60000) end return 1",
                   "0", slot, text_of(nodes_[to]->port), count});
    EXPECT_EQ(moved, "(integer) 1");
  }
  void end_move(const std::string& slot, size_t from, size_t to) const {
    EXPECT_EQ(ask(to, {"CLUSTER", "SETSLOT", slot, "NODE", id(to)}), "OK");
    EXPECT_EQ(ask(from, {"CLUSTER", "SETSLOT", slot, "NODE", id(to)}), "OK");
  }
  /// Sets a key whose slot is on its way to the node, which has just ended all connections.
  void lose_and_set(size_t at, const std::string& key, const std::string& value) const {
    resp_client by(nodes_[at]->server->socket());
    EXPECT_NE(by.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}), "(integer) 0");
    EXPECT_EQ(by.call({"ASKING"}), "OK");
    EXPECT_EQ(by.call({"SET", key, value}), "OK");
  }
  void move(const std::string& slot, size_t from, size_t to) const {
    begin_move(slot, from, to);
    move_keys(slot, from, to);
    end_move(slot, from, to);
  }

 private:
  struct node {
    temporary_folder folder{"/tmp"};
    uint16_t port = test::free_port(), bus_port = test::free_port();
    std::unique_ptr<test::redis_process> server;
  };

  static std::string text_of(uint16_t port) { return std::to_string(port); }
  static int64_t number(const std::string& reply) { return std::stoll(reply.substr(sizeof "(integer)")); }

  std::vector<std::string> more_;
  std::string node_timeout_ms_;
  std::vector<std::unique_ptr<node>> nodes_;
};

class RemoteCluster : public RemoteStores {
 protected:
  /// Nobody listens at the first address.
  std::string cluster_section(const std::string& more = "demotion = \"write_through\"\n",
                              const std::string& lookup_budget = "1s") const {
    std::string text = section(more, lookup_budget);
    const std::string path = folder_.path() + "/redis.sock";
    text.replace(text.find(path), path.size(),
                 "cluster://127.0.0.1:" + std::to_string(test::free_port()) + "," + cluster_->address(1));
    return text;
  }
  /// With replicas: these are promoted soon.
  void start(size_t replicas, size_t spares = 0, const std::vector<std::string>& more = {}) {
    cluster_.emplace(replicas, spares, more, replicas == 0 ? "15000" : "2000");
  }
  std::unique_ptr<remote_machine> machine(client::space_spec spec = test_space(),
                                          const std::string& more = {}) {
    auto made = std::make_unique<remote_machine>(
        daemon_options{.more = cluster_section("demotion = \"write_through\"\n" + more)}, std::move(spec));
    made->await_store();
    EXPECT_TRUE(eventually([&] {
      const auto nodes = status(*made)["nodes"];
      return std::all_of(nodes.begin(), nodes.end(),
                         [](const auto& each) { return each["state"] == "ready"; });
    })) << "each node has a connection of its own";
    return made;
  }
  /// `more`: lines of both machines' configuration.
  void store_and_load_while_slots_move(const std::string& more);
  static nlohmann::json status(const remote_machine& of) {
    return answer_of(of.daemon, {"remote", "status"})["remotes"].at(0);
  }
  int64_t stored() const {
    int64_t all = 0;
    for (size_t i = 0; i < redis_cluster::primaries; ++i)
      all += static_cast<int64_t>(cluster_->keys(i, object_keys).size());
    return all;
  }
  /// Chains of one object each.
  static std::vector<std::vector<digest>> singles(uint64_t seed, size_t count) {
    std::vector<std::vector<digest>> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(chain_of(seed + i, 1));
    return all;
  }
  static void store_all(const remote_machine& at, const std::vector<std::vector<digest>>& all) {
    for (const auto& each : all)
      EXPECT_EQ(at.client->store(each), 1U);
    // What a node did not take, because it was not in service for a moment, is written when it is used again.
    for (const auto& each : all)
      ASSERT_TRUE(
          eventually([&] { return at.found(each, on_remote) == 1 || at.client->load_and_check(each) > 1; }));
  }
  static size_t found(const remote_machine& at, const std::vector<std::vector<digest>>& all) {
    size_t sum = 0;
    for (const auto& each : all)
      sum += at.found(each, on_remote);
    return sum;
  }
  /// A node that has not answered for a moment is asked again.
  static bool finds_all(const remote_machine& at, const std::vector<std::vector<digest>>& all) {
    return eventually([&] { return found(at, all) == all.size(); });
  }
  std::string object_of(size_t node) const {
    const auto keys = cluster_->keys(node, object_keys);
    EXPECT_FALSE(keys.empty());
    return keys.empty() ? std::string() : keys.front();
  }

  std::optional<redis_cluster> cluster_;
};

TEST_F(RemoteCluster, WhatOneMachineStoredAnotherLoads) {
  start(0);
  auto a = machine(), b = machine();
  auto chain = chain_of(1, 24);
  EXPECT_EQ(a->client->store(chain), 24U);
  ASSERT_TRUE(b->finds_all(chain));
  EXPECT_EQ(b->client->load_and_check(chain_of(1, 8)), 8U);
  EXPECT_EQ(stored(), 24);
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    EXPECT_GT(cluster_->keys(i), 0) << "they are spread over all nodes";
}

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
    EXPECT_EQ(slots[cluster_->address(i)], redis_cluster::first_slot(i + 1) - redis_cluster::first_slot(i));
  EXPECT_EQ(shown["warnings"].size(), 3U) << "no node has a bound of its memory\n" << shown;
  auto text = terrace(a->daemon, {"remote", "status"});
  EXPECT_NE(text.out.find(cluster_->address(2) + ", ready, 5,462 slots"), std::string::npos) << text.out;
}

TEST_F(RemoteCluster, AProbeTakesEachStepAtEachNode) {
  start(0);
  auto a = machine();
  auto probed = answer_of(a->daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
  ASSERT_EQ(probed["steps"].size(), 15U) << probed;
  std::map<std::string, int> nodes;
  for (const auto& step : probed["steps"]) {
    const auto name = step["step"].get<std::string>();
    ++nodes[name.substr(0, name.find(' '))];
  }
  for (size_t i = 0; i < redis_cluster::primaries; ++i) {
    EXPECT_EQ(nodes[cluster_->address(i)], 5) << probed;
    EXPECT_TRUE(cluster_->keys(i, "*probe*").empty());
  }
}

TEST_F(RemoteCluster, ASweepRemovesWhatClearsHaveLeftAtAllNodes) {
  start(0);
  auto a = machine();
  auto old = singles(1, 12), kept = singles(100, 6);
  store_all(*a, old);
  ASSERT_TRUE((*a->client)->admin().clear(nullptr, patiently()));
  store_all(*a, kept);
  EXPECT_EQ(stored(), 18);
  auto swept = answer_of(a->daemon, {"remote", "sweep", "--rate", "1000000"});
  EXPECT_EQ(swept["removed"], 12) << swept;
  EXPECT_EQ(swept["current"], 6) << swept;
  EXPECT_EQ(stored(), 6);
  EXPECT_TRUE(finds_all(*a, kept));
}

TEST_F(RemoteCluster, AClearReachesEveryMachine) {
  start(0);
  auto a = machine(), b = machine();
  auto chain = chain_of(1, 12), other = chain_of(2, 6);
  EXPECT_EQ(a->client->store(chain), 12U);
  ASSERT_TRUE(b->finds_all(chain));
  EXPECT_EQ(b->client->load_and_check(chain_of(1, 4)), 4U);
  auto cleared = (*b->client)->admin().clear(&b->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_EQ(b->found(chain), 0U);
  ASSERT_TRUE(a->daemon.await_log("was cleared by another machine"));
  EXPECT_TRUE(a->finds_none(chain)) << "nor in host memory";
  EXPECT_EQ(a->client->store(other), 6U);
  ASSERT_TRUE(b->finds_all(other));
  ASSERT_TRUE((*a->client)->admin().clear(nullptr, patiently()))
      << "all spaces, whose token is at another node";
  EXPECT_TRUE(b->finds_none(other));
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
  EXPECT_NE(shown["notice"].get<std::string>().find("slots of the cluster belong to no node"),
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
  EXPECT_NE(probed.out.find("write cluster:// in front of the address"), std::string::npos) << probed.out;
}

TEST_F(RemoteStores, AServerThatIsNoNodeOfAClusterIsRefusedAsOne) {
  const uint16_t port = test::free_port();
  start_store({"--port", std::to_string(port), "--bind", "127.0.0.1"});
  std::string text = section();
  const std::string path = folder_.path() + "/redis.sock";
  text.replace(text.find(path), path.size(), "cluster://127.0.0.1:" + std::to_string(port));
  remote_machine one({.more = text});
  ASSERT_TRUE(
      one.daemon.await_log("the server is no node of a cluster: write its address without cluster://"));
  EXPECT_EQ(one.client->store(chain_of(1, 2)), 2U);
  auto shown = answer_of(one.daemon, {"remote", "status"})["remotes"].at(0);
  EXPECT_EQ(shown["state"], "down") << shown;
  auto probed = terrace(one.daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("no node of the cluster has told its slots"), std::string::npos) << probed.out;
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
