// The kinds of remote stores for one suite of tests (remote_contract_test.cpp): how each is started, its [[remote]] section, and what can
// be done to it behind the daemons' backs. Some break every promise: they lie only in what they answer.
#pragma once

#include "cluster_fixture.hpp"

#include "tests/support/certificates.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/s3_process.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

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

  /// Its lines of [[remote]]: the address, and credentials.
  virtual std::string lines() const = 0;
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
  std::string lines() const override { return "address = \"" + folder_.path() + "/redis.sock\"\n"; }
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
  std::string lines() const override {
    return "address = \"sentinel://127.0.0.1:" + std::to_string(watched_ports::sentinel) + "/kv\"\n";
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
  std::string lines() const override {
    return "address = \"rediss://127.0.0.1:" + port + "\"\ntls_ca_file = \"" + authority.file() + "\"\n";
  }
};

class three_primaries : public redis_servers {
 public:
  three_primaries() {
    for (const std::string& socket : sockets())
      folders_.push_back(std::filesystem::path(socket).parent_path());
  }
  std::string lines() const override {
    return "address = \"cluster://" + nodes_.address(0) + "," + nodes_.address(2) + "\"\n";
  }
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

// ---- buckets ----

/// Of the S3 store of these tests, which keeps what it has in memory.
class bucket : public open_store {
 public:
  explicit bucket(std::shared_ptr<test::s3_process> store = std::make_shared<test::s3_process>())
      : store_(std::move(store)), place_(store_->place()) {
    write_file(folder_ / "keys",
               std::string(test::s3_process::secret_key) + "\n" + test::s3_process::access_key + "\n");
    EXPECT_EQ(::chmod((folder_ / "keys").c_str(), 0600), 0);
  }
  std::string lines() const override {
    return "address = \"s3://" + place_ + "\"\npassword_file = \"" + (folder_ / "keys").string() + "\"\n";
  }
  std::string server() const override { return "TestStore"; }
  void end() override {
    save();
    store_->kill();
  }
  void start(having what) override {
    const auto colon = place_.find(':') + 1;
    std::vector<std::string> options{"--port", place_.substr(colon, place_.find('/') - colon)};
    if (what == having::its_values)
      options.insert(options.end(), {"--load", saved()});
    store_ = std::make_shared<test::s3_process>(options);
  }
  void stand_still() override { EXPECT_TRUE(test::suspend(store_->pid())); }
  void go_on() override { ::kill(store_->pid(), SIGCONT); }
  void lose_values() override { lose(false); }
  void lose_tokens() override { lose(true); }

 protected:
  std::string read(const digest& of) override {
    save();
    return read_file(file_of(of));
  }
  void write(const digest& of, const std::string& value) override {
    save();
    write_file(file_of(of), value);
    load();
  }
  static constexpr int always = 1'000'000;
  std::shared_ptr<test::s3_process> store_;

 private:
  std::string saved() const { return folder_ / "saved"; }
  void save() {
    std::filesystem::remove_all(saved());
    EXPECT_EQ(store_->tell("save " + saved()), "ok");
  }
  void load() { EXPECT_EQ(store_->tell("load " + saved()), "ok"); }
  void lose(bool tokens) {
    save();
    const std::vector<std::filesystem::directory_entry> all(std::filesystem::directory_iterator(saved()), {});
    for (const auto& each : all)
      if ((each.path().filename().string().find("%2Fepoch%2F") != std::string::npos) == tokens)
        std::filesystem::remove(each);
    load();
  }
  std::string file_of(const digest& of) const {
    for (const auto& each : std::filesystem::directory_iterator(saved()))
      if (each.path().filename().string().find(to_hex(of)) != std::string::npos)
        return each.path();
    throw std::runtime_error("the bucket has no object of " + to_hex(of));
  }

  temporary_folder folder_{"/tmp"};
  std::string place_;
};

/// Ignores the conditions of writes as long as it is told nothing else.
class lying_bucket final : public bucket {
 public:
  lying_bucket() { store_->fail("ignored", "PUT", always); }
  void end() override { store_->fail("reset", "ANY", always); }
  void start(having what) override {
    if (what == having::nothing)
      store_->tell("remove");
    store_->fail("reset", "ANY", 0);
  }
  void stand_still() override { store_->fail("hang", "ANY", always); }
  void go_on() override { store_->fail("hang", "ANY", 0); }
  /// It has them and does not give them.
  void lose_values() override { begin("status-404-NoSuchKey", "VALUE"); }
  std::vector<damage> damages() override {
    std::vector<damage> all;
    for (const auto& [fault, reason] : {std::pair("wrong", "wrong_payload"),
                                        {"inverted", "not_ours"},
                                        {"short", "other_length"},
                                        {"another", "other_object"},
                                        {"cut", "refused"},
                                        {"status-404-NoSuchKey", "absent"},
                                        {"status-500-InternalError", "refused"}}) {
      const std::string name = fault;
      all.push_back(
          {name, reason, [this, name](const digest& of, const digest&) { begin(name, to_hex(of)); }});
    }
    return all;
  }
  void end_damage() override {
    if (!fault_.empty())
      store_->fail(fault_, of_, 0);
    fault_.clear();
  }

 private:
  void begin(const std::string& fault, const std::string& of) {
    store_->fail(fault_ = fault, of_ = of, always);
  }
  std::string fault_, of_; ///< empty: it has told the truth since
};

/// One that others have made: what it has is reached through its own interface alone.
class others_bucket final : public bucket {
 public:
  enum class made_by : uint8_t { moto, ceph };
  explicit others_bucket(made_by whom)
      : bucket(whom == made_by::ceph
                   ? test::s3_process::radosgw()
                   : std::make_shared<test::s3_process>(std::vector<std::string>{"--moto"})),
        whom_(whom) {}
  std::string server() const override { return {}; }
  std::string lacks(ability which) const override {
    if (which == ability::stand_still || (which == ability::end && whom_ == made_by::ceph))
      return {};
    return which == ability::end ? "moto's server keeps its bucket in memory, and would be another one"
                                 : "the tests have no client of S3 that changes what is in it";
  }
  void end() override { EXPECT_EQ(store_->tell("signal KILL gateway"), "ok"); }
  void start(having) override { EXPECT_EQ(store_->tell("start gateway"), "ok"); }
  void stand_still() override {
    if (whom_ == made_by::moto)
      return bucket::stand_still();
    EXPECT_EQ(store_->tell("signal STOP gateway"), "ok");
  }
  void go_on() override {
    if (whom_ == made_by::moto)
      return bucket::go_on();
    EXPECT_EQ(store_->tell("signal CONT gateway"), "ok");
  }

 private:
  made_by whom_;
};

// ---- plugins ----

/// A folder that machines share. What is done to it is done to the processes that serve it as well.
class shared_folder : public open_store {
 public:
  explicit shared_folder(std::string plugin = "fs") : plugin_(std::move(plugin)) {
    ::setenv("PYTHONPATH", test::program("PLUGIN_PATH").c_str(), 1);
    std::filesystem::create_directory(path());
  }
  ~shared_folder() override { ::unsetenv("PYTHONPATH"); }
  std::string lines() const override {
    return "address = \"plugin://" + plugin_ + "?path=" + path() + "\"\n";
  }
  std::string server() const override { return plugin_; }
  bool lists_keys() const override { return false; }
  void end() override {
    std::filesystem::rename(path(), folder_ / "away");
    signal(SIGKILL);
  }
  void start(having what) override {
    if (what == having::nothing)
      remove_files(folder_ / "away", "");
    std::filesystem::rename(folder_ / "away", path());
  }
  void stand_still() override { signal(SIGSTOP); }
  void go_on() override { signal(SIGCONT); } // the daemon has killed those that it has waited for
  void lose_values() override { remove_files(path(), "%7b"); }
  void lose_tokens() override { remove_files(path(), "%2fepoch%2f"); }

 protected:
  std::string path() const { return folder_ / "kv"; }
  /// Those of values that have this in their names.
  static void remove_files(const std::filesystem::path& in, const std::string& part) {
    for (const std::string& file : files(in))
      if (file.find(part) != std::string::npos)
        std::filesystem::remove(file);
  }

  std::string read(const digest& of) override {
    std::string value = read_file(file_of(of));
    value.resize(value.size() - end_bytes);
    return value;
  }
  /// As the plugin does, so that it takes the value for right.
  void write(const digest& of, const std::string& value) override {
    const uint32_t sum = checksum(value);
    const uint64_t length = value.size();
    std::string end(end_bytes, '\0');
    std::memcpy(end.data(), &sum, sizeof sum);
    std::memcpy(end.data() + sizeof sum, &length, sizeof length);
    write_file(file_of(of), value + end);
  }

 private:
  static constexpr size_t end_bytes = 12; ///< behind each value: CRC-32 and length

  static uint32_t checksum(const std::string& text) {
    uint32_t sum = ~uint32_t{0};
    for (const char c : text) {
      sum ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit)
        sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320U : 0U);
    }
    return ~sum;
  }
  static std::vector<std::string> files(const std::filesystem::path& in) {
    std::vector<std::string> all;
    for (const auto& each : std::filesystem::recursive_directory_iterator(in))
      if (each.is_regular_file() && each.path().filename().string().starts_with("v-"))
        all.push_back(each.path());
    return all;
  }
  std::string file_of(const digest& of) const {
    for (const std::string& file : files(path()))
      if (file.find(to_hex(of)) != std::string::npos)
        return file;
    throw std::runtime_error("the folder has no value of " + to_hex(of));
  }
  /// To the processes that serve the folder.
  void signal(int number) const {
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(each.path() / "cmdline");
      const std::string words((std::istreambuf_iterator<char>(file)), {});
      if (words.find("terrace.remote") != std::string::npos && words.find(path()) != std::string::npos)
        ::kill(std::stoi(each.path().filename()), number);
    }
  }

  temporary_folder folder_{"/tmp"};
  std::string plugin_;
};

/// tests/support/plugins/faulty.py
class lying_plugin final : public shared_folder {
 public:
  lying_plugin() : shared_folder("faulty") {}
  void end() override { begin("crash"); }
  void start(having what) override {
    if (what == having::nothing)
      remove_files(path(), "");
    end_damage();
  }
  void stand_still() override { begin("hang"); }
  void go_on() override {
    end_damage();
    shared_folder::go_on();
  }
  /// It has them and does not give them.
  void lose_values() override { begin("absent {"); }
  std::vector<damage> damages() override {
    std::vector<damage> all;
    for (const auto& [fault, reason] : {std::pair("wrong", "wrong_payload"),
                                        {"short", "other_length"},
                                        {"liar", "other_length"},
                                        {"another", "other_object"},
                                        {"absent", "absent"},
                                        {"raise", "refused"},
                                        {"crash", "unanswered"},
                                        {"garbage", "unanswered"}}) {
      const std::string name = fault, reason_of_miss = reason;
      const bool of_all = name == "raise" || reason_of_miss == "unanswered";
      all.push_back({name, reason_of_miss,
                     [this, name](const digest& of, const digest&) { begin(name + " " + to_hex(of)); },
                     of_all});
    }
    return all;
  }
  void end_damage() override { std::filesystem::remove(path() + "/fault"); }

 private:
  /// At once for its processes: they read the file whenever they are called.
  void begin(const std::string& fault) const {
    write_file(path() + "/fault.new", fault);
    std::filesystem::rename(path() + "/fault.new", path() + "/fault");
  }
};

} // namespace terrace::e2e::contract
