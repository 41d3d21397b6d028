// Quotas of tenants: bounds hold, shares stay, and no salt is ever shown.
#include "command_line.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

namespace terrace::e2e {
namespace quota_test {

using json = nlohmann::json;
using test::child_process;
using test::child_voice;

constexpr uint64_t host_objects = 31; // in the default 32 MiB
constexpr uint64_t each = object_bytes + 4096;
const std::string greedy_salt = "greedy-secret-salt", modest_salt = "modest-secret-salt";

client::space_spec space_with(const std::string& salt) {
  auto spec = test_space();
  spec.salt = salt;
  return spec;
}

/// Greedy may have 8 objects in host memory; 8 of modest's stay.
std::string two_tenants(uint64_t greedy_objects = 8) {
  return "[[quota]]\nname = \"greedy\"\ntenant = \"" + greedy_salt +
         "\"\nhost_max = " + std::to_string(greedy_objects * each) +
         "\n[[quota]]\nname = \"modest\"\ntenant = \"" + modest_salt +
         "\"\nhost_guaranteed = " + std::to_string(8 * each) + "\n";
}

client::tenant_tier tenant(client::connection& by, const std::string& name, uint32_t number = 0,
                           const std::string& tier = "host") {
  auto all = by.admin().quotas(patiently());
  EXPECT_TRUE(all) << all.error().text;
  for (const auto& one : all.value_or(std::vector<client::tenant_status>{}))
    if (one.name == name && one.number == number)
      for (const auto& in : one.tiers)
        if (in.tier == tier)
          return in;
  return {};
}

/// Stores chains of one chunk, one after the other, and checks the bound after each.
void store_many(tester& by, uint64_t seed, size_t count, const std::string& name, uint64_t max_bytes) {
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(by.store(chain_of(seed + i, 1)), 1U);
    EXPECT_LE(tenant(*by, name).used_bytes, max_bytes);
  }
}

size_t present(tester& by, uint64_t seed, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i)
    found += by.lookup(chain_of(seed + i, 1)).found_chunks;
  return found;
}

class Quota : public ::testing::Test {
 protected:
  daemon_under_test daemon_{{.more = two_tenants()}};
};

TEST_F(Quota, ATenantAtItsBoundReplacesItsOwnObjects) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  tester other(daemon_.socket(), "other");
  EXPECT_EQ(other.store(chain_of(1, 4)), 4U);
  store_many(greedy, 100, 20, "greedy", 8 * each);
  EXPECT_EQ(tenant(*greedy, "greedy").used_bytes, 8 * each);
  EXPECT_EQ(present(greedy, 112, 8), 8U) << "the latest ones";
  EXPECT_EQ(present(greedy, 100, 12), 0U);
  EXPECT_EQ(other.load_and_check(chain_of(1, 4)), 4U) << "nobody else lost anything, and there was room";
  EXPECT_EQ(greedy.load_and_check(chain_of(119, 1)), 1U);
}

TEST_F(Quota, AGuaranteedShareSurvivesOthers) {
  tester modest(daemon_.socket(), "modest", 8 * object_bytes, space_with(modest_salt));
  tester other(daemon_.socket(), "other");
  for (uint64_t i = 0; i < 12; ++i)
    modest.store(chain_of(1 + i, 1));
  for (uint64_t i = 0; i < 3 * host_objects; ++i)
    EXPECT_EQ(other.store(chain_of(1000 + i, 1)), 1U);
  EXPECT_EQ(tenant(*modest, "modest").used_bytes, 8 * each) << "what was beyond the share has gone";
  EXPECT_EQ(present(modest, 1, 12), 8U);
  for (uint64_t i = 0; i < 20; ++i)
    EXPECT_EQ(modest.store(chain_of(500 + i, 1)), 1U) << "it may replace its own";
  for (uint64_t i = 0; i < host_objects; ++i)
    EXPECT_EQ(other.store(chain_of(2000 + i, 1)), 1U);
  EXPECT_EQ(tenant(*modest, "modest").used_bytes, 8 * each);
}

TEST_F(Quota, ARequestThatCannotFitIsRefusedAndNamesTheQuota) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  ASSERT_TRUE(greedy->admin().set_quota({"greedy", "host", client::quota_amount{each / 2, false}, {}, false},
                                        patiently()));
  auto chain = chain_of(1, 1);
  auto refused = greedy->store(greedy.store_of(chain), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_NE(refused.error().text.find("quota greedy allows"), std::string::npos) << refused.error().text;
  EXPECT_EQ(refused.error().text.find("secret"), std::string::npos);
  EXPECT_EQ(tenant(*greedy, "greedy").refused, 1U);
  ASSERT_TRUE(greedy->admin().set_quota({"greedy", "host", {}, {}, true}, patiently()));
  EXPECT_EQ(greedy.store(chain), 1U) << "without a bound";
}

TEST_F(Quota, ALongStoreGoesThroughABoundThatIsSmallerThanIt) {
  tester greedy(daemon_.socket(), "greedy", 16 * object_bytes, space_with(greedy_salt));
  auto chain = chain_of(1, 14);
  auto stored = greedy->store(greedy.store_of(chain), patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 14U);
  EXPECT_LE(tenant(*greedy, "greedy").used_bytes, 8 * each);
}

TEST_F(Quota, WhatIsHeldMakesTheTenantWaitAndNobodyElse) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  tester other(daemon_.socket(), "other");
  auto chain = chain_of(1, 8);
  EXPECT_EQ(greedy.store(chain), 8U);
  {
    auto held = greedy.lookup(chain, true);
    ASSERT_EQ(held.found_chunks, 8U);
    auto more = chain_of(2, 1);
    auto refused = greedy->store(greedy.store_of(more), patiently());
    ASSERT_FALSE(refused) << "only the end of leases could make room";
    EXPECT_EQ(refused.error().code, errc::no_space);
    EXPECT_NE(refused.error().text.find("nothing of the tenant can be evicted"), std::string::npos)
        << refused.error().text;
    EXPECT_EQ(other.store(chain_of(3, 1)), 1U);
  }
  EXPECT_TRUE(stored_when_free(greedy, chain_of(2, 1)));
}

TEST_F(Quota, IsChangedByTheVerbAndTakesEffectAtOnce) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  store_many(greedy, 1, 8, "greedy", 8 * each);
  auto changed =
      answer_of(daemon_, {"quota", "set", "greedy", "--tier", "host", "--max", std::to_string(3 * each)});
  ASSERT_EQ(changed["tenants"].size(), 2U);
  EXPECT_EQ(changed["tenants"][0]["tiers"][0]["max_bytes"], 3 * each);
  EXPECT_TRUE(eventually([&] { return tenant(*greedy, "greedy").used_bytes == 3 * each; }));
  EXPECT_EQ(present(greedy, 6, 3), 3U) << "the latest ones stay";
  auto text = terrace(daemon_, {"quota"});
  EXPECT_NE(text.out.find("modest"), std::string::npos) << text.out;
  auto percent = answer_of(daemon_, {"quota", "set", "greedy", "--tier", "host", "--max", "50%"});
  EXPECT_EQ(percent["tenants"][0]["tiers"][0]["max_bytes"], 16 * mebibyte);
}

TEST_F(Quota, BadChangesAreRefusedWithTheReason) {
  auto says = [&](const std::vector<std::string>& words, const std::string& part) {
    auto refused = terrace(daemon_, words);
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  };
  says({"quota", "set", "nobody", "--tier", "host", "--max", "1MiB"}, "one of: greedy, modest");
  says({"quota", "set", "greedy", "--tier", "disk", "--max", "1MiB"}, "no disk tier");
  says({"quota", "set", "greedy", "--tier", "tape", "--max", "1MiB"}, "tape");
  says({"quota", "set", "greedy", "--tier", "host", "--max", "101%"}, "0% to 100%");
  says({"quota", "set", "greedy", "--tier", "host", "--guaranteed", "100%"}, "at most max");
  says({"quota", "set", "modest", "--tier", "host", "--guaranteed", "33MiB"}, "at most the tier together");
  says({"quota", "set", "greedy", "--tier", "host"}, "--max or --guaranteed");
  says({"quota", "drop", "greedy"}, "expected nothing, or 'set NAME'");
}

TEST_F(Quota, IsReadAgainAtSighup) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  store_many(greedy, 1, 8, "greedy", 8 * each);
  daemon_.configure({.more = two_tenants(2)});
  daemon_.signal(SIGHUP);
  ASSERT_TRUE(daemon_.await_log("quota: 2 quotas -> 2 quotas, in force now"));
  EXPECT_TRUE(eventually([&] { return tenant(*greedy, "greedy").used_bytes == 2 * each; }));
  daemon_.configure({});
  daemon_.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] {
    auto all = greedy->admin().quotas(patiently());
    return all && all->empty();
  }));
  for (uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(greedy.store(chain_of(100 + i, 1)), 1U);
  EXPECT_EQ(present(greedy, 100, 10), 10U) << "no bound any more";
  EXPECT_EQ(daemon_.log().find("secret"), std::string::npos);
}

TEST_F(Quota, NothingThatIsShownHasASalt) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  greedy.store(chain_of(1, 2));
  auto status = answer_of(daemon_, {"status"});
  EXPECT_EQ(status["groups"][0]["tenants"][0]["name"], "greedy");
  EXPECT_EQ(status["groups"][0]["tenants"][0]["tiers"][0]["used_bytes"], 2 * each);
  EXPECT_EQ(status.dump().find("secret"), std::string::npos);
  EXPECT_EQ(terrace(daemon_, {"status"}).out.find("secret"), std::string::npos);
  EXPECT_NE(terrace(daemon_, {"status"}).out.find("greedy"), std::string::npos);
  EXPECT_EQ(answer_of(daemon_, {"quota"}).dump().find("secret"), std::string::npos);
  EXPECT_EQ(daemon_.log().find("secret"), std::string::npos);
}

TEST(QuotaRule, EachMatchingSaltIsATenantOfItsOwn) {
  uint16_t port = test::free_port();
  std::string quotas =
      "[[quota]]\nname = \"batch\"\nrule = \"batch-*\"\nhost_max = " + std::to_string(2 * each) +
      "\n[[quota]]\nname = \"others\"\nrule = \"*\"\nhost_max = " + std::to_string(3 * each) + "\n";
  daemon_under_test daemon({.metrics = "127.0.0.1:" + std::to_string(port), .more = quotas});
  tester one(daemon.socket(), "one", 8 * object_bytes, space_with("batch-secret-1")),
      two(daemon.socket(), "two", 8 * object_bytes, space_with("batch-secret-2")),
      three(daemon.socket(), "three", 8 * object_bytes, space_with("else-secret")),
      nobody(daemon.socket(), "nobody");
  for (uint64_t i = 0; i < 5; ++i) {
    one.store(chain_of(1 + i, 1));
    two.store(chain_of(101 + i, 1));
    three.store(chain_of(201 + i, 1));
    nobody.store(chain_of(301 + i, 1));
  }
  EXPECT_EQ(tenant(*one, "batch", 1).used_bytes, 2 * each);
  EXPECT_EQ(tenant(*one, "batch", 2).used_bytes, 2 * each);
  EXPECT_EQ(tenant(*one, "batch").used_bytes, 4 * each) << "of the rule";
  EXPECT_EQ(tenant(*one, "others", 1).used_bytes, 3 * each);
  EXPECT_EQ(present(nobody, 301, 5), 5U) << "a space without a salt has no bounds";
  std::string text = test::scrape(port);
  auto has = [&](const std::string& line) { return text.find(line + "\n") != std::string::npos; };
  std::string labels = "{group=\"default\",quota=\"batch\",tier=\"host\"} ";
  EXPECT_TRUE(has("terrace_tenant_used_bytes" + labels + std::to_string(4 * each)) ||
              has("terrace_tenant_used_bytes{group=\"default\",tier=\"host\",quota=\"batch\"} " +
                  std::to_string(4 * each)))
      << text;
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(QuotaDisk, BoundsHoldOnDiskAndAfterARestart) {
  std::string quotas = "[[quota]]\nname = \"greedy\"\ntenant = \"" + greedy_salt +
                       "\"\ndisk_max = " + std::to_string(4 * each) + "\n";
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .disk = "admission = \"always\"\n", .more = quotas});
  ASSERT_TRUE(daemon.await_log("joined"));
  {
    tester greedy(daemon.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
    // Stores one after the other, because a write does not wait for room that other writes take.
    for (uint64_t i = 0; i < 10; ++i) {
      greedy.store(chain_of(1 + i, 1));
      ASSERT_TRUE(
          eventually([&] { return greedy.lookup(chain_of(1 + i, 1), false, on_disk).found_chunks == 1; }));
    }
    EXPECT_EQ(tenant(*greedy, "greedy", 0, "disk").used_bytes, 4 * each);
  }
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester later(daemon.socket(), "greedy", 8 * object_bytes, space_with(greedy_salt));
  EXPECT_EQ(later.load_and_check(chain_of(10, 1)), 1U);
  later.store(chain_of(50, 1));
  EXPECT_TRUE(eventually([&] { return later.lookup(chain_of(50, 1), false, on_disk).found_chunks == 1; }));
  EXPECT_EQ(tenant(*later, "greedy", 0, "disk").used_bytes, 4 * each) << "what the disk brought back counts";
}

TEST(QuotaConfiguration, MistakesAreClearAndContainNoSalt) {
  temporary_folder folder;
  auto check = [&](const std::string& text) {
    write_file(folder / "terraced.toml", "[host]\nbytes = \"32MiB\"\n[disk]\nbytes = 0\n" + text);
    auto done = run({program("TERRACED"), "--check", "--config", folder / "terraced.toml"});
    EXPECT_EQ(done.err.find("secret"), std::string::npos) << done.err;
    return done.exit_code == 0 ? std::string("valid") : done.err;
  };
  std::string one = "[[quota]]\nname = \"a\"\ntenant = \"secret\"\n",
              two = "[[quota]]\nname = \"b\"\ntenant = \"secret-2\"\n";
  auto says = [&](const std::string& text, const std::string& part) {
    auto said = check(text);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  EXPECT_EQ(check(one + "host_max = \"25%\"\nhost_guaranteed = \"1MiB\"\n" + two), "valid");
  says(one + "host_max = \"101%\"\n", "at most \"100%\" of the tier");
  says(one + "host_max = \"lots\"\n", "quota[0].host_max");
  says(one + "tape_max = \"1MiB\"\n", "tiers are host and disk");
  says(one + "disk_max = \"1MiB\"\n", "disk.bytes is 0");
  says(one + "host_guaranteed = \"60%\"\n" + two + "host_guaranteed = \"60%\"\n",
       "quota[1].host_guaranteed makes the guaranteed shares of group 'default'");
  says(one + "host_max = \"1MiB\"\nhost_guaranteed = \"2MiB\"\n", "more than its max");
  says(one + "[[quota]]\nname = \"b\"\ntenant = \"secret\"\n", "quota[1].tenant is that of quota[0]");
  says(one + "[[quota]]\nname = \"a\"\nrule = \"*\"\n", "quota[1].name is that of quota[0]");
  says(one + "rule = \"x*\"\n", "either tenant");
  says("[[quota]]\nname = \"a\"\nrule = \"secret\"\n", "does not end in *");
  says("[[quota]]\ntenant = \"secret\"\n", "quota[0].name");
  says(one + "group = \"else\"\n", "which no socket has");
  says("[quota]\nname = \"a\"\n", "double brackets");
}

TEST(QuotaRights, OtherUsersMayNotSeeOrChangeQuotas) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can run a client as another user";
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  std::string socket = folder / "open.sock";
  daemon_under_test daemon(
      {.listen = "[[listen]]\npath = \"" + socket + "\"\nmode = \"0666\"\nuids = [0, 65534]\n",
       .more = two_tenants()});
  child_process user([&](const child_voice&) {
    if (::setuid(65534) != 0)
      return 2;
    auto connected = client::connection::connect({.path = socket}, patiently());
    if (!connected)
      return 3;
    auto space = connected->open_space(test_space(), patiently());
    if (!space)
      return 4;
    auto chain = chain_of(1, 1);
    client::prompt_request prompt{*space, client::prefix::of_digests(chain), 0, {}};
    auto denied = [](const auto& answer) { return !answer && answer.error().code == errc::denied; };
    return denied(connected->admin().quotas(patiently())) &&
                   denied(connected->admin().set_quota({"greedy", "host", {}, {}, true}, patiently())) &&
                   denied(connected->admin().move(prompt, tier_kind::disk, patiently()))
               ? 0
               : 1;
  });
  EXPECT_EQ(user.wait(), 0);
}

} // namespace quota_test
} // namespace terrace::e2e
