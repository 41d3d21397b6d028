// A remote tier behind a plugin: what one machine stored the others load, bit for bit, and what a plugin does wrong costs misses only.
#include "command_line.hpp"
#include "remote_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace terrace::e2e {
namespace remote_plugin_test {

class RemotePlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PYTHONPATH", (folder_.path() + ":" + test::program("PLUGIN_PATH")).c_str(), 1);
    std::filesystem::create_directory(store());
    write_file(folder_ / "realm", std::string(32, 'k'));
    ASSERT_EQ(::chmod((folder_ / "realm").c_str(), 0600), 0);
  }
  void TearDown() override { ::unsetenv("PYTHONPATH"); }

  std::string store() const { return folder_ / "kv"; }
  std::string section(const std::string& more = "", const std::string& plugin = "fs") const {
    return "[[remote]]\naddress = \"plugin://" + plugin + "?path=" + store() + "\"\nrealm_key_file = \"" +
           (folder_ / "realm").string() + "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n" + more;
  }
  static std::unique_ptr<remote_machine> machine(const std::string& more) {
    auto made = std::make_unique<remote_machine>(daemon_options{.more = more});
    made->await_store();
    return made;
  }
  void start_two(const std::string& more = "", const std::string& plugin = "fs") {
    a_ = machine(section(more, plugin));
    b_ = machine(section(more, plugin));
  }
  static void store(const remote_machine& at, const std::vector<digest>& chain) {
    EXPECT_EQ(at.client->store(chain), chain.size());
    ASSERT_TRUE(at.finds_all(chain, on_remote));
  }
  /// The files of values, without tokens.
  std::vector<std::string> values() const {
    std::vector<std::string> all;
    for (const auto& each : std::filesystem::recursive_directory_iterator(store()))
      if (each.is_regular_file() && each.file_size() > 4'096)
        all.push_back(each.path());
    return all;
  }
  static std::string reason(const remote_machine& of) { return of.client->tier("remote").reason; }
  static std::string notice(const remote_machine& of) { return of.client->tier("remote").notice; }
  static bool serves(const remote_machine& of) { return of.client->tier("remote").state == "ready"; }
  /// The processes of plugins of this daemon.
  static std::vector<int> processes(const remote_machine& of) {
    std::vector<int> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
      const std::string number = each.path().filename();
      if (!std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c) != 0; }))
        continue;
      std::ifstream status(each.path() / "status"), line(each.path() / "cmdline");
      const std::string text((std::istreambuf_iterator<char>(status)), {}),
          words((std::istreambuf_iterator<char>(line)), {});
      if (text.find("\nPPid:\t" + std::to_string(of.daemon.pid()) + "\n") != std::string::npos &&
          words.find("terrace.remote") != std::string::npos)
        all.push_back(std::stoi(number));
    }
    return all;
  }

  temporary_folder folder_{"/tmp"};
  std::unique_ptr<remote_machine> a_, b_;
};

TEST_F(RemotePlugin, WhatOneMachineStoredAnotherLoadsUntilItIsCleared) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  EXPECT_EQ(values().size(), 4U);
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(b_->client->tier("remote").bytes_read, 4 * object_bytes);
  EXPECT_EQ(b_->client->tier("remote").bytes_written, 0U) << "what is there is not written again";
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_EQ(a_->found(chain), 0U);
  ASSERT_TRUE(eventually([&] {
    b_->found(chain_of(9, 1)); // a lookup that asks the store reads the token, if it is older than 5 seconds
    return b_->found(chain) == 0;
  })) << "host memory is cleared as well";
  store(*b_, chain_of(2, 2));
  ASSERT_TRUE(a_->finds_all(chain_of(2, 2)));
  EXPECT_EQ(a_->client->load_and_check(chain_of(2, 2)), 2U);
  EXPECT_EQ(a_->daemon.terminate(), 0);
}

TEST_F(RemotePlugin, EncryptedValuesAreShared) {
  start_two("encrypt = true\n");
  auto plain = machine(section());
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(plain->found(chain), 0U);
}

TEST_F(RemotePlugin, ItsStateIsShownAndItCanBeProbed) {
  a_ = machine(section());
  auto shown = answer_of(a_->daemon, {"remote", "status"})["remotes"].at(0);
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_EQ(shown["server"], "fs");
  EXPECT_EQ(shown["version"], "1");
  EXPECT_EQ(shown["tells_changes"], false);
  auto probed = terrace(a_->daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 0) << probed.out << probed.err;
  auto swept = terrace(a_->daemon, {"remote", "sweep"});
  EXPECT_NE(swept.exit_code, 0);
  EXPECT_NE((swept.out + swept.err).find("a plugin cannot list its keys"), std::string::npos)
      << swept.out << swept.err;
}

TEST_F(RemotePlugin, AKilledProcessIsStartedAgainAlone) {
  start_two();
  auto chain = chain_of(1, 8);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  const auto before = processes(*b_);
  ASSERT_EQ(before.size(), 3U) << "for questions, reads and writes";
  for (int pid : before)
    ::kill(pid, SIGKILL);
  EXPECT_TRUE(b_->daemon.await_log("the plugin fs: it was ended by signal 9"));
  EXPECT_EQ(b_->client->store(chain_of(2, 2)), 2U) << "the daemon serves meanwhile";
  EXPECT_EQ(b_->client->load_and_check(chain_of(2, 2)), 2U);
  b_->await_store();
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 8; }));
}

TEST_F(RemotePlugin, ACrashInAReadIsAMiss) {
  start_two("", "faulty");
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  write_file(store() + "/fault", "crash");
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  EXPECT_NE(reason(*b_).find("it was ended by signal 9"), std::string::npos) << reason(*b_);
  std::filesystem::remove(store() + "/fault");
  b_->await_store();
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 4; }));
}

TEST_F(RemotePlugin, OneThatHangsIsKilledAndUsedAgain) {
  start_two("", "faulty");
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  write_file(store() + "/fault", "hang");
  EXPECT_EQ(b_->client->load_and_check(chain), 0U) << "and the load ends";
  EXPECT_NE(reason(*b_).find("it does not answer"), std::string::npos) << reason(*b_);
  std::filesystem::remove(store() + "/fault");
  b_->await_store();
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 4; }));
}

TEST_F(RemotePlugin, WrongBytesAndLengthsAreNeverServed) {
  start_two("", "faulty");
  int number = 0;
  for (const std::string fault : {"wrong", "short", "liar", "garbage"}) {
    auto chain = chain_of(++number, 4);
    store(*a_, chain);
    ASSERT_TRUE(b_->finds_all(chain)) << fault;
    write_file(store() + "/fault", fault);
    EXPECT_EQ(b_->client->load_and_check(chain), 0U) << fault;
    std::filesystem::remove(store() + "/fault");
    a_->await_store();
    b_->await_store();
  }
}

TEST_F(RemotePlugin, DamagedFilesAreMisses) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  for (const std::string& file : values()) {
    std::string text = read_file(file);
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
    write_file(file, text);
  }
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  EXPECT_TRUE(eventually([&] { return values().size() < 4; })) << "and are removed";
}

TEST_F(RemotePlugin, OneThatIsNotThereIsToldWithTheFix) {
  remote_machine alone({.more = section("", "ceph")});
  EXPECT_TRUE(alone.daemon.await_log("there is no plugin ceph: expected fs, "));
  EXPECT_NE(reason(alone).find("there is no plugin ceph"), std::string::npos) << reason(alone);
  EXPECT_EQ(alone.client->store(chain_of(1, 2)), 2U);
  EXPECT_EQ(alone.client->load_and_check(chain_of(1, 2)), 2U);
  auto shown = terrace(alone.daemon, {"remote", "status"});
  EXPECT_NE(shown.out.find("there is no plugin ceph"), std::string::npos) << shown.out;
  EXPECT_EQ(alone.daemon.terminate(), 0);
}

} // namespace remote_plugin_test
} // namespace terrace::e2e
