// A real redis-server and the daemons that have a remote tier on it.
#pragma once

#include "command_line.hpp"
#include "resp_client.hpp"
#include "workload.hpp"

#include "tests/support/redis_process.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace terrace::e2e {

constexpr uint32_t on_remote = 1U << static_cast<unsigned>(tier_kind::remote);
constexpr uint64_t remote_host_memory = 32 * mebibyte;

/// `all` has them with a space between.
inline std::vector<std::string> words_of(const std::string& all) {
  std::vector<std::string> each;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(' ', begin), all.size());
    each.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return each;
}

/// A daemon with a client. More daemons of a test are further machines.
struct remote_machine {
  explicit remote_machine(const daemon_options& options, client::space_spec spec = test_space())
      : daemon(options), spec_(std::move(spec)) {
    connect();
  }

  void connect() { client = std::make_unique<tester>(daemon.socket(), "tester", 8 * object_bytes, spec_); }
  void restart() {
    client.reset();
    EXPECT_EQ(daemon.terminate(), 0);
    daemon.start();
    connect();
    await_store();
  }
  void await_store() const {
    ASSERT_TRUE(eventually([&] { return client->tier("remote").state == "ready"; }));
  }
  uint32_t found(const std::vector<digest>& chain, uint32_t tiers = 0) const {
    return client->lookup(chain, false, tiers).found_chunks;
  }
  bool finds_all(const std::vector<digest>& chain, uint32_t tiers = 0) const {
    return eventually([&] { return found(chain, tiers) == chain.size(); });
  }
  bool finds_none(const std::vector<digest>& chain, uint32_t tiers = 0) const {
    return eventually([&] { return found(chain, tiers) == 0; });
  }
  /// Fills host memory with others.
  void leave_host(const std::vector<digest>& chain) const {
    occupy(*client, 100, objects_in(remote_host_memory));
    EXPECT_EQ(leased_objects(*client, 0), 0U);
    EXPECT_EQ(found(chain, on_host), 0U);
  }

  daemon_under_test daemon;
  std::unique_ptr<tester> client;

 private:
  client::space_spec spec_;
};

// ---- what a machine has of its store ----

inline nlohmann::json store_status(const remote_machine& of) {
  return answer_of(of.daemon, {"remote", "status"})["remotes"].at(0);
}
inline uint64_t misses(const remote_machine& of, const std::string& reason) {
  const auto shown = store_status(of)["misses"];
  return shown.contains(reason) ? shown[reason].get<uint64_t>() : 0;
}
/// Leaves the chain only in the store.
inline void chill(const remote_machine& at, const std::vector<digest>& chain) {
  auto gone =
      (*at.client)
          ->admin()
          .evict({.in = at.client->space(), .what = client::prefix::of_digests(chain), .tiers = on_host},
                 patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  ASSERT_EQ(at.found(chain, on_host), 0U);
}

class RemoteStores : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::redis_process::installed())
      GTEST_SKIP() << "no redis-server on this machine; install the package `redis-server`";
    make_key(key_file(), 'k');
  }

  std::string key_file() const { return folder_ / "realm"; }
  static void make_key(const std::string& file, char byte) {
    write_file(file, std::string(32, byte));
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  }

  void start_store(const std::vector<std::string>& options = {}) { store_.emplace(folder_.path(), options); }
  void stop_store() {
    store_.reset();
    std::filesystem::remove(folder_ / "redis.sock");
  }
  /// By default lookups have enough time on a busy machine of a test.
  std::string section(const std::string& more = "demotion = \"write_through\"\n",
                      const std::string& lookup_budget = "1s") const {
    return "[[remote]]\naddress = \"" + folder_.path() + "/redis.sock\"\nrealm_key_file = \"" + key_file() +
           "\"\nlookup_budget = \"" + lookup_budget + "\"\n" + more;
  }
  /// For stores that do not answer: clients do not wait for them as long as those of other tests do.
  std::string impatient_section() const { return section("demotion = \"write_through\"\n", "30ms"); }
  /// Returns the number in the reply of the store.
  int64_t ask_store(const std::vector<std::string_view>& words) {
    return std::stoll(resp_client(store_->socket()).call(words).substr(sizeof "(integer)"));
  }

  /// Runs the script with each key of an object, and its value: `k` and `v`.
  void change(const std::string& script) {
    const std::string each = "for _, k in ipairs(redis.call('keys', 'terrace/t1/*/*/*/*')) do local v = "
                             "redis.call('get', k) " +
                             script + " end return 1";
    ASSERT_EQ(ask_store({"EVAL", each, "0"}), 1);
  }

  temporary_folder folder_{"/tmp"};
  std::optional<test::redis_process> store_;
};

} // namespace terrace::e2e
