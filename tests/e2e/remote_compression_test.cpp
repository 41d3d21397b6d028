// A remote tier that compresses: values of 16-bit floats take less of the store and come back bit for bit, on machines with and without
// the option, encrypted or not, and in a bucket.
#include "command_line.hpp"
#include "remote_fixture.hpp"

#include "tests/support/s3_process.hpp"
#include "tests/support/scrape.hpp"

namespace terrace::e2e {
namespace remote_compression_test {

using test::s3_process;

client::space_spec float_space(const char* dtype = "bfloat16") {
  auto spec = test_space();
  spec.dtype = dtype;
  return spec;
}

/// Noise whose high bytes have few values, as the floats of KV.
std::vector<uint8_t> floats_of(const digest& chunk) {
  std::vector<uint8_t> made(object_bytes);
  fill_content(chunk, made);
  for (size_t i = 1; i < made.size(); i += 2)
    made[i] = static_cast<uint8_t>(0x3c | (made[i] & 0x83));
  return made;
}

uint32_t store_floats(const remote_machine& at, const std::vector<digest>& chain) {
  for (size_t i = 0; i < chain.size(); ++i)
    std::ranges::copy(floats_of(chain[i]), at.client->piece(i).begin());
  auto stored = (*at.client)->store(at.client->store_of(chain), patiently());
  EXPECT_TRUE(stored) << stored.error().text;
  EXPECT_TRUE(at.finds_all(chain, on_remote));
  return stored ? stored->stored_chunks : 0;
}

uint32_t load_floats(const remote_machine& at, const std::vector<digest>& chain) {
  auto loaded = (*at.client)->load(at.client->load_of(chain), patiently());
  EXPECT_TRUE(loaded) << loaded.error().text;
  if (!loaded)
    return 0;
  for (uint32_t i = 0; i < loaded->delivered_chunks; ++i)
    EXPECT_TRUE(std::ranges::equal(floats_of(chain[i]), at.client->piece(i))) << "chunk " << i;
  return loaded->delivered_chunks;
}

std::unique_ptr<remote_machine> float_machine(const std::string& more, const char* dtype = "bfloat16",
                                              const std::string& metrics = "") {
  auto made =
      std::make_unique<remote_machine>(daemon_options{.metrics = metrics, .more = more}, float_space(dtype));
  made->await_store();
  return made;
}

class RemoteCompression : public RemoteStores {
 protected:
  std::string with(const std::string& more) const { return section("demotion = \"write_through\"\n" + more); }
  std::string compressing(const std::string& more = "") const { return with("compress = true\n" + more); }

  /// The sum of all values of objects, with their headers.
  int64_t stored_bytes() {
    return ask_store(
        {"EVAL",
         "local sum = 0 for _, k in ipairs(redis.call('keys', 'terrace/t1/*/*/*/*')) do sum = sum + "
         "redis.call('strlen', k) end return sum",
         "0"});
  }
  std::unique_ptr<remote_machine> a_, b_;
};

TEST_F(RemoteCompression, WhatOneMachineCompressedOthersLoadBitForBit) {
  start_store();
  a_ = float_machine(compressing());
  auto chain = chain_of(1, 8);
  EXPECT_EQ(store_floats(*a_, chain), 8U);
  const auto raw = static_cast<int64_t>(8 * object_bytes);
  EXPECT_LT(stored_bytes(), raw * 3 / 4);
  EXPECT_GT(stored_bytes(), raw / 2);
  b_ = float_machine(with("")); // reading takes no option
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(load_floats(*b_, chain), 8U);
  chill(*a_, chain);
  EXPECT_EQ(load_floats(*a_, chain), 8U) << "its own";
  EXPECT_EQ(store_status(*b_)["misses"].size(), 0U);
}

TEST_F(RemoteCompression, AMachineThatCompressesReadsWhatOthersWrote) {
  start_store();
  a_ = float_machine(with(""));
  b_ = float_machine(compressing());
  auto chain = chain_of(1, 4);
  store_floats(*a_, chain);
  EXPECT_EQ(stored_bytes(), static_cast<int64_t>(4 * (object_bytes + 256)))
      << "without the option nothing changes";
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(load_floats(*b_, chain), 4U);
}

TEST_F(RemoteCompression, OtherTypesAreWrittenAsTheyAre) {
  start_store();
  a_ = float_machine(compressing(), "uint8");
  auto chain = chain_of(1, 4);
  store_floats(*a_, chain);
  EXPECT_EQ(stored_bytes(), static_cast<int64_t>(4 * (object_bytes + 256)));
  chill(*a_, chain);
  EXPECT_EQ(load_floats(*a_, chain), 4U);
}

TEST_F(RemoteCompression, WhatDoesNotBecomeSmallerIsWrittenAsItIs) {
  start_store();
  for (const char* encrypts : {"", "encrypt = true\n"}) {
    SCOPED_TRACE(encrypts);
    a_ = float_machine(compressing(encrypts));
    auto chain = chain_of(1, 4);
    EXPECT_EQ(a_->client->store(chain), 4U) << "noise";
    ASSERT_TRUE(a_->finds_all(chain, on_remote));
    EXPECT_EQ(stored_bytes(), static_cast<int64_t>(4 * (object_bytes + 256)));
    chill(*a_, chain);
    EXPECT_EQ(a_->client->load_and_check(chain), 4U);
    change("redis.call('del', k)");
  }
}

TEST_F(RemoteCompression, ValuesAreCompressedAndThenEncrypted) {
  start_store();
  a_ = float_machine(compressing("encrypt = true\n"));
  b_ = float_machine(with("encrypt = true\n"));
  auto chain = chain_of(1, 8);
  store_floats(*a_, chain);
  EXPECT_LT(stored_bytes(), static_cast<int64_t>(8 * object_bytes * 3 / 4));
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(load_floats(*b_, chain), 8U);
  chill(*b_, chain);
  change("redis.call('setrange', k, 5000, string.char(255 - string.byte(v, 5001)))");
  EXPECT_EQ(load_floats(*b_, chain), 0U);
  EXPECT_GE(misses(*b_, "not_authentic"), 1U);
}

TEST_F(RemoteCompression, AValueThatWasChangedIsAMissWithItsReason) {
  start_store();
  a_ = float_machine(compressing());
  struct {
    const char* what;
    const char* script;
    const char* reason;
    bool removed;
  } cases[] = {
      {"a byte", "redis.call('setrange', k, 5000, string.char(255 - string.byte(v, 5001)))", "wrong_payload",
       true},
      {"its length", "redis.call('setrange', k, 100, string.char(255 - string.byte(v, 101)))", "other_length",
       false},
      {"the version", "redis.call('setrange', k, 8, string.char(1))", "other_length", false},
      {"cut", "redis.call('set', k, string.sub(v, 1, #v - 1))", "other_length", false},
      {"only the header", "redis.call('set', k, string.sub(v, 1, 256))", "other_length", false},
      {"extended", "redis.call('append', k, 'x')", "other_length", false},
  };
  uint64_t seed = 1;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    auto chain = chain_of(seed++, 1);
    store_floats(*a_, chain);
    chill(*a_, chain);
    const uint64_t before = misses(*a_, c.reason);
    change(c.script);
    EXPECT_EQ(load_floats(*a_, chain), 0U);
    EXPECT_EQ(misses(*a_, c.reason), before + 1);
    if (c.removed) {
      EXPECT_TRUE(eventually([&] { return stored_bytes() == 0; }));
    }
    change("redis.call('del', k)");
  }
}

TEST_F(RemoteCompression, AnOperatorSeesTheRatio) {
  start_store();
  const uint16_t port = test::free_port();
  a_ = float_machine(compressing(), "bfloat16", "127.0.0.1:" + std::to_string(port));
  store_floats(*a_, chain_of(1, 8));
  const auto shown = store_status(*a_);
  EXPECT_EQ(shown["compressed"], true);
  EXPECT_EQ(shown["written_bytes"], 8 * object_bytes);
  EXPECT_EQ(shown["stored_bytes"], stored_bytes() - 8 * 256);
  const auto text = terrace(a_->daemon, {"remote", "status"}).out;
  EXPECT_NE(text.find("compressed (zstd)"), std::string::npos) << text;
  EXPECT_NE(text.find(", as "), std::string::npos) << text;
  EXPECT_EQ(test::number_behind(test::scrape(port),
                                "terrace_remote_stored_bytes_total{group=\"default\",tier=\"remote\"}"),
            static_cast<double>(stored_bytes() - 8 * 256));
}

class CompressedBucket : public RemoteStores {
 protected:
  void SetUp() override {
    RemoteStores::SetUp();
    if (without_buckets())
      GTEST_SKIP() << "this build has no libcurl; install the package `libcurl4-openssl-dev`";
    write_file(keys_file(), std::string(s3_process::secret_key) + "\n" + s3_process::access_key + "\n");
    ASSERT_EQ(::chmod(keys_file().c_str(), 0600), 0);
  }
  bool without_buckets() const {
    const std::string configuration = folder_ / "probe.toml";
    write_file(configuration, "[[remote]]\naddress = \"s3://127.0.0.1:1/bucket\"\n");
    const auto checked = test::run({test::program("TERRACED"), "--config", configuration, "--check"});
    return (checked.out + checked.err).find("libcurl") != std::string::npos;
  }
  std::string keys_file() const { return folder_ / "keys"; }
  std::string bucket(const std::string& more) const {
    return "[[remote]]\naddress = \"s3://" + bucket_.place() + "\"\nrealm_key_file = \"" + key_file() +
           "\"\npassword_file = \"" + keys_file() +
           "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n" + more;
  }
  s3_process bucket_;
};

TEST_F(CompressedBucket, MachinesShareCompressedValues) {
  for (const std::string encrypts : {"", "encrypt = true\n"}) {
    SCOPED_TRACE(encrypts);
    auto a = float_machine(bucket("compress = true\n" + encrypts)), b = float_machine(bucket(encrypts));
    auto chain = chain_of(1, 6);
    store_floats(*a, chain);
    ASSERT_TRUE(b->finds_all(chain));
    EXPECT_EQ(load_floats(*b, chain), 6U);
    EXPECT_LT(store_status(*a)["stored_bytes"], 6 * object_bytes * 3 / 4);
    EXPECT_EQ(store_status(*b)["misses"].size(), 0U);
  }
}

} // namespace remote_compression_test
} // namespace terrace::e2e
