// A real cluster of three primaries, with replicas if a test wants them, and the daemons that have a remote tier on it.
#pragma once

#include "command_line.hpp"
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"

namespace terrace::e2e {

inline constexpr const char* object_keys = "terrace/t1/*/*/*/*";

/// Real servers with `--cluster-enabled`. The first three, or `only`, are primaries of equally many slots.
class redis_cluster {
 public:
  static constexpr size_t primaries = 3;

  struct shape {
    size_t replicas = 0; ///< the next nodes, of the first ones
    size_t spares = 0;   ///< nodes without slots
    std::vector<std::string> options{};
    std::string node_timeout_ms = "15000";
    size_t only = primaries;
    bool tls = false; ///< clients and nodes speak it; `options` name the certificates
  };
  explicit redis_cluster(shape of) : more_(std::move(of.options)), primaries_(of.only), tls_(of.tls) {
    more_.insert(more_.end(),
                 {"--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
                  "--cluster-node-timeout", of.node_timeout_ms, "--repl-diskless-sync-delay", "0"});
    if (tls_)
      more_.insert(more_.end(), {"--tls-cluster", "yes", "--tls-replication", "yes"});
    for (size_t i = 0; i < primaries_ + of.replicas + of.spares; ++i)
      nodes_.push_back(std::make_unique<node>());
    for (size_t i = 0; i < nodes_.size(); ++i)
      start(i);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      EXPECT_EQ(ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}), "OK");
      if (i < primaries_) {
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
    for (size_t i = 0; i < of.replicas; ++i) {
      EXPECT_TRUE(eventually([&] { return ask(primaries_ + i, {"CLUSTER", "REPLICATE", id(i)}) == "OK"; }));
      EXPECT_TRUE(eventually([&] {
        return ask(primaries_ + i, {"INFO", "replication"}).find("master_link_status:up") !=
               std::string::npos;
      }));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) // one that has not heard of all slots says ok as well
      EXPECT_TRUE(eventually([&] {
        const std::string told = ask(i, {"CLUSTER", "INFO"});
        return told.starts_with("cluster_state:ok") &&
               told.find("cluster_slots_assigned:16384") != std::string::npos;
      }));
  }

  size_t primary_count() const { return primaries_; }
  size_t first_slot(size_t primary) const { return primary * 16'384 / primaries_; }
  size_t size() const { return nodes_.size(); }
  bool runs(size_t i) const { return nodes_[i]->server != nullptr; }
  pid_t pid(size_t i) const { return nodes_[i]->server->pid(); }
  const std::string& socket(size_t i) const { return nodes_[i]->server->socket(); }
  void start(size_t i) {
    node& each = *nodes_[i];
    auto options = more_;
    options.insert(options.end(), {tls_ ? "--tls-port" : "--port", text_of(each.port), "--cluster-port",
                                   text_of(each.bus_port)});
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
    return words_of(all);
  }
  /// The one among the primaries that has the key.
  size_t owner(const std::string& pattern) const {
    for (size_t i = 0; i < primaries_; ++i)
      if (runs(i) && !keys(i, pattern).empty())
        return i;
    return primaries_;
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
  size_t primaries_;
  bool tls_;
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
                 scheme_ + "127.0.0.1:" + std::to_string(test::free_port()) + "," +
                     cluster_->address(cluster_->primary_count() - 1) + address_options_);
    return text;
  }
  /// With replicas: these are promoted soon.
  void start(size_t replicas, size_t spares = 0, const std::vector<std::string>& more = {}) {
    cluster_.emplace(redis_cluster::shape{.replicas = replicas,
                                          .spares = spares,
                                          .options = more,
                                          .node_timeout_ms = replicas == 0 ? "15000" : "2000"});
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
    for (size_t i = 0; i < cluster_->primary_count(); ++i)
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
  std::string scheme_ = "cluster://", address_options_; ///< the latter such as "?reads=replicas"
};

} // namespace terrace::e2e
