// A remote tier whose values are encrypted: machines of a realm share them, and who reads, changes or moves them in the store gains
// nothing.
#include "command_line.hpp"
#include "remote_fixture.hpp"
#include "resp_door.hpp"

#include "tests/support/scrape.hpp"

namespace terrace::e2e {
namespace {

class RemoteEncryption : public RemoteStores {
 protected:
  std::string encrypted(const std::string& more = "") const {
    return section("demotion = \"write_through\"\nencrypt = true\n" + more);
  }
  static std::unique_ptr<remote_machine> machine(const daemon_options& with) {
    auto made = std::make_unique<remote_machine>(with);
    made->await_store();
    return made;
  }
  void start_two() {
    start_store();
    a_ = machine({.more = encrypted()});
    b_ = machine({.more = encrypted()});
  }
  static void store(const remote_machine& at, const std::vector<digest>& chain) {
    EXPECT_EQ(at.client->store(chain), chain.size());
    ASSERT_TRUE(at.finds_all(chain, on_remote));
  }
  std::vector<std::string> keys() {
    const std::string all =
        resp_client(store_->socket())
            .call({"EVAL", "return table.concat(redis.call('keys', 'terrace/t1/*/*/*/*'), ' ')", "0"});
    return words_of(all);
  }
  std::string value(const std::string& key) { return resp_client(store_->socket()).call({"GET", key}); }

  struct seen_by_others {
    size_t values = 0;  ///< that have bytes of an object in them
    size_t keys = 0;    ///< that have a digest in them
    size_t headers = 0; ///< that have a digest in their header
  };
  /// What somebody finds who reads all of the store and knows what he looks for.
  seen_by_others seen(const std::vector<digest>& chain) {
    seen_by_others found;
    std::vector<uint8_t> content(object_bytes);
    for (const std::string& key : keys()) {
      const std::string raw = value(key);
      EXPECT_EQ(raw.size(), 256 + object_bytes);
      for (const digest& chunk : chain) {
        fill_content(chunk, content);
        const std::string_view all(reinterpret_cast<const char*>(content.data()), content.size());
        bool has_some = false;
        for (size_t at = 0; at < all.size(); at += all.size() / 64)
          has_some |= raw.find(all.substr(at, 16)) != std::string::npos;
        found.values += has_some ? 1 : 0;
        found.keys += key.find(to_hex(chunk).substr(0, 16)) != std::string::npos ? 1 : 0;
        const std::string_view name(reinterpret_cast<const char*>(chunk.bytes.data()), 8);
        found.headers += raw.substr(0, 256).find(name) != std::string::npos ? 1 : 0;
      }
    }
    return found;
  }

  std::unique_ptr<remote_machine> a_, b_;
};

TEST_F(RemoteEncryption, TheStoreSeesNoByteOfTheObjectsAndNoDigest) {
  start_store();
  auto chain = chain_of(1, 3), plain = chain_of(2, 3);
  a_ = machine({.more = encrypted()});
  store(*a_, chain);
  auto hidden = seen(chain);
  EXPECT_EQ(hidden.values, 0U);
  EXPECT_EQ(hidden.keys, 0U);
  EXPECT_EQ(hidden.headers, 0U);
  b_ = machine({.more = section()});
  store(*b_, plain);
  auto shown = seen(plain); // what is not encrypted is found by the same search
  EXPECT_EQ(shown.values, 3U);
  EXPECT_EQ(shown.keys, 3U);
  EXPECT_EQ(shown.headers, 3U);
}

TEST_F(RemoteEncryption, AnotherRealmKeyFindsNothing) {
  start_store();
  a_ = machine({.more = encrypted()});
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  make_key(folder_ / "other", 'o');
  std::string other = encrypted();
  other.replace(other.find(key_file()), key_file().size(), folder_ / "other");
  b_ = machine({.more = other});
  EXPECT_EQ(b_->found(chain), 0U);
  store(*b_, chain);
  EXPECT_EQ(keys().size(), 8U);
  for (const auto* each : {a_.get(), b_.get()}) {
    chill(*each, chain);
    EXPECT_EQ(each->client->load_and_check(chain), 4U) << "each has its own";
  }
}

TEST_F(RemoteEncryption, AClearHolds) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  auto cleared = (*b_->client)->admin().clear(&b_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_TRUE(a_->daemon.await_log("was cleared by another machine"));
  EXPECT_TRUE(a_->finds_none(chain));
  EXPECT_EQ(a_->client->store(chain), 4U) << "under another key";
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(RemoteEncryption, AnOperatorsEvictionRemovesValues) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  auto gone =
      (*a_->client)
          ->admin()
          .evict({.in = a_->client->space(), .what = client::prefix::of_digests(chain), .tiers = on_remote},
                 patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  EXPECT_TRUE(eventually([&] { return keys().empty(); }));
}

TEST_F(RemoteEncryption, OutlivesItsDaemons) {
  start_store();
  a_ = machine({.more = encrypted()});
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  a_->restart();
  EXPECT_EQ(a_->client->load_and_check(chain), 4U) << "the writer's random number is in the store";
}

TEST_F(RemoteEncryption, AnObjectOfManyPartsComesBack) {
  start_store();
  const std::string door = folder_ / "door.sock";
  a_ = machine({.more = encrypted() + resp_section(door)});
  const std::string large = value_of(5 * mebibyte + 77, 1), empty;
  resp_client redis(door);
  EXPECT_EQ(redis.call({"SET", "large", large}), "OK");
  EXPECT_EQ(redis.call({"SET", "small", "x"}), "OK");
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").objects == 2; }));
  EXPECT_EQ(ask_store({"DBSIZE"}), 8) << "with the token of the realm";
  occupy(*a_->client, 100, objects_in(remote_host_memory) - 1);
  EXPECT_EQ(leased_objects(*a_->client, 0), 0U);
  EXPECT_TRUE(redis.call({"GET", "large"}) == large);
  EXPECT_EQ(redis.call({"GET", "small"}), "x");
}

TEST_F(RemoteEncryption, AWriterThatIsFasterThanTheStoreWaitsForIt) {
  start_two();
  std::vector<std::vector<digest>> all;
  for (uint64_t seed = 1; seed <= 24; ++seed)
    EXPECT_EQ(a_->client->store(all.emplace_back(chain_of(seed, 4))), 4U);
  for (const auto& each : all)
    ASSERT_TRUE(eventually([&] { return b_->found(each) == 4 || a_->client->load_and_check(each) > 4; }));
  for (const auto& each : all)
    EXPECT_EQ(b_->client->load_and_check(each), 4U);
}

// ---- what others do to values ----

TEST_F(RemoteEncryption, AValueThatWasChangedIsAMissWithItsReason) {
  start_store();
  a_ = machine({.more = encrypted()});
  struct {
    const char* what;
    const char* script;
    const char* reason;
    bool removed;
  } cases[] = {
      {"a byte of the payload", "redis.call('setrange', k, 5000, string.char(255 - string.byte(v, 5001)))",
       "not_authentic", true},
      {"the last byte", "redis.call('setrange', k, #v - 1, string.char(255 - string.byte(v, #v)))",
       "not_authentic", true},
      {"the tag", "redis.call('setrange', k, 170, string.char(255 - string.byte(v, 171)))", "damaged", true},
      {"the nonce", "redis.call('setrange', k, 160, string.char(255 - string.byte(v, 161)))", "damaged",
       true},
      {"the version", "redis.call('setrange', k, 8, string.char(9))", "other_version", false},
      {"all of it", "redis.call('set', k, string.rep('x', #v))", "not_ours", false},
      {"cut", "redis.call('set', k, string.sub(v, 1, #v - 1))", "other_length", false},
      {"only the header", "redis.call('set', k, string.sub(v, 1, 256))", "other_length", false},
      {"only the payload", "redis.call('set', k, string.sub(v, 257))", "other_length", false},
      {"empty", "redis.call('set', k, '')", "other_length", false},
      {"extended", "redis.call('append', k, 'x')", "other_length", false},
  };
  uint64_t seed = 1;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    auto chain = chain_of(seed++, 1);
    store(*a_, chain);
    chill(*a_, chain);
    const uint64_t before = misses(*a_, c.reason);
    change(c.script);
    EXPECT_EQ(a_->client->load_and_check(chain), 0U);
    EXPECT_EQ(misses(*a_, c.reason), before + 1);
    if (c.removed) {
      EXPECT_TRUE(eventually([&] { return keys().empty(); }));
    }
    ask_store(
        {"EVAL",
         "for _, k in ipairs(redis.call('keys', 'terrace/t1/*/*/*/*')) do redis.call('del', k) end return 1",
         "0"});
  }
  EXPECT_NE(a_->client->tier("remote").notice.find(" written; the last: "), std::string::npos);
}

TEST_F(RemoteEncryption, ValuesThatWereSwappedAreMisses) {
  start_store();
  a_ = machine({.more = encrypted()});
  auto chain = chain_of(1, 2);
  store(*a_, chain);
  chill(*a_, chain);
  const auto both = keys();
  ASSERT_EQ(both.size(), 2U);
  ask_store(
      {"EVAL",
       "local one, other = redis.call('get', KEYS[1]), redis.call('get', KEYS[2]) redis.call('set', KEYS[1], "
       "other) redis.call('set', KEYS[2], one) return 1",
       "2", both[0], both[1]});
  EXPECT_EQ(a_->client->load_and_check(chain), 0U);
  EXPECT_EQ(misses(*a_, "other_object"), 2U);
  EXPECT_TRUE(eventually([&] { return keys().empty(); })) << "they are removed";
}

TEST_F(RemoteEncryption, AValueWithoutEncryptionInTheirPlaceIsAMiss) {
  start_store();
  a_ = machine({.more = encrypted()});
  const uint16_t port = test::free_port();
  auto chain = chain_of(1, 1);
  store(*a_, chain);
  chill(*a_, chain);
  const auto of_encrypted = keys();
  ASSERT_EQ(of_encrypted.size(), 1U);
  b_ = machine({.metrics = "127.0.0.1:" + std::to_string(port), .more = section()});
  store(*b_, chain);
  chill(*b_, chain);
  auto of_plain = keys();
  ASSERT_EQ(of_plain.size(), 2U);
  std::erase(of_plain, of_encrypted[0]);
  const std::string sealed = value(of_encrypted[0]), open = value(of_plain[0]);
  ask_store({"EVAL", "redis.call('set', KEYS[1], ARGV[2]) redis.call('set', KEYS[2], ARGV[1]) return 1", "2",
             of_encrypted[0], of_plain[0], sealed, open});
  EXPECT_EQ(a_->client->load_and_check(chain), 0U) << "it takes nothing that is not encrypted";
  EXPECT_EQ(misses(*a_, "other_encryption"), 1U);
  EXPECT_EQ(b_->client->load_and_check(chain), 0U) << "nor does the other take what is";
  EXPECT_EQ(test::number_behind(
                test::scrape(port),
                "terrace_remote_misses_total{group=\"default\",tier=\"remote\",reason=\"other_encryption\"}"),
            1);
  EXPECT_TRUE(eventually([&] { return keys().empty(); })) << "both are removed";
}

// ---- groups and operators ----

TEST_F(RemoteEncryption, AnIsolatedGroupMayHaveIt) {
  start_store();
  a_ = machine({.more = encrypted(), .isolated = true});
  b_ = machine({.more = encrypted(), .isolated = true});
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(RemoteEncryption, AnOperatorSeesWhetherValuesAreEncrypted) {
  start_store();
  a_ = machine({.more = encrypted()});
  b_ = machine({.more = section()});
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "status"})["remotes"].at(0)["encrypted"], true);
  EXPECT_EQ(answer_of(b_->daemon, {"remote", "status"})["remotes"].at(0)["encrypted"], false);
  const auto text = terrace(a_->daemon, {"remote", "status"}).out;
  EXPECT_NE(text.find("encrypted (AES-256-GCM)"), std::string::npos) << text;
  EXPECT_NE(terrace(b_->daemon, {"remote", "status"}).out.find("not encrypted"), std::string::npos);
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "probe"})["works"], true);
}

TEST_F(RemoteEncryption, ASweepKnowsWhatIsInUse) {
  start_store();
  a_ = machine({.more = encrypted()});
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "sweep"})["current"], 4);
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "sweep"})["removed"], 4);
  EXPECT_TRUE(keys().empty());
}

} // namespace
} // namespace terrace::e2e
