// [[remote]]: remote tiers.
#include "settings_support.hpp"

#include "remote/store_address.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

const std::string address = "[[remote]]\naddress = \"10.0.0.7:6379\"\n";
const std::string at = address + "realm_key_file = \"/etc/terrace/realm\"\n";

const std::string tls =
    "[[remote]]\naddress = \"rediss://10.0.0.7:6380\"\nrealm_key_file = \"/etc/terrace/realm\"\n";

TEST(RemoteSettings, ThereIsNoneByDefault) { EXPECT_TRUE(parse("")->remote.empty()); }

TEST(RemoteSettings, AreRead) {
  auto parsed = parse("[[listen]]\npath = \"/a\"\ngroup = \"one\"\n[[listen]]\npath = \"/b\"\n"
                      "[[remote]]\naddress = \"/run/valkey.sock\"\ngroup = \"one\"\n"
                      "password_file = \"/etc/terrace/valkey\"\nprefix = \"team-a/\"\nlifetime = \"2h\"\n"
                      "realm_key_file = \"/etc/terrace/other\"\nlookup_budget = \"5ms\"\ncompress = true\n"
                      "demotion = \"write_through\"\nwrite_budget = \"200MiB/s, 2TiB/day\"\n" +
                      at);
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  ASSERT_EQ(parsed->remote.size(), 2u);
  const remote_options& one = parsed->remote[0];
  EXPECT_EQ(one.address, "/run/valkey.sock");
  EXPECT_EQ(one.group, "one");
  EXPECT_EQ(one.password_file, "/etc/terrace/valkey");
  EXPECT_EQ(one.prefix, "team-a/");
  EXPECT_EQ(one.lifetime, std::chrono::hours(2));
  EXPECT_EQ(one.demotion, "write_through");
  EXPECT_EQ(one.realm_key_file, "/etc/terrace/other");
  EXPECT_EQ(one.lookup_budget, std::chrono::milliseconds(5));
  EXPECT_TRUE(one.compress);
  EXPECT_EQ(one.write_budget, "200MiB/s, 2TiB/day");
  const remote_options& other = parsed->remote[1];
  EXPECT_FALSE(other.compress);
  EXPECT_EQ(other.group, "default");
  EXPECT_EQ(other.lookup_budget, std::chrono::milliseconds(2));
  EXPECT_EQ(other.demotion, "selective");
  EXPECT_FALSE(other.encrypt);
}

TEST(RemoteSettings, MayBeThreeOfAGroupWithPrefixesOfTheirOwn) {
  const std::string second = at + "prefix = \"second\"\n", third = at + "prefix = \"third\"\n";
  auto parsed = parse(at + second + third);
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->remote.size(), 3u);
  auto refused = parse(at + second + third + at + "prefix = \"fourth\"\n");
  ASSERT_FALSE(refused);
  EXPECT_NE(render_problems(refused.error()).find("at most three [[remote]] sections for a group"),
            std::string::npos)
      << render_problems(refused.error());
  EXPECT_TRUE(parse("[[listen]]\npath = \"/a\"\n[[listen]]\npath = \"/b\"\ngroup = \"other\"\n" + at + at +
                    "group = \"other\"\n"))
      << "stores of different groups may have the same";
}

TEST(RemoteSettings, MayEncryptAndThenBeOfAnIsolatedGroup) {
  auto parsed = parse("[[listen]]\npath = \"/a\"\nisolated = true\n" + at + "encrypt = true\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_TRUE(parsed->remote[0].encrypt);
}

TEST(RemoteSettings, MayAskForTls) {
  auto parsed = parse(tls + "tls_ca_file = \"/ca.pem\"\ntls_client_file = \"/c.pem\"\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->remote[0].tls_ca_file, "/ca.pem");
  EXPECT_EQ(parsed->remote[0].tls_client_file, "/c.pem");
  EXPECT_TRUE(parse(tls));
}

TEST(RemoteSettings, MayNameNodesOfAClusterOrSentinels) {
  const std::string key = "realm_key_file = \"/etc/terrace/realm\"\n", ca = "tls_ca_file = \"/ca.pem\"\n";
  EXPECT_TRUE(parse("[[remote]]\naddress = \"cluster://10.0.0.7:6379,10.0.0.8:6379\"\n" + key));
  EXPECT_TRUE(parse("[[remote]]\naddress = \"cluster+tls://10.0.0.7:6379?name=cache.example\"\n" + key + ca));
  auto parsed = parse("[[remote]]\naddress = \"sentinel+tls://10.0.0.7:26379/kv\"\n" + key + ca +
                      "sentinel_password_file = \"/etc/terrace/sentinel\"\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->remote[0].sentinel_password_file, "/etc/terrace/sentinel");
}

TEST(RemoteSettings, MayNameABucket) {
  if (!remote::knows_buckets())
    GTEST_SKIP() << "this build has no libcurl";
  auto parsed = parse("[[remote]]\naddress = \"s3+tls://s3.example/kv-cache?region=eu-1\"\n"
                      "realm_key_file = \"/etc/terrace/realm\"\ntls_ca_file = \"/ca.pem\"\n");
  ASSERT_TRUE(parsed) << render_problems(parsed.error());
  EXPECT_EQ(parsed->remote[0].address, "s3+tls://s3.example/kv-cache?region=eu-1");
}

TEST(RemoteSettings, EachMistakeIsNamed) {
  struct {
    std::string text;
    const char* problem;
  } cases[] = {
      {"[[remote]]\n", "remote[0].address is missing"},
      {"[[remote]]\naddress = \"valkey\"\n", "expected a port behind the host; fix: write valkey:6379"},
      {address, "remote[0].realm_key_file is missing; expected the file with the key"},
      {address + "realm_key_file = \"realm\"\n", "an absolute path"},
      {at + "lookup_budget = \"2s\"\n", "lookup_budget"},
      {at + "prefix = \"a b\"\n", "at most 64 letters"},
      {at + "password_file = \"valkey\"\n", "an absolute path"},
      {"[[remote]]\naddress = \"cluster://10.0.0.7:6379?reads=any\"\n",
       "remote[0].address is \"cluster://10.0.0.7:6379?reads=any\""},
      {"[[remote]]\naddress = \"cluster://10.0.0.7:6379?reads=any\"\n",
       "expected replicas behind reads=; fix: write cluster://10.0.0.7:6379?reads=replicas"},
      {"[[remote]]\naddress = \"10.0.0.7:6379?reads=replicas\"\n", "only clusters have reads="},
      {"[[remote]]\naddress = \"cluster://10.0.0.7\"\n",
       "remote[0].address is \"cluster://10.0.0.7\"; expected a port behind the host in 10.0.0.7; fix: write "
       "10.0.0.7:6379"},
      {"[[remote]]\naddress = \"cluster://10.0.0.7:6379\"\ntls_ca_file = \"/ca.pem\"\n", "cluster+tls://"},
      {at + "sentinel_password_file = \"/s\"\n", "but the address names no sentinels"},
      {at + "sentinel_password_file = \"s\"\n", "an absolute path"},
      {at + "tls_ca_file = \"/ca.pem\"\n",
       "remote[0].tls_ca_file is \"/ca.pem\", but the address asks for no TLS"},
      {at + "tls_client_file = \"/c.pem\"\n", "write rediss:// in front of the address"},
      {tls + "tls_ca_file = \"ca.pem\"\n", "an absolute path"},
      {tls + "tls_client_file = \"c.pem\"\n", "an absolute path"},
      {"[[remote]]\naddress = \"rediss:///run/valkey.sock\"\n", "a host with a port behind rediss://"},
      {"[[remote]]\naddress = \"s3://10.0.0.7:9000\"\n",
       remote::knows_buckets() ? "s3://10.0.0.7:9000/BUCKET" : "libcurl4-openssl-dev"},
      {"[[remote]]\naddress = \"s3://10.0.0.7:9000/kv-cache\"\ntls_ca_file = \"/ca.pem\"\n",
       remote::knows_buckets() ? "write s3+tls:// in front of the address" : "libcurl4-openssl-dev"},
      {"[[remote]]\naddress = \"plugin://fs?path\"\n", "plugin://fs?path=/mnt/kv&bytes=1TiB"},
      {"[[remote]]\naddress = \"plugin://fs?path=/a\"\npassword_file = \"/p\"\n",
       "but the address names a plugin"},
      {at + "user = \"kv\"\n", "second line of password_file"},
      {at + "group = \"other\"\n", "which no socket has"},
      {at + at, "as is that of another [[remote]]"},
      {"[[listen]]\npath = \"/a\"\nisolated = true\n" + at, "which is isolated"},
      {"[[listen]]\npath = \"/a\"\nisolated = true\n" + at, "add `encrypt = true` to the section"},
      {address + "encrypt = true\n", "remote[0].realm_key_file is missing, and `encrypt` derives its keys "
                                     "from it; expected the file with the key"},
      {at + "encrypt = \"yes\"\n", "encrypt"},
      {at + "compress = 1\n", "compress"},
      {"[[remote]]\naddress = \"plugin://fs?path=/a\"\nrealm_key_file = \"/k\"\ncompress = true\n",
       "let the plugin compress what it keeps"},
      {at + "demotion = \"off\"\n", "one of selective, write_through, write_back"},
      {at + "lifetime = \"1s\"\n", "lifetime"},
      {at + "write_budget = \"200MiB\"\n",
       "remote[0].write_budget is \"200MiB\", which has neither \"/s\" nor \"/day\" behind a size"},
      {at + "write_budget = \"1MiB/s, 2MiB/s\"\n", "write \"200MiB/s\", \"2TiB/day\" or"},
      {at + "write_budget = \"50MB/s\"\n",
       "unknown unit 'MB'; expected a size for each second, a day, or both; "
       "fix: write \"50MiB/s\"\n"},
      {at + "write_budget = 5\n", "write_budget"},
      {at + "bytes = 5\n", "set maxmemory of the server"},
      {"[remote]\naddress = \"/a\"\n", "write [[remote]] with double brackets"},
  };
  for (const auto& c : cases) {
    auto found = problems_of(c.text);
    EXPECT_NE(found.find(c.problem), std::string::npos) << c.text << "\n" << found;
  }
  const auto password = problems_of("[[remote]]\naddress = \"rediss://kv:secret@10.0.0.7:6380\"\n");
  EXPECT_NE(password.find(
                "is \"rediss://...@10.0.0.7:6380\"; expected a host with a port, and no user or password"),
            std::string::npos)
      << password;
  EXPECT_EQ(password.find("secret"), std::string::npos) << password;
  std::string many;
  for (int i = 0; i < 65; ++i)
    many += at;
  EXPECT_NE(problems_of(many).find("has 65 sections"), std::string::npos);
}

} // namespace
} // namespace terrace
