// `terrace remote`: what an operator sees of a store, and what a sweep removes from it.
#include "command_line.hpp"
#include "remote_fixture.hpp"
#include "tests/support/process_memory.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

class RemoteOperator : public RemoteStores {
 protected:
  void start(const std::vector<std::string>& options = {}, const std::string& more = "") {
    start_store(options);
    machine_ = std::make_unique<remote_machine>(
        daemon_options{.more = section("demotion = \"write_through\"\n" + more)});
    machine_->await_store();
  }
  nlohmann::json status() { return answer_of(machine_->daemon, {"remote", "status"})["remotes"].at(0); }
  void store(const std::vector<digest>& chain) {
    EXPECT_EQ(machine_->client->store(chain), chain.size());
    ASSERT_TRUE(machine_->finds_all(chain, on_remote));
  }
  std::string secret(const std::string& text) {
    const std::string file = folder_ / "password";
    write_file(file, text);
    EXPECT_EQ(::chmod(file.c_str(), 0600), 0);
    return "password_file = \"" + file + "\"\n";
  }
  ended_program probe() { return terrace(machine_->daemon, {"remote", "probe"}); }

  std::unique_ptr<remote_machine> machine_;
};

TEST_F(RemoteOperator, SeesTheStore) {
  start({"--maxmemory", "512mb", "--maxmemory-policy", "noeviction"});
  store(chain_of(1, 4));
  machine_->leave_host(chain_of(1, 4));
  EXPECT_EQ(machine_->client->load_and_check(chain_of(1, 4)), 4U);
  auto shown = status();
  EXPECT_EQ(shown["address"], folder_.path() + "/redis.sock");
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_EQ(shown["reason"], "");
  const std::string server = shown["server"];
  EXPECT_TRUE(server == "redis" || server == "valkey") << server;
  EXPECT_NE(shown["version"], "");
  EXPECT_EQ(shown["tells_changes"], true);
  EXPECT_GT(shown["answers"], 0);
  EXPECT_GT(shown["answer_mean_ns"], 0);
  EXPECT_GE(shown["answer_slowest_ns"], shown["answer_mean_ns"]);
  EXPECT_EQ(shown["read_bytes"], 4 * object_bytes);
  EXPECT_GE(shown["written_bytes"], 4 * object_bytes);
  EXPECT_GT(shown["memory"]["used_bytes"], 4 * object_bytes);
  EXPECT_EQ(shown["memory"]["max_bytes"], 512 * mebibyte);
  EXPECT_EQ(shown["memory"]["policy"], "noeviction");
  ASSERT_EQ(shown["warnings"].size(), 1U);
  EXPECT_NE(shown["warnings"][0].get<std::string>().find("allkeys-lru"), std::string::npos);
  auto text = terrace(machine_->daemon, {"remote", "status"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const std::string named = server + " " + shown["version"].get<std::string>();
  for (const std::string& part : {std::string("ready since"), named, std::string("told by the server"),
                                  std::string("512 MiB, noeviction"), std::string("warning")})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  for (const char* of_others : {"hedges", "replica_reads"})
    EXPECT_FALSE(shown.contains(of_others)) << "this kind of store has none\n" << shown;
  for (const char* of_others : {"hedged", "replica"})
    EXPECT_EQ(text.out.find(of_others), std::string::npos) << text.out;
}

TEST_F(RemoteOperator, SeesThatLookupsDoNotWaitLongEnough) {
  start_store({"--maxmemory", "512mb", "--maxmemory-policy", "allkeys-lru"});
  machine_ = std::make_unique<remote_machine>(
      daemon_options{.more = section("demotion = \"write_through\"\n", "5ms")});
  machine_->await_store();
  EXPECT_TRUE(status()["warnings"].empty());
  nlohmann::json warnings;
  uint64_t seed = 1;
  ASSERT_TRUE(eventually([&] { // with enough late answers
    resp_client(store_->socket()).call({"CLIENT", "PAUSE", "40", "ALL"});
    machine_->found(chain_of(seed++, 1));
    warnings = status()["warnings"];
    return !warnings.empty();
  }));
  EXPECT_NE(warnings[0].get<std::string>().find("set lookup_budget to at least"), std::string::npos)
      << warnings;
  EXPECT_NE(terrace(machine_->daemon, {"remote", "status"}).out.find("lookup_budget"), std::string::npos);
}

TEST_F(RemoteOperator, SeesWhyItIsOutOfService) {
  start();
  stop_store();
  ASSERT_TRUE(eventually([&] { return status()["state"] == "down"; }));
  auto shown = status();
  EXPECT_NE(shown["reason"].get<std::string>().find("redis.sock"), std::string::npos) << shown;
  EXPECT_FALSE(shown.contains("memory"));
  EXPECT_NE(shown["memory_refused"], "");
  EXPECT_EQ(terrace(machine_->daemon, {"remote", "status"}).exit_code, 0);
}

TEST_F(RemoteOperator, IsToldThatAClearWaitsForAStoreThatIsAway) {
  start();
  store(chain_of(1, 2));
  auto heard = answer_of(machine_->daemon, {"clear", "--all"});
  EXPECT_FALSE(heard.contains("waits_for")) << heard;
  EXPECT_EQ(status()["owed_clears"], 0);
  store(chain_of(2, 2));
  stop_store();
  ASSERT_TRUE(eventually([&] { return status()["state"] == "down"; }));
  auto cleared = terrace(machine_->daemon, {"clear", "--all"});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err;
  EXPECT_NE(cleared.out.find("is away: the clear is remembered"), std::string::npos) << cleared.out;
  EXPECT_EQ(answer_of(machine_->daemon, {"clear", "--all"})["waits_for"]["state"], "down");
  EXPECT_EQ(status()["owed_clears"], 1);
  EXPECT_NE(
      terrace(machine_->daemon, {"remote", "status"}).out.find("1 clear the store has not been told of"),
      std::string::npos);
  start_store();
  machine_->await_store();
  EXPECT_TRUE(eventually([&] { return status()["owed_clears"] == 0; }));
}

TEST_F(RemoteOperator, SeesOneCountOfWhatIsWritten) {
  start();
  remote_machine other({.more = section("demotion = \"write_through\"\n")});
  other.await_store();
  store(chain_of(1, 3));
  EXPECT_EQ(other.client->store(chain_of(1, 3)), 3U);
  EXPECT_EQ(other.client->store(chain_of(2, 1)), 1U);
  ASSERT_TRUE(other.finds_all(chain_of(2, 1), on_remote));
  ASSERT_TRUE(other.finds_all(chain_of(1, 3), on_remote));
  for (const remote_machine* each : std::initializer_list<const remote_machine*>{machine_.get(), &other})
    EXPECT_EQ(store_status(*each)["written_bytes"], each->client->tier("remote").bytes_written)
        << "what the other machine had written counts in neither";
}

TEST_F(RemoteOperator, SeesWhatTheUserMayNotAsk) {
  start({"--user", "kv", "on", ">hunter2", "~terrace/*", "+hello", "+auth", "+exists", "+get", "+set",
         "+unlink", "--requirepass", "other"},
        secret("hunter2\nkv\n"));
  auto shown = status();
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_EQ(shown["tells_changes"], false) << "it may not call CLIENT";
  EXPECT_NE(shown["memory_refused"].get<std::string>().find("INFO"), std::string::npos) << shown;
  auto swept = terrace(machine_->daemon, {"remote", "sweep"});
  EXPECT_EQ(swept.exit_code, 1);
  EXPECT_NE(swept.err.find("SCAN"), std::string::npos) << swept.err;
}

TEST_F(RemoteOperator, WithoutARemoteTierIsToldHowToGetOne) {
  daemon_under_test daemon{daemon_options{}};
  auto shown = terrace(daemon, {"remote", "status"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_NE(shown.out.find("[[remote]]"), std::string::npos) << shown.out;
  for (const char* what : {"probe", "sweep"}) {
    auto refused = terrace(daemon, {"remote", what});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("add a [[remote]] section"), std::string::npos) << refused.err;
  }
}

// ---- probe ----

TEST_F(RemoteOperator, AProbeTakesEachStep) {
  start();
  auto probed = answer_of(machine_->daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
  std::vector<std::string> steps;
  for (const auto& step : probed["steps"]) {
    steps.push_back(step["step"]);
    EXPECT_GT(step["ns"], 0) << step;
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"connect", "authenticate", "set", "get", "unlink"}));
  EXPECT_EQ(ask_store({"EVAL", "return #redis.call('keys', '*probe*')", "0"}), 0)
      << "it leaves nothing behind";
}

TEST_F(RemoteOperator, AProbeSaysWhatToDoWithoutAServer) {
  start();
  stop_store();
  auto probed = probe();
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("connect"), std::string::npos) << probed.out;
  EXPECT_NE(probed.out.find("check that the server runs"), std::string::npos) << probed.out;
  EXPECT_EQ(probed.out.find("authenticate"), std::string::npos) << "it ends with the first failure";
}

TEST_F(RemoteOperator, AProbeOfAServerThatStandsStillEnds) {
  start();
  ASSERT_TRUE(test::suspend(store_->pid()));
  auto probed = probe();
  ::kill(store_->pid(), SIGCONT);
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("it does not answer"), std::string::npos) << probed.out;
}

TEST_F(RemoteOperator, AProbeSaysWhichRightIsMissing) {
  start({"--user", "kv", "on", ">hunter2", "~terrace/*", "+hello", "+auth", "+exists", "+get", "+unlink",
         "--requirepass", "other"},
        secret("hunter2\nkv\n"));
  auto probed = probe();
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("set"), std::string::npos) << probed.out;
  EXPECT_NE(probed.out.find("the user may not do this"), std::string::npos) << probed.out;
}

TEST_F(RemoteOperator, AProbeSaysThatTheStoreIsFull) {
  start();
  EXPECT_EQ(resp_client(store_->socket()).call({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  auto probed = probe();
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("maxmemory-policy"), std::string::npos) << probed.out;
}

// ---- sweep ----

TEST_F(RemoteOperator, ASweepLeavesOtherRealmsAndOtherKeys) {
  start();
  store(chain_of(1, 2));
  make_key(folder_ / "other", 'o');
  remote_machine other({.more = "[[remote]]\naddress = \"" + folder_.path() +
                                "/redis.sock\"\nrealm_key_file = \"" + (folder_ / "other").string() +
                                "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n"});
  other.await_store();
  EXPECT_EQ(other.client->store(chain_of(5, 3)), 3U);
  ASSERT_TRUE(other.finds_all(chain_of(5, 3), on_remote));
  ask_store(
      {"EVAL", "redis.call('set', 'terrace/mine', '1') redis.call('set', 'others', '1') return 1", "0"});
  ASSERT_TRUE((*machine_->client)->admin().clear(nullptr, patiently()));
  store(chain_of(2, 1));
  const auto before = ask_store({"DBSIZE"});
  auto swept = answer_of(machine_->daemon, {"remote", "sweep"});
  EXPECT_EQ(swept["removed"], 2) << swept;
  EXPECT_EQ(swept["current"], 4) << swept;
  EXPECT_EQ(ask_store({"DBSIZE"}), before - 2);
  other.leave_host(chain_of(5, 3));
  EXPECT_EQ(other.client->load_and_check(chain_of(5, 3)), 3U);
}

TEST_F(RemoteOperator, ASweepLooksAtManyPagesAndLeavesValuesOfRedisClients) {
  const std::string door = folder_ / "door.sock";
  start({}, "");
  machine_.reset();
  machine_ = std::make_unique<remote_machine>(daemon_options{.more = section() + resp_section(door)});
  machine_->await_store();
  resp_client redis(door);
  EXPECT_EQ(redis.call({"SET", "mine", std::string(5'000, 'v')}), "OK");
  store(chain_of(1, 1));
  ASSERT_TRUE(eventually([&] { return ask_store({"DBSIZE"}) >= 4; }));
  auto space = "terrace/t1/" + std::string(32, 'a') + "/";
  ask_store(
      {"EVAL",
       "redis.call('set', 'terrace/t1/epoch/' .. string.rep('a', 32), '00000000000000f1') for i = 1, 9000 do "
       "redis.call('set', '" +
           space + "' .. string.format('%016x', i) .. '/0.0/' .. string.rep('b', 64), 'value') end return 1",
       "0"});
  auto swept = answer_of(machine_->daemon, {"remote", "sweep", "--rate", "1000000"});
  EXPECT_GE(swept["removed"], 8'990) << swept;
  EXPECT_GE(swept["unknown"], 1) << "the value of the Redis client\n" << swept;
  EXPECT_EQ(redis.call({"GET", "mine"}), std::string(5'000, 'v'));
}

TEST_F(RemoteOperator, ASweepEndsWithItsRequest) {
  start();
  ask_store({"EVAL", "for i = 1, 20000 do redis.call('set', 'terrace/t1/x' .. i, '1') end return 1", "0"});
  auto swept = terrace(machine_->daemon, {"remote", "sweep", "--rate", "1", "--timeout", "0.2"});
  EXPECT_EQ(swept.exit_code, 1);
  EXPECT_NE(swept.err.find("deadline"), std::string::npos) << swept.err;
  EXPECT_EQ(machine_->daemon.terminate(), 0) << "it ends with the daemon";
}

TEST_F(RemoteOperator, ASweepSaysThatTheStoreIsLost) {
  start();
  stop_store();
  auto swept = terrace(machine_->daemon, {"remote", "sweep"});
  EXPECT_EQ(swept.exit_code, 1);
  EXPECT_NE(swept.err.find("it cannot be reached"), std::string::npos) << swept.err;
}

// ---- a password that changes ----

class RotatedPassword : public RemoteOperator {
 protected:
  static std::vector<std::string> two_passwords() {
    return {"--user", "kv",     "on",      ">first", ">second", "~terrace/*", "&*",
            "+@all",  "--user", "default", "on",     "nopass",  "~*",         "+@all"};
  }
  void reload(const std::string& password) {
    secret(password + "\nkv\n");
    machine_->daemon.signal(SIGHUP);
  }
  /// Ends the connections of the daemon.
  void disconnect() { ask_store({"CLIENT", "KILL", "USER", "kv"}); }
};

TEST_F(RotatedPassword, IsUsedFromTheNextConnectionOn) {
  start(two_passwords(), secret("first\nkv\n"));
  store(chain_of(1, 2));
  reload("second");
  ASSERT_TRUE(machine_->daemon.await_log("accepts the new password of password_file"));
  EXPECT_EQ(resp_client(store_->socket()).call({"ACL", "SETUSER", "kv", "<first"}), "OK");
  disconnect();
  ASSERT_TRUE(machine_->daemon.await_log("is in service again"));
  machine_->leave_host(chain_of(1, 2));
  EXPECT_EQ(machine_->client->load_and_check(chain_of(1, 2)), 2U);
  EXPECT_FALSE(machine_->daemon.has_logged("check user and password_file"));
}

TEST_F(RotatedPassword, AWrongOneIsToldAndTheOpenConnectionsStay) {
  start(two_passwords(), secret("first\nkv\n"));
  store(chain_of(1, 2));
  reload("third");
  ASSERT_TRUE(machine_->daemon.await_log("does not accept the new password of password_file, and the open "
                                         "connections stay: the server refuses the password: "
                                         "check user and password_file"));
  EXPECT_EQ(status()["state"], "ready");
  machine_->leave_host(chain_of(1, 2));
  EXPECT_EQ(machine_->client->load_and_check(chain_of(1, 2)), 2U);
  reload("second");
  ASSERT_TRUE(machine_->daemon.await_log("accepts the new password of password_file"));
  EXPECT_FALSE(machine_->daemon.has_logged("third"));
}

TEST_F(RotatedPassword, AFileThatCannotBeReadChangesNothing) {
  start(two_passwords(), secret("first\nkv\n"));
  secret("second\nkv\n");
  ASSERT_EQ(::chmod((folder_ / "password").c_str(), 0644), 0);
  machine_->daemon.signal(SIGHUP);
  ASSERT_TRUE(machine_->daemon.await_log(
      "the password and certificates of the remote tier of group default stay as they were"));
  EXPECT_EQ(status()["state"], "ready");
}

TEST_F(RotatedPassword, BringsBackATierThatWasRefused) {
  start_store(two_passwords());
  machine_ = std::make_unique<remote_machine>(daemon_options{.more = section(secret("third\nkv\n"))});
  ASSERT_TRUE(machine_->daemon.await_log("is out of service"));
  reload("second");
  ASSERT_TRUE(machine_->daemon.await_log("is in service again"));
}

} // namespace
} // namespace terrace::e2e
