// A remote tier behind a plugin: its processes, and its files. What it promises as other kinds do is in remote_contract_test.cpp.
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
  std::string section(const std::string& plugin = "fs") const {
    return "[[remote]]\naddress = \"plugin://" + plugin + "?path=" + store() + "\"\nrealm_key_file = \"" +
           (folder_ / "realm").string() + "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n";
  }
  void start_two() {
    for (auto* each : {&a_, &b_}) {
      *each = std::make_unique<remote_machine>(daemon_options{.more = section()});
      (*each)->await_store();
    }
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
  remote_machine alone({.more = section("ceph")});
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
