// The socket for Redis clients, over its socket: what they store, find, replace and remove, and what they must
// not do.
#include "resp_door.hpp"
#include "tests/support/scrape.hpp"

#include <sys/stat.h>

#include <atomic>
#include <thread>

namespace terrace::e2e {
namespace {

TEST_F(RespDoor, StoresFindsReplacesAndRemoves) {
  start();
  resp_client client(door());
  EXPECT_EQ(client.call({"GET", "a"}), "(nil)");
  EXPECT_EQ(client.call({"SET", "a", "one"}), "OK");
  EXPECT_EQ(client.call({"GET", "a"}), "one");
  EXPECT_EQ(client.call({"SET", "a", "another value"}), "OK");
  EXPECT_EQ(client.call({"GET", "a"}), "another value");
  EXPECT_EQ(client.call({"SET", "empty", ""}), "OK");
  EXPECT_EQ(client.call({"GET", "empty"}), "");
  EXPECT_EQ(client.call({"EXISTS", "a", "b", "a", "empty"}), "(integer) 3");
  EXPECT_EQ(client.call({"MSET", "b", "2", "c", "3", "b", "4"}), "OK");
  EXPECT_EQ(client.call({"MGET", "a", "b", "nothing", "c"}), "[another value, 4, (nil), 3]");
  EXPECT_EQ(client.call({"DBSIZE"}), "(integer) 4");
  EXPECT_EQ(client.call({"DEL", "a", "nothing", "b", "a"}), "(integer) 2");
  EXPECT_EQ(client.call({"GET", "a"}), "(nil)");
  EXPECT_EQ(client.call({"UNLINK", "c"}), "(integer) 1");
  EXPECT_EQ(client.call({"DBSIZE"}), "(integer) 1");
  EXPECT_TRUE(has(client.call({"INFO"}), "db0:keys=1,"));
  std::string key(10'000, 'k');
  EXPECT_EQ(client.call({"SET", key, "long key"}), "OK");
  EXPECT_EQ(client.call({"GET", key}), "long key");
  EXPECT_EQ(client.call({"HELLO", "3"}).substr(0, 8), "[server,");
  EXPECT_EQ(client.call({"GET", "nothing"}), "(nil)");
}

TEST_F(RespDoor, ValuesHaveAnySize) {
  start();
  resp_client client(door());
  unsigned seed = 0;
  for (size_t bytes :
       {1UL, 16383UL, 16384UL, 16385UL, 65536UL, 100'000UL, 1UL << 20, (4UL << 20) + 3, 9UL << 20}) {
    auto value = value_of(bytes, ++seed);
    EXPECT_EQ(client.call({"SET", "k", value}), "OK") << bytes;
    EXPECT_EQ(client.call({"GET", "k"}), value) << bytes;
  }
  auto large = value_of(300'000, 77);
  EXPECT_EQ(client.call({"MSET", "x", "1", "y", large, "z", "3", "w", large}), "OK");
  EXPECT_EQ(client.call({"MGET", "x", "y", "z", "w"}), "[1, " + large + ", 3, " + large + "]");
}

TEST_F(RespDoor, CommandsInOnePieceAreAnsweredInOrder) {
  start();
  resp_client client(door());
  auto large = value_of(200'000, 5);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    std::string key = "k" + std::to_string(i % 16);
    all += resp_call({"SET", key, std::to_string(i)}) + resp_call({"GET", key}) + "PING\r\n" +
           resp_call({"DEL", key, "other"}) + resp_call({"EXISTS", key});
  }
  all += resp_call({"SET", "large", large});
  for (int i = 0; i < 40; ++i)
    all += resp_call({"GET", "large"});
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.reply(), "OK") << i;
    ASSERT_EQ(client.reply(), std::to_string(i));
    ASSERT_EQ(client.reply(), "PONG");
    ASSERT_EQ(client.reply(), "(integer) 1");
    ASSERT_EQ(client.reply(), "(integer) 0");
  }
  EXPECT_EQ(client.reply(), "OK");
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(client.reply(), large) << i;
  sender.join();
}

TEST_F(RespDoor, WhatItDoesNotHaveIsNamed) {
  start();
  resp_client client(door());
  EXPECT_TRUE(has(client.call({"SET", "a", "1", "EX", "10"}), "-ERR expected SET key value"));
  EXPECT_TRUE(has(client.call({"SET", "a", value_of(100'000, 1), "NX"}), "-ERR expected SET key value"));
  EXPECT_EQ(client.call({"GET", "a"}), "(nil)");
  EXPECT_TRUE(has(client.call({"FLUSHALL"}), "-ERR unknown command 'FLUSHALL'"));
  EXPECT_TRUE(has(client.call({"ECHO", value_of(100'000, 1)}), "-ERR a word of 100000 bytes"));
  EXPECT_EQ(client.call({"MSET", "a", "1", "b", value_of(40 << 20, 1), "c", "3"}).substr(0, 4), "-ERR")
      << "no tier is so large";
  EXPECT_EQ(client.call({"MSET", "a", "1", "c", "3"}), "OK"); // the earlier failure is over
  EXPECT_EQ(client.call({"PING"}), "PONG");
  client.send("*1\r\n:1\r\n");
  EXPECT_TRUE(has(client.reply(), "Protocol error"));
  EXPECT_EQ(client.reply(), "(end)");
}

TEST_F(RespDoor, AValueThatCannotFitIsRefusedAndTheConnectionGoesOn) {
  start();
  resp_client client(door());
  EXPECT_EQ(client.call({"SET", "a", value_of(40 << 20, 1)}).substr(0, 1), "-");
  EXPECT_EQ(client.call({"SET", "a", "small"}), "OK");
  EXPECT_EQ(client.call({"GET", "a"}), "small");
}

TEST_F(RespDoor, APasswordIsNeededAndChecked) {
  write_file(folder / "password", "open sesame\n");
  ::chmod((folder / "password").c_str(), 0600);
  start(0, "password_file = \"" + std::string(folder / "password") + "\"\n");
  resp_client client(door());
  EXPECT_TRUE(has(client.call({"GET", "a"}), "-NOAUTH"));
  EXPECT_TRUE(has(client.call({"AUTH", "wrong"}), "-WRONGPASS"));
  EXPECT_TRUE(has(client.call({"SET", "a", value_of(100'000, 1)}), "-NOAUTH"));
  EXPECT_EQ(client.call({"AUTH", "open sesame"}), "OK");
  EXPECT_EQ(client.call({"SET", "a", "1"}), "OK");
  resp_client other(door());
  EXPECT_TRUE(has(other.call({"HELLO", "3", "AUTH", "default", "open sesame"}), "terrace") ||
              has(other.call({"PING"}), "PONG"));
  EXPECT_EQ(other.call({"GET", "a"}), "1");
}

// A guess is answered late, counted and logged, whether alone or in a row; meanwhile others are served.
TEST_F(RespDoor, PasswordsAreNotTriedOneAfterTheOther) {
  write_file(folder / "password", "open sesame\n");
  ::chmod((folder / "password").c_str(), 0600);
  auto with = options(0, "password_file = \"" + std::string(folder / "password") + "\"\n");
  uint16_t port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  start(with);
  auto guesses = [&] {
    return test::number_behind(test::scrape(port), R"(terrace_resp_wrong_passwords_total{group="default"})");
  };
  resp_client guesser(door());
  std::string row;
  for (int i = 0; i < 1000; ++i)
    row += resp_call({"AUTH", "guess " + std::to_string(i)});
  guesser.send(row);
  EXPECT_TRUE(eventually([&] { return guesses() > 0; }));
  resp_client other(door());
  EXPECT_EQ(other.call({"AUTH", "open sesame"}), "OK");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(other.call({"SET", "a", "1"}), "OK");
  EXPECT_LT(guesses(), 1000) << "each waits for the one before";
  EXPECT_TRUE(has(guesser.reply(), "-WRONGPASS"));
  resp_client mistaken(door());
  mistaken.send(resp_call({"HELLO", "3", "AUTH", "default", "wrong"}) + resp_call({"AUTH", "open sesame"}) +
                resp_call({"GET", "a"}));
  EXPECT_TRUE(has(mistaken.reply(), "-WRONGPASS"));
  EXPECT_EQ(mistaken.reply(), "OK") << "what follows is served when the answer has been given";
  EXPECT_EQ(mistaken.reply(), "1");
  EXPECT_TRUE(daemon->await_log("gave a wrong password"));
}

// A client that is still sending when its command has been refused reads why, as redis-py's mget of too many keys.
TEST_F(RespDoor, ACommandOfTooManyWordsIsToldWhy) {
  start();
  resp_client client(door());
  std::vector<std::string_view> words(200'000, "a key of some length");
  words[0] = "MGET";
  client.send(resp_call(words)); // 5 MB, more than sockets hold
  std::string why = client.reply();
  EXPECT_TRUE(has(why, "-ERR Protocol error")) << why;
  client.send_no_more();
  EXPECT_EQ(client.reply(), "(end)");
}

TEST_F(RespDoor, AClientThatEndsInTheMiddleLeavesNothing) {
  start();
  auto large = value_of(8 << 20, 3);
  {
    resp_client client(door());
    auto whole = resp_call({"SET", "large", large});
    client.send(whole.substr(0, whole.size() / 2));
  }
  {
    resp_client client(door());
    client.send("*2\r\n$3\r\nGET\r\n$5\r\nlar");
    client.send_no_more();
    EXPECT_EQ(client.reply(), "(end)");
  }
  resp_client client(door());
  EXPECT_EQ(client.call({"GET", "large"}), "(nil)");
  // All of host memory can be freed: nothing of the unfinished value is left.
  tester native(daemon->socket());
  EXPECT_TRUE(eventually([&] { return native.tier("host").used_bytes == 0; }));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.call({"SET", "v" + std::to_string(i), large}), "OK");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.call({"GET", "v" + std::to_string(i)}), large);
}

TEST_F(RespDoor, WhatIsSentBeforeTheEndIsAnswered) {
  start();
  resp_client client(door());
  client.send(resp_call({"SET", "a", "1"}) + resp_call({"GET", "a"}));
  client.send_no_more();
  EXPECT_EQ(client.reply(), "OK");
  EXPECT_EQ(client.reply(), "1");
  EXPECT_EQ(client.reply(), "(end)");
}

TEST_F(RespDoor, QuitAndShutdownEndConnections) {
  start();
  resp_client client(door()), other(door());
  EXPECT_EQ(other.call({"PING"}), "PONG");
  EXPECT_EQ(client.call({"QUIT"}), "OK");
  EXPECT_EQ(client.reply(), "(end)");
  EXPECT_EQ(daemon->terminate(), 0);
  EXPECT_EQ(other.reply(), "(end)");
  struct stat status {};
  EXPECT_NE(::stat(door().c_str(), &status), 0);
}

TEST_F(RespDoor, ASlowReaderHoldsABoundedNumberOfValues) {
  auto with = options();
  with.host_bytes = 64 * mebibyte;
  start(with);
  resp_client writer(door()), slow(door());
  auto value = value_of(1 << 20, 9);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(writer.call({"SET", "k" + std::to_string(i), value}), "OK");
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += resp_call({"GET", "k" + std::to_string(i)});
  slow.send(all); // the client does not read
  tester native(daemon->socket());
  EXPECT_TRUE(eventually([&] { return native.tier("host").leased_objects > 0; }));
  // The client's memory leaves room for others.
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(writer.call({"SET", "new" + std::to_string(i), value}), "OK") << i;
  EXPECT_LE(native.tier("host").leased_objects, 48u);
  int got = 0;
  for (int i = 0; i < 50; ++i)
    got += slow.reply() == value ? 1 : 0;
  EXPECT_GE(got, 16);
}

TEST_F(RespDoor, SmallRepliesThatTheSocketDoesNotTakeComeInOrder) {
  auto with = options();
  auto port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  start(with);
  resp_client client(door());
  constexpr int keys = 16, times = 44; // 287 KB of replies, of which a socket takes less
  std::string all;
  for (int i = 0; i < keys; ++i)
    ASSERT_EQ(client.call({"SET", "k" + std::to_string(i), value_of(400, i)}), "OK");
  for (int i = 0; i < keys * times; ++i)
    all += resp_call({"GET", "k" + std::to_string(i % keys)});
  client.send(all); // the client does not read
  EXPECT_TRUE(eventually([&] {
    return test::number_behind(test::scrape(port), R"(terrace_resp_hits_total{group="default"})") ==
           keys * times;
  }));
  client.send(resp_call({"ECHO", "after them"}) + resp_call({"QUIT"}));
  for (int i = 0; i < keys * times; ++i)
    ASSERT_EQ(client.reply(), value_of(400, i % keys)) << i;
  EXPECT_EQ(client.reply(), "after them");
  EXPECT_EQ(client.reply(), "OK");
  EXPECT_EQ(client.reply(), "(end)");
  EXPECT_EQ(test::number_behind(test::scrape(port), R"(terrace_sent_bytes_total{group="default"})"),
            keys * 5 + keys * times * 408 + 17 + 5);
}

TEST_F(RespDoor, ItsMetricsCount) {
  auto with = options();
  auto port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  start(with);
  resp_client client(door());
  client.call({"SET", "a", "12345"});
  client.call({"GET", "a"});
  client.call({"GET", "b"});
  client.call({"NOTHING"});
  EXPECT_TRUE(has(client.call({"INFO"}), "keyspace_hits:1\r\nkeyspace_misses:1"));
  auto text = test::scrape(port);
  auto of = [&](const std::string& name, const std::string& more = {}) {
    return test::number_behind(text, "terrace_resp_" + name + "_total{group=\"default\"" + more + "}");
  };
  auto commands = [&](const std::string& command) {
    auto ours = of("commands", ",command=\"" + command + "\"");
    return ours >= 0 ? ours
                     : test::number_behind(text, "terrace_resp_commands_total{command=\"" + command +
                                                     "\",group=\"default\"}");
  };
  EXPECT_EQ(commands("get"), 2);
  EXPECT_EQ(commands("set"), 1);
  EXPECT_EQ(commands("other"), 1);
  EXPECT_EQ(of("errors"), 1);
  EXPECT_EQ(of("hits"), 1);
  EXPECT_EQ(of("misses"), 1);
  EXPECT_EQ(of("read_bytes"), 5);
  EXPECT_EQ(of("stored_bytes"), 5);
}

TEST_F(RespDoor, ValuesAreEvictedLikeEverythingElse) {
  start();
  resp_client client(door());
  auto value = value_of(1 << 20, 9);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(client.call({"SET", "k" + std::to_string(i), value}), "OK") << i;
  EXPECT_EQ(client.call({"GET", "k99"}), value);
  int present = 0;
  for (int i = 0; i < 100; ++i)
    present += client.call({"EXISTS", "k" + std::to_string(i)}) == "(integer) 1" ? 1 : 0;
  EXPECT_GT(present, 20);
  EXPECT_LT(present, 32);
}

TEST_F(RespDoor, AClearRemovesValuesAndOperatorsSeeTheClient) {
  start();
  resp_client client(door());
  EXPECT_EQ(client.call({"CLIENT", "SETNAME", "cache-user"}), "OK");
  EXPECT_EQ(client.call({"SET", "a", "1"}), "OK");
  auto clients = run({program("TERRACE"), "clients", "--socket", daemon->socket()});
  EXPECT_TRUE(has(clients.out, "cache-user")) << clients.out << clients.err;
  auto cleared = run({program("TERRACE"), "clear", "--all", "--socket", daemon->socket()});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err;
  EXPECT_EQ(client.call({"GET", "a"}), "(nil)");
}

TEST_F(RespDoor, NobodyElseMayOpenTheSpaceOfValues) {
  start();
  tester native(daemon->socket());
  client::space_spec spec{.model = "resp", .dtype = "bytes", .layout = "terrace.resp"};
  spec.chunk_tokens = spec.hash_block_tokens = 1;
  spec.pools = {{.name = "value", .object_bytes = 512 * mebibyte}};
  auto opened = native->open_space(spec);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::denied);
}

TEST_F(RespDoor, ALoopbackPortNeedsAPasswordAndServes) {
  write_file(folder / "password", "secret");
  ::chmod((folder / "password").c_str(), 0600);
  daemon_options with;
  with.more =
      "[[resp]]\naddress = \"127.0.0.1:0\"\npassword_file = \"" + std::string(folder / "password") + "\"\n";
  start(with);
  ASSERT_TRUE(daemon->await_log("serves Redis clients on 127.0.0.1:"));
  auto at = daemon->log().find("Redis clients on 127.0.0.1:");
  auto port = static_cast<uint16_t>(std::stoi(daemon->log().substr(at + 27)));
  resp_client client(port);
  EXPECT_EQ(client.call({"AUTH", "secret"}), "OK");
  auto value = value_of(3 << 20, 4);
  EXPECT_EQ(client.call({"SET", "a", value}), "OK");
  EXPECT_EQ(client.call({"GET", "a"}), value);
}

TEST_F(RespDoor, MistakesInItsConfigurationAreNamed) {
  struct {
    std::string section, text;
  } wrong[] = {
      {"address = \"0.0.0.0:6379\"\npassword_file = \"/x\"\n", "a loopback address"},
      {"address = \"127.0.0.1:6379\"\n", "every user of this machine can connect to it"},
      {"", "resp[0].address is missing"},
      {"path = \"/a\"\n", "option 'path' in [resp] exists no longer"},
      {"address = \"127.0.0.1:1\"\npassword_file = \"/x\"\nuids = [0]\n",
       "only a Unix socket tells who connects"},
      {"address = \"/a\"\ngroup = \"other\"\n", "which no socket has"},
      {"address = \"/a\"\nport = 1\n", "unknown option 'port' in [resp]"},
      {"address = \"relative\"\n", "the absolute path of a Unix socket"},
  };
  for (const auto& each : wrong) {
    write_file(folder / "wrong.toml", "[[resp]]\n" + each.section);
    auto ended = run({program("TERRACED"), "--check", "--config", folder / "wrong.toml"});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(has(ended.err, each.text)) << each.section << ended.err;
  }
  write_file(folder / "password", "secret\n");
  ::chmod((folder / "password").c_str(), 0644);
  write_file(folder / "open.toml",
             "[[listen]]\npath = \"" + std::string(folder / "s") + "\"\n[disk]\nbytes = 0\n" +
                 resp_section(door(), "password_file = \"" + std::string(folder / "password") + "\"\n"));
  auto ended = run({program("TERRACED"), "--config", folder / "open.toml"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_TRUE(has(ended.err, "is open to every user")) << ended.err;
}

// ---- clients of others ----

bool installed(const std::string& name) { return run({"sh", "-c", "command -v " + name}).exit_code == 0; }

TEST_F(RespDoor, RedisCliReachesIt) {
  if (!installed("redis-cli"))
    GTEST_SKIP() << "no redis-cli on this machine; install the package `redis-tools`";
  start();
  auto cli = [&](std::vector<std::string> words, const std::string& input = {}) {
    words.insert(words.begin(), {"redis-cli", "-s", door()});
    return run(words, input).out;
  };
  EXPECT_EQ(cli({"SET", "a", "from redis-cli"}), "OK\n");
  EXPECT_EQ(cli({"GET", "a"}), "from redis-cli\n");
  EXPECT_EQ(cli({"-3", "GET", "nothing"}), "\n");
  EXPECT_EQ(cli({"EXISTS", "a", "b"}), "1\n");
  auto value = std::string(5 << 20, 'x');
  EXPECT_EQ(cli({"-x", "SET", "large"}, value), "OK\n");
  EXPECT_EQ(cli({"GET", "large"}), value + "\n");
  EXPECT_EQ(cli({}, "PING\nDBSIZE\nECHO hello\n"), "PONG\n2\nhello\n");
}

TEST_F(RespDoor, RedisBenchmarkReachesIt) {
  if (!installed("redis-benchmark"))
    GTEST_SKIP() << "no redis-benchmark on this machine; install the package `redis-tools`";
  start();
  for (auto [bytes, requests] : {std::pair{"64", "2000"}, std::pair{"100000", "200"}}) {
    auto done = run({"redis-benchmark", "-s", door(), "-t", "ping_inline,ping_mbulk,set,get,mset", "-n",
                     requests, "-c", "8", "-P", "16", "-d", bytes, "-r", "50", "-q"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(has(done.out, "SET: ") && has(done.out, "GET: ")) << done.out;
    EXPECT_FALSE(has(done.out + done.err, "Error from server")) << done.out << done.err;
  }
}

constexpr const char* python_client = R"(
import redis, sys
for protocol in (2, 3):
    r = redis.Redis(unix_socket_path=sys.argv[1], protocol=protocol, client_name="py")
    assert r.ping()
    assert r.set("k", b"\x00\x01" * 70000) and r.get("k") == b"\x00\x01" * 70000
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "b", "zz") == [b"1", b"2", None]
    assert r.exists("a", "b", "zz") == 2 and r.delete("a", "zz") == 1
    assert r.dbsize() == 2 and r.info()["redis_mode"] == "standalone"
    with r.pipeline(transaction=False) as p:
        for i in range(16):
            p.set("p%d" % i, "x" * 1000 * i)
        for i in range(16):
            p.get("p%d" % i)
        out = p.execute()
    assert out[16:] == [b"x" * 1000 * i for i in range(16)]
    try:
        r.set("k", "v", ex=10)
        raise SystemExit("an expiry was taken")
    except redis.ResponseError as e:
        assert "no expiry" in str(e)
    r.delete(*["p%d" % i for i in range(16)], "b")
print("done")
)";

TEST_F(RespDoor, RedisPyReachesIt) {
  auto venv = run({"sh", "-c", "python3 -c 'import redis' 2>/dev/null && echo here"});
  std::string python = "python3";
  if (!has(venv.out, "here")) {
    auto made =
        run({"sh", "-c",
             "python3 -m venv " + std::string(folder / "venv") + " && " + std::string(folder / "venv") +
                 "/bin/pip install -q --disable-pip-version-check redis"});
    if (made.exit_code != 0)
      GTEST_SKIP() << "redis-py cannot be installed here: the Python package index is not reachable";
    python = folder / "venv/bin/python3";
  }
  start();
  auto done = run({python, "-c", python_client, door()});
  EXPECT_EQ(done.out, "done\n") << done.err;
}

} // namespace
} // namespace terrace::e2e
