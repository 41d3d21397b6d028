// Kinds of remote stores for one suite of tests (remote_contract_test.cpp): how each is started, its [[remote]] section, and what can be
// done to it behind the daemons' backs. This file has what all are, and servers of Valkey or Redis; contract_buckets.hpp has the others.
#pragma once

#include "cluster_fixture.hpp"

#include "tests/support/certificates.hpp"
#include "tests/support/process_memory.hpp"

#include <csignal>
#include <filesystem>
#include <functional>

namespace terrace::e2e::contract {

/// From `begin` on an object is read in another way than it was written.
struct damage {
  std::string what, reason; ///< the latter: of the miss, as the metric names it
  std::function<void(const digest& of, const digest& other)> begin;
  bool costs_others = false; ///< what is read beside it may be missed as well
};

class any_store {
 public:
  enum class ability : uint8_t { end, start_empty, stand_still, lose_values, lose_tokens, do_damage };
  enum class having : uint8_t { its_values, nothing };

  virtual ~any_store() = default;

  virtual std::string address() const = 0;
  /// Lines of [[remote]]: what else its daemons need.
  virtual std::string credentials() const { return {}; }
  /// Its name, as `terrace remote status` shows it; empty: not known here.
  virtual std::string server() const = 0;
  virtual bool tells_changes() const { return false; }
  virtual bool lists_keys() const { return true; }
  /// Why this cannot be done to it; empty: it can.
  virtual std::string lacks(ability) const { return {}; }
  /// All names that its daemons use begin so from now on.
  void use(const std::string& prefix) { prefix_ = prefix; }

  virtual void end() = 0; ///< by force
  virtual void start(having what) = 0;
  virtual void stand_still() = 0;
  virtual void go_on() = 0;
  virtual void lose_values() = 0;
  virtual void lose_tokens() = 0;
  virtual std::vector<damage> damages() = 0;
  virtual void end_damage() {}

 protected:
  std::string prefix_;
};

/// The damage is done to the values themselves.
class open_store : public any_store {
 public:
  std::vector<damage> damages() override {
    using change = std::function<void(std::string&)>;
    const auto changed = [this](const change& how) {
      return [this, how](const digest& of, const digest&) {
        std::string value = read(of);
        how(value);
        write(of, value);
      };
    };
    return {
        {"a byte of the payload", "wrong_payload", changed([](std::string& value) { value.back() ^= 1; })},
        {"a byte of the header", "damaged", changed([](std::string& value) { value[40] ^= 1; })},
        {"cut", "other_length", changed([](std::string& value) { value.pop_back(); })},
        {"only the header", "other_length", changed([](std::string& value) { value.resize(256); })},
        {"something else", "not_ours", changed([](std::string& value) { value.assign(value.size(), 'x'); })},
        {"that of another object", "other_object",
         [this](const digest& of, const digest& other) { write(of, read(other)); }},
    };
  }

 protected:
  virtual std::string read(const digest& of) = 0;
  virtual void write(const digest& of, const std::string& value) = 0;
};

// ---- Valkey or Redis ----

class redis_servers : public open_store {
 public:
  std::string server() const override {
    const bool redis = test::run({test::redis_process::program(), "--version"}).out.starts_with("Redis");
    return redis ? "redis" : "valkey";
  }
  bool tells_changes() const override { return true; }
  void lose_values() override { remove("t1/*/*/*/*"); }
  void lose_tokens() override { remove("t1/epoch/*"); }

 protected:
  /// Of all servers, which tests of one machine reach without TLS.
  virtual std::vector<std::string> sockets() const = 0;

  /// What a server was told is in its file when it answers; no test ends the machine.
  static std::vector<std::string> durable(std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"});
    return more;
  }
  static void forget(const std::filesystem::path& folder) {
    std::filesystem::remove_all(folder / "appendonlydir");
    std::filesystem::remove(folder / "appendonly.aof"); // before version 7
  }

  std::string read(const digest& of) override {
    const auto [socket, key] = place_of(of);
    return resp_client(socket).call({"GET", key});
  }
  void write(const digest& of, const std::string& value) override {
    const auto [socket, key] = place_of(of);
    EXPECT_EQ(resp_client(socket).call({"SET", key, value}), "OK");
  }

 private:
  std::pair<std::string, std::string> place_of(const digest& of) const {
    const std::string pattern = prefix_ + "t1/*{" + to_hex(of) + "}*";
    for (const std::string& socket : sockets())
      if (const std::string key =
              resp_client(socket).call({"EVAL", "return redis.call('keys', ARGV[1])[1] or ''", "0", pattern});
          !key.empty())
        return {socket, key};
    throw std::runtime_error("no server has " + pattern);
  }
  void remove(const std::string& pattern) const {
    for (const std::string& socket : sockets())
      EXPECT_EQ(resp_client(socket).call({"EVAL",
                                          "for _, key in ipairs(redis.call('keys', ARGV[1])) do "
                                          "redis.call('del', key) end return 1",
                                          "0", prefix_ + pattern}),
                "(integer) 1");
  }
};

class single_server : public redis_servers {
 public:
  explicit single_server(const std::vector<std::string>& options = {}) : options_(durable(options)) {
    server_.emplace(folder_.path(), options_);
  }
  std::string address() const override { return folder_.path() + "/redis.sock"; }
  void end() override {
    server_.reset();
    std::filesystem::remove(folder_ / "redis.sock");
  }
  void start(having what) override {
    if (what == having::nothing)
      forget(folder_.path());
    server_.emplace(folder_.path(), options_);
  }
  void stand_still() override { EXPECT_TRUE(test::suspend(server_->pid())); }
  void go_on() override { ::kill(server_->pid(), SIGCONT); }

 protected:
  std::vector<std::string> sockets() const override { return {server_->socket()}; }

 private:
  std::vector<std::string> options_;
  temporary_folder folder_{"/tmp"};
  std::optional<test::redis_process> server_;
};

struct watched_ports {
  std::string server = std::to_string(test::free_port());
  uint16_t sentinel = test::free_port();
};
/// Without a replica, so that the primary stays the same.
class sentinel_server : private watched_ports, public single_server {
 public:
  sentinel_server() : single_server({"--port", watched_ports::server, "--bind", "127.0.0.1"}) {}
  std::string address() const override {
    return "sentinel://127.0.0.1:" + std::to_string(watched_ports::sentinel) + "/kv";
  }

 private:
  temporary_folder folder_of_sentinel_{"/tmp"};
  test::redis_process sentinel_ =
      test::redis_process::sentinel(folder_of_sentinel_.path(), watched_ports::sentinel, "kv",
                                    static_cast<uint16_t>(std::stoi(watched_ports::server)));
};

struct own_certificates {
  temporary_folder folder_of_certificates{"/tmp"};
  test::certificate_authority authority{folder_of_certificates.path()};
  test::certificate_authority::issued issued = authority.issue("server", "IP:127.0.0.1");
  std::string port = std::to_string(test::free_port());
};
class tls_server : private own_certificates, public single_server {
 public:
  tls_server()
      : single_server({"--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file", issued.certificate,
                       "--tls-key-file", issued.key, "--tls-ca-cert-file", authority.file(),
                       "--tls-auth-clients", "no"}) {}
  std::string address() const override { return "rediss://127.0.0.1:" + port; }
  std::string credentials() const override { return "tls_ca_file = \"" + authority.file() + "\"\n"; }
};

class three_primaries : public redis_servers {
 public:
  three_primaries() {
    for (const std::string& socket : sockets())
      folders_.push_back(std::filesystem::path(socket).parent_path());
  }
  std::string address() const override { return "cluster://" + nodes_.address(0) + "," + nodes_.address(2); }
  void end() override {
    for (size_t i = 0; i < nodes_.size(); ++i)
      nodes_.kill(i);
  }
  void start(having what) override {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (what == having::nothing)
        forget(folders_[i]);
      nodes_.start(i);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) // 2 seconds later, as a primary that has just started
      EXPECT_TRUE(eventually([&] {
        return nodes_.ask(i, {"CLUSTER", "INFO"}).starts_with("cluster_state:ok");
      }));
  }
  void stand_still() override {
    for (size_t i = 0; i < nodes_.size(); ++i)
      EXPECT_TRUE(test::suspend(nodes_.pid(i)));
  }
  void go_on() override {
    for (size_t i = 0; i < nodes_.size(); ++i)
      ::kill(nodes_.pid(i), SIGCONT);
  }

 protected:
  std::vector<std::string> sockets() const override {
    std::vector<std::string> all;
    for (size_t i = 0; i < nodes_.size(); ++i)
      all.push_back(nodes_.socket(i));
    return all;
  }

 private:
  redis_cluster nodes_{{.options = durable()}};
  std::vector<std::filesystem::path> folders_;
};

} // namespace terrace::e2e::contract
