#include "remote/store_address.hpp"

#include "remote/store_commands.hpp"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>

namespace terrace::remote {
namespace {

std::string told(const wrong_address& why) { return "expected " + why.expected + "; " + why.fix; }

TEST(StoreAddress, IsAPathOrANumericAddress) {
  auto path = parse_store_address("/run/valkey.sock").value();
  EXPECT_TRUE(path.at_path());
  EXPECT_STREQ(reinterpret_cast<const sockaddr_un*>(&path.bytes)->sun_path, "/run/valkey.sock");
  auto four = parse_store_address("10.0.0.7:6379").value();
  EXPECT_FALSE(four.at_path());
  EXPECT_EQ(four.text, "10.0.0.7:6379");
  EXPECT_EQ(four.length, sizeof(sockaddr_in));
  auto* in = reinterpret_cast<const sockaddr_in*>(&four.bytes);
  EXPECT_EQ(ntohs(in->sin_port), 6379);
  EXPECT_EQ(ntohl(in->sin_addr.s_addr), 0x0a000007u);
  auto six = parse_store_address("[fd00::7]:65535").value();
  EXPECT_EQ(six.bytes.ss_family, AF_INET6);
  EXPECT_EQ(ntohs(reinterpret_cast<const sockaddr_in6*>(&six.bytes)->sin6_port), 65535);
  EXPECT_TRUE(parse_store_address("/" + std::string(106, 'p')));
}

TEST(StoreAddress, MayHaveTheNameOfAHost) {
  auto named = parse_store_address("valkey-0.cache.example:6379").value();
  EXPECT_EQ(named.host_name, "valkey-0.cache.example");
  EXPECT_EQ(named.port, 6379);
  EXPECT_EQ(named.length, 0U);
  EXPECT_TRUE(named.is_place());
  EXPECT_FALSE(named.at_path());
  EXPECT_TRUE(named.same_place(parse_store_address("valkey-0.cache.example:6379").value()));
  EXPECT_FALSE(named.same_place(parse_store_address("valkey-0.cache.example:6380").value()));
  EXPECT_FALSE(named.same_place(parse_store_address("valkey-1.cache.example:6379").value()));
  EXPECT_FALSE(named.same_place(parse_store_address("10.0.0.7:6379").value()));
  EXPECT_EQ(parse_store_address("rediss://cache.example:6380").value().name, "cache.example")
      << "its certificate is for the same name";
  EXPECT_EQ(parse_store_address("rediss://cache.example:6380?name=other").value().name, "other");
  const auto cluster = parse_store_address("cluster+tls://a.example:1,10.0.0.7:2").value();
  EXPECT_FALSE(cluster.is_place());
  EXPECT_EQ(cluster.guides[0].host_name, "a.example");
  EXPECT_EQ(cluster.guides[1].host_name, "");
  EXPECT_EQ(parse_store_address("sentinel://cache:26379/kv").value().guides[0].host_name, "cache");
  EXPECT_EQ(parse_store_address("4cache:6379").value().host_name, "4cache");
  EXPECT_TRUE(parse_store_address("localhost:6379"));
}

TEST(StoreAddress, MayAskForTls) {
  auto four = parse_store_address("rediss://10.0.0.7:6380").value();
  EXPECT_TRUE(four.tls);
  EXPECT_EQ(four.name, "10.0.0.7");
  EXPECT_EQ(four.text, "rediss://10.0.0.7:6380");
  auto six = parse_store_address("rediss://[fd00::7]:6380").value();
  EXPECT_TRUE(six.tls);
  EXPECT_EQ(six.name, "fd00::7");
  auto named = parse_store_address("rediss://10.0.0.7:6380?name=cache.example").value();
  EXPECT_EQ(named.name, "cache.example");
  EXPECT_EQ(ntohs(reinterpret_cast<const sockaddr_in*>(&named.bytes)->sin_port), 6380);
  EXPECT_FALSE(parse_store_address("10.0.0.7:6379").value().tls);
}

TEST(StoreAddress, MayNameSentinels) {
  const std::string text = "sentinel://10.0.0.7:26379,[fd00::7]:26380/kv-cache";
  auto address = parse_store_address(text);
  ASSERT_TRUE(address) << told(address.error());
  EXPECT_EQ(address->text, text);
  EXPECT_EQ(address->length, 0U) << "they tell where the server is";
  EXPECT_EQ(address->primary, "kv-cache");
  ASSERT_EQ(address->guides.size(), 2U);
  EXPECT_EQ(address->guides[0].text, "10.0.0.7:26379");
  EXPECT_EQ(address->guides[1].name, "fd00::7");
  for (const char* wrong :
       {"sentinel://", "sentinel:///kv", "sentinel://10.0.0.7:26379", "sentinel://10.0.0.7:26379/",
        "sentinel://10.0.0.7/kv", "sentinel://10.0.0.7:26379,/kv", "sentinel://cache/kv"}) {
    auto refused = parse_store_address(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_FALSE(refused.error().fix.empty()) << wrong;
  }
}

TEST(StoreAddress, MayNameNodesOfACluster) {
  const std::string text = "cluster://10.0.0.7:6379,[fd00::7]:6380";
  auto address = parse_store_address(text);
  ASSERT_TRUE(address) << told(address.error());
  EXPECT_EQ(address->at, store_address::kind::cluster);
  EXPECT_EQ(address->text, text);
  EXPECT_EQ(address->length, 0U);
  ASSERT_EQ(address->guides.size(), 2U);
  EXPECT_EQ(address->guides[1].text, "[fd00::7]:6380");
  EXPECT_TRUE(parse_store_address("cluster://10.0.0.7:6379"));
  std::string many = "cluster://10.0.0.7:1";
  for (size_t i = 1; i < store_address::guides_max; ++i)
    many += ",10.0.0.7:1";
  EXPECT_TRUE(parse_store_address(many));
  for (const std::string& wrong :
       {std::string("cluster://"), std::string("cluster://10.0.0.7"), std::string("cluster://10.0.0.7:6379,"),
        std::string("cluster://node"), std::string("cluster://10.0.0.7:6379/0"), many + ",10.0.0.7:1"}) {
    auto refused = parse_store_address(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_FALSE(refused.error().fix.empty()) << wrong;
  }
}

TEST(StoreAddress, MayAskForTlsOfAllWhoAreNamed) {
  auto cluster = parse_store_address("cluster+tls://10.0.0.7:6379,10.0.0.8:6379").value();
  EXPECT_TRUE(cluster.tls);
  EXPECT_EQ(cluster.name, "") << "each server has its own";
  EXPECT_EQ(cluster.guides[1].name, "10.0.0.8");
  auto named = parse_store_address("sentinel+tls://10.0.0.7:26379/kv?name=cache.example").value();
  EXPECT_TRUE(named.tls);
  EXPECT_EQ(named.primary, "kv");
  EXPECT_EQ(named.name, "cache.example");
  EXPECT_EQ(named.guides[0].name, "cache.example");
  EXPECT_FALSE(parse_store_address("cluster://10.0.0.7:6379").value().tls);
  for (const char* wrong : {"cluster://10.0.0.7:6379?name=a", "sentinel://10.0.0.7:1/kv?name=a",
                            "cluster+tls://10.0.0.7:6379?name=", "rediss+tls://10.0.0.7:1"})
    EXPECT_FALSE(parse_store_address(wrong)) << wrong;
}

TEST(StoreAddress, MayAskForReadsFromReplicas) {
  EXPECT_FALSE(parse_store_address("cluster://10.0.0.7:6379").value().reads_replicas);
  for (const std::string text :
       {"cluster://10.0.0.7:6379,10.0.0.8:6379?reads=replicas",
        "cluster+tls://10.0.0.7:6379,10.0.0.8:6379?reads=replicas",
        "cluster+tls://10.0.0.7:6379,10.0.0.8:6379?name=cache.example&reads=replicas",
        "cluster+tls://10.0.0.7:6379,10.0.0.8:6379?reads=replicas&name=cache.example"}) {
    auto address = parse_store_address(text);
    ASSERT_TRUE(address) << text << ": " << told(address.error());
    EXPECT_TRUE(address->reads_replicas) << text;
    EXPECT_FALSE(address->of_replica);
    EXPECT_EQ(address->text, text);
    ASSERT_EQ(address->guides.size(), 2U);
    const bool named = text.find("name=") != std::string::npos;
    EXPECT_EQ(address->guides[1].name, named ? "cache.example" : "10.0.0.8");
  }
  EXPECT_EQ(parse_store_address("plugin://shelf?reads=replicas").value().plugin_options, "reads=replicas")
      << "a plugin knows its own options";
}

std::string refusal(const std::string& text) {
  auto refused = parse_store_address(text);
  return refused ? text + " is accepted" : told(refused.error());
}

TEST(StoreAddress, AnUnknownOptionTellsWhichThereAre) {
  EXPECT_EQ(refusal("cluster+tls://10.0.0.7:6379?nmae=a"),
            "expected no options but name= and reads= for this kind of address; leave nmae=a out");
  EXPECT_EQ(refusal("cluster://10.0.0.7:6379?db=1"),
            "expected no options but reads= for this kind of address; leave db=1 out");
  EXPECT_EQ(refusal("rediss://10.0.0.7:6379?name=a&db=1"),
            "expected no options but name= for this kind of address; leave db=1 out");
  EXPECT_EQ(refusal("cluster://10.0.0.7:6379?reads=replicas&"),
            "expected no options but reads= for this kind of address; leave the '?' or '&' at the end out");
  for (const char* plain : {"10.0.0.7:6379?", "/run/redis.sock?db=1", "sentinel://10.0.0.7:26379/kv?db=1"})
    EXPECT_TRUE(refusal(plain).starts_with(
        "expected an address without '?', because this kind has no options; leave"))
        << refusal(plain);
}

TEST(StoreAddress, AnOptionOfAnotherKindTellsWhoseItIs) {
  for (const char* other : {"10.0.0.7:6379?reads=replicas", "rediss://10.0.0.7:6379?name=a&reads=replicas",
                            "sentinel://10.0.0.7:26379/kv?reads=replicas", "/run/redis.sock?reads=replicas"})
    EXPECT_TRUE(refusal(other).ends_with("leave reads=replicas out: only clusters have reads="))
        << refusal(other);
  EXPECT_EQ(refusal("cluster://10.0.0.7:6379?name=a"),
            "expected no options but reads= for this kind of address; leave "
            "name=a out: only servers with TLS have name=");
  EXPECT_TRUE(refusal("10.0.0.7:6379?region=a").ends_with("leave region=a out: only buckets have region="));
  if (knows_buckets()) {
    EXPECT_EQ(
        refusal("s3+tls://host/kv-cache?name=a"),
        "expected no options but region= for this kind of address; leave name=a out: only servers with TLS "
        "have name=");
  }
}

TEST(StoreAddress, AnOptionIsGivenOnce) {
  EXPECT_EQ(refusal("cluster://10.0.0.7:6379?reads=replicas&reads=replicas"),
            "expected reads= once; leave one of the two out");
  EXPECT_EQ(refusal("rediss://10.0.0.7:6379?name=a&name=b"), "expected name= once; leave one of the two out");
  if (knows_buckets()) {
    EXPECT_EQ(refusal("s3://host/kv-cache?region=a&region=a"),
              "expected region= once; leave one of the two out");
  }
}

TEST(StoreAddress, AnOptionHasAValueThatIsAllowed) {
  for (const char* value : {"", "replica", "replicas ", "primaries", "any&name=cache.example"})
    EXPECT_EQ(refusal(std::string("cluster+tls://10.0.0.7:6379?reads=") + value),
              "expected replicas behind reads=; write cluster://10.0.0.7:6379?reads=replicas, or leave "
              "reads= out to "
              "read primaries alone")
        << value;
  for (const char* value : {"", "a b", "a=b"})
    EXPECT_TRUE(refusal(std::string("rediss://10.0.0.7:6379?name=") + value)
                    .starts_with("expected the name of a host that the certificates are for behind name=;"))
        << value;
  EXPECT_TRUE(refusal("rediss://10.0.0.7:6379?name").starts_with("expected the name of a host"))
      << "no value";
  if (knows_buckets()) {
    for (const char* value : {"", "A"})
      EXPECT_TRUE(
          refusal(std::string("s3://host/kv-cache?region=") + value).starts_with("expected a region of"));
  }
}

TEST(StoreAddress, OfABucket) {
  if (!knows_buckets())
    GTEST_SKIP() << "this build has no libcurl";
  const auto plain = parse_store_address("s3://10.0.0.7:9000/kv-cache").value();
  EXPECT_EQ(plain.at, store_address::kind::bucket);
  EXPECT_EQ(plain.host, "10.0.0.7:9000");
  EXPECT_EQ(plain.bucket, "kv-cache");
  EXPECT_EQ(plain.region, "us-east-1");
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.text, "s3://10.0.0.7:9000/kv-cache");
  const auto far =
      parse_store_address("s3+tls://s3.eu-central-1.amazonaws.com:443/kv.x?region=eu-central-1").value();
  EXPECT_TRUE(far.tls);
  EXPECT_EQ(far.host, "s3.eu-central-1.amazonaws.com") << "as HTTP clients name it";
  EXPECT_EQ(far.region, "eu-central-1");
  EXPECT_EQ(parse_store_address("s3://[fd00::7]:80/kv-cache").value().host, "[fd00::7]");
  EXPECT_EQ(parse_store_address("s3+tls://[fd00::7]:80/kv-cache").value().host, "[fd00::7]:80");
  for (const char* wrong : {"s3://", "s3://bucket", "s3://host/", "s3://host:0/kv-cache",
                            "s3://host:/kv-cache", "s3://host:x/kv-cache", "s3://[fd00::7/kv-cache",
                            "s3://[host]/kv-cache", "s3://us:er@host/kv-cache"}) {
    auto refused = parse_store_address(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(told(refused.error()).find("s3://10.0.0.7:9000/BUCKET"), std::string::npos)
        << told(refused.error());
  }
}

TEST(StoreAddress, SaysWhatIsWrongWithTheNameOfABucket) {
  if (!knows_buckets())
    GTEST_SKIP() << "this build has no libcurl";
  const std::pair<const char*, const char*> mistakes[] = {
      {"s3://host/b1", "3 to 63 characters, and it has 2"},
      {"s3://host/b1?region=a", "3 to 63 characters, and it has 2"},
      {"s3://host/kv-cache/", "leave the last '/' out"},
      {"s3+tls://host/kv-cache/?region=a", "leave the last '/' out"},
      {"s3://host/kv-cache/deeper", "prefix"},
      {"s3://host/kv-cache/deeper/", "prefix"},
      {"s3://host/kv cache", "letters, digits"},
  };
  for (const auto& [address, told_of] : mistakes) {
    const auto refused = parse_store_address(address);
    ASSERT_FALSE(refused) << address;
    EXPECT_NE(told(refused.error()).find(told_of), std::string::npos) << told(refused.error());
  }
  EXPECT_FALSE(parse_store_address("s3://host/" + std::string(64, 'b')));
  EXPECT_TRUE(parse_store_address("s3://host/" + std::string(63, 'b')));
  EXPECT_TRUE(parse_store_address("s3://host/abc"));
}

TEST(StoreAddress, OfABucketNeedsLibcurl) {
  if (knows_buckets())
    GTEST_SKIP() << "this build has libcurl";
  const auto refused = parse_store_address("s3://10.0.0.7:9000/kv-cache");
  ASSERT_FALSE(refused);
  EXPECT_NE(told(refused.error()).find("libcurl4-openssl-dev"), std::string::npos);
}

TEST(StoreAddress, MayNameAPlugin) {
  auto fs = parse_store_address("plugin://fs?path=/mnt/kv%20cache&bytes=1TiB&empty=");
  ASSERT_TRUE(fs) << told(fs.error());
  EXPECT_EQ(fs->at, store_address::kind::plugin);
  EXPECT_EQ(fs->plugin, "fs");
  EXPECT_EQ(fs->plugin_options, "path=/mnt/kv%20cache&bytes=1TiB&empty=");
  EXPECT_EQ(fs->length, 0U);
  EXPECT_TRUE(fs->is_bulk());
  auto own = parse_store_address("plugin://company.kv_store2");
  ASSERT_TRUE(own) << told(own.error());
  EXPECT_EQ(own->plugin, "company.kv_store2");
  EXPECT_EQ(own->plugin_options, "");
}

TEST(StoreAddress, OfAPluginIsAModuleWithOptions) {
  for (const std::string& text :
       {std::string("plugin://"), std::string("plugin://?a=b"), std::string("plugin://2fs"),
        std::string("plugin://fs."), std::string("plugin://.fs"), std::string("plugin://a..b"),
        std::string("plugin://a/b"), std::string("plugin://-m"), std::string("plugin://fs?"),
        std::string("plugin://fs?path"), std::string("plugin://fs?=x"), std::string("plugin://fs?a=b&"),
        std::string("plugin://fs?a=b&c"), std::string("plugin://fs?a=b c"), std::string("plugin://fs?a=b\n"),
        std::string("plugin://fs?a=\x80"), "plugin://" + std::string(129, 'f'),
        "plugin://fs?a=" + std::string(1'023, 'b')}) {
    auto parsed = parse_store_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(told(parsed.error()).find("plugin://fs?path=/mnt/kv&bytes=1TiB"), std::string::npos);
  }
}

TEST(StoreAddress, SaysWhatIsWrongWithThisOne) {
  struct {
    const char *text, *said;
  } constexpr cases[] = {
      {"", "expected a host with a port; write it as in 10.0.0.7:6379 or cache.example:6379"},
      {"cache.example", "expected a port behind the host; write cache.example:6379"},
      {"cache.example:", "expected a port behind the host; write cache.example:6379"},
      {"10.0.0.7:65536", "expected a port of 1 to 65535 behind the host; write 10.0.0.7:6379"},
      {"10.0.0.300:6379",
       "expected the name of a host, of letters, digits, '.', '-' and '_', or four numbers of at "
       "most 255; write it as in 10.0.0.7:6379 or cache.example:6379"},
      {"fd00::7", "expected an IPv6 address in brackets; write [fd00::7]:6379"},
      {"fd00::7:6379", "expected an IPv6 address in brackets; write [fd00::7]:6379"},
      {"[fd00::7]", "expected a port behind the host; write [fd00::7]:6379"},
      {"[10.0.0.7]:6379", "expected an IPv6 address in the brackets; write it as in [fd00::7]:6379"},
      {"redis://10.0.0.7:6379", "expected an address without redis://; write 10.0.0.7:6379"},
      {"https://s3.example/kv",
       "expected s3:// for a bucket, s3+tls:// with TLS; write s3+tls://s3.example/kv"},
      {"redisss://10.0.0.7:6380", "write rediss://10.0.0.7:6380"},
      {"ftp://10.0.0.7:1", "write 10.0.0.7:6379 for a Valkey or Redis server"},
      {"rediss:///run/valkey.sock", "write the path alone: a Unix socket needs no TLS"},
      {"rediss://cache.example", "write cache.example:6380"},
      {"rediss://kv:secret@10.0.0.7:6380", "no user or password; write the password into the first line"},
      {"run/valkey.sock", "nothing behind it"},
      {"cluster://", "some of them; write them as in cluster://10.0.0.7:6379,10.0.0.8:6379"},
      {"cluster://10.0.0.7:6379,node", "expected a port behind the host in node; write node:6379"},
      {"cluster://10.0.0.7:6379,", "expected a host with a port between the commas"},
      {"cluster://10.0.0.7:6379/0", "nothing behind it in 10.0.0.7:6379/0"},
      {"sentinel://cache/kv", "expected a port behind the host in cache; write cache:26379"},
      {"sentinel://10.0.0.7:26379",
       "expected the name of the primary that the sentinels watch, behind a '/'; "
       "write it as in sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME"},
  };
  for (const auto& each : cases) {
    auto refused = parse_store_address(each.text);
    ASSERT_FALSE(refused) << each.text;
    EXPECT_NE(told(refused.error()).find(each.said), std::string::npos)
        << each.text << ": " << told(refused.error());
    EXPECT_LT(told(refused.error()).size(), 200U) << each.text;
    EXPECT_EQ(told(refused.error()).find("secret"), std::string::npos);
  }
  EXPECT_NE(told(parse_store_address("/" + std::string(107, 'p')).error()).find("and it has 108"),
            std::string::npos);
}

TEST(StoreAddress, OfAServerOfAnotherKindTellsWhichSchemeFits) {
  using enum server_mode;
  const auto plain = parse_store_address("10.0.0.7:6379").value();
  const auto tls = parse_store_address("rediss://10.0.0.7:6380?name=cache").value();
  const auto nodes = parse_store_address("cluster+tls://10.0.0.7:6379").value();
  const auto sentinels = parse_store_address("sentinel://10.0.0.7:26379/kv").value();
  EXPECT_EQ(mistaken_scheme(plain, plain.text, standalone, false), "");
  EXPECT_EQ(mistaken_scheme(plain, plain.text, unknown, false), "");
  EXPECT_EQ(mistaken_scheme(plain, plain.text, server_mode::cluster, false),
            "it is a node of a cluster: write cluster://10.0.0.7:6379 as address");
  EXPECT_EQ(mistaken_scheme(tls, tls.text, server_mode::cluster, false),
            "it is a node of a cluster: write cluster+tls://10.0.0.7:6380 as address");
  EXPECT_EQ(mistaken_scheme(plain, "/run/kv.sock", sentinel, false),
            "it is a sentinel: write sentinel://HOST:PORT/NAME as address, with the name of the primary that "
            "it watches");
  EXPECT_EQ(mistaken_scheme(nodes, "10.0.0.7:6379", server_mode::cluster, true), "");
  EXPECT_NE(
      mistaken_scheme(nodes, "10.0.0.7:26379", sentinel, true).find("sentinel+tls://10.0.0.7:26379/NAME"),
      std::string::npos);
  EXPECT_EQ(mistaken_scheme(nodes, "10.0.0.7:6379", standalone, true), "")
      << "it may know the slots all the same";
  EXPECT_EQ(mistaken_scheme(sentinels, "10.0.0.7:26379", sentinel, true), "");
  EXPECT_NE(mistaken_scheme(sentinels, "10.0.0.7:6379 (sentinel://10.0.0.7:26379/kv)", sentinel, false), "")
      << "a sentinel names a server";
  EXPECT_EQ(mistaken_scheme(sentinels, "10.0.0.7:6379", server_mode::cluster, true),
            "it is a node of a cluster: write cluster://10.0.0.7:6379 as address");
  EXPECT_EQ(scheme_of_no_guide(sentinels, "10.0.0.7:6379"),
            "it is a server of its own, and no sentinel: write 10.0.0.7:6379 as address");
  EXPECT_EQ(scheme_of_no_guide(nodes, "10.0.0.7:6379"),
            "it is a server of its own, and no node of a cluster: write rediss://10.0.0.7:6379 as address");
}

TEST(StoreAddress, AnythingElseIsRefused) {
  for (const std::string& text : {std::string(""),
                                  std::string("valkey.example"),
                                  std::string("valkey.example:"),
                                  std::string("10.0.0.300:6379"),
                                  std::string("10.0.0:6379"),
                                  std::string(".example:6379"),
                                  std::string("-a:6379"),
                                  std::string("cache example:6379"),
                                  std::string(254, 'a') + ":6379",
                                  std::string("10.0.0.7"),
                                  std::string("10.0.0.7:"),
                                  std::string("10.0.0.7:0"),
                                  std::string("10.0.0.7:65536"),
                                  std::string("10.0.0.7:6379x"),
                                  std::string("fd00::7:6379"),
                                  std::string("[fd00::7]"),
                                  std::string("[]:6379"),
                                  std::string("[10.0.0.7]:6379"),
                                  "/" + std::string(107, 'p'),
                                  std::string("rediss:///run/valkey.sock"),
                                  std::string("rediss://"),
                                  std::string("redis://10.0.0.7:6379"),
                                  std::string("10.0.0.7:6379?name=cache"),
                                  std::string("rediss://10.0.0.7:6379?name="),
                                  std::string("rediss://10.0.0.7:6379?name=a b"),
                                  std::string("rediss://10.0.0.7:6379?db=1"),
                                  std::string("rediss://user:secret@10.0.0.7:6379"),
                                  std::string("/a\0b", 4)}) {
    auto parsed = parse_store_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_FALSE(parsed.error().expected.empty());
    EXPECT_FALSE(parsed.error().fix.empty());
  }
}

} // namespace
} // namespace terrace::remote
