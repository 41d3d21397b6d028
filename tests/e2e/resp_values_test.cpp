// The fate of values of Redis clients that are replaced, removed, and written to disk.
#include "resp_door.hpp"

#include <atomic>
#include <thread>

namespace terrace::e2e {
namespace {

using RespValues = RespDoor;

TEST_F(RespValues, ValuesSurviveARestartByDiskAndEvictionFromHostMemory) {
  start(256 * mebibyte);
  {
    resp_client client(door());
    for (unsigned i = 0; i < 60; ++i) // twice the host memory
      ASSERT_EQ(client.call({"SET", "k" + std::to_string(i), value_of(1'000'000 + i, i)}), "OK") << i;
    ASSERT_EQ(client.call({"SET", "small", "a small one"}), "OK");
    for (unsigned i = 0; i < 60; ++i)
      ASSERT_EQ(client.call({"GET", "k" + std::to_string(i)}), value_of(1'000'000 + i, i)) << i;
  }
  ASSERT_EQ(daemon->terminate(), 0);
  daemon->start();
  ASSERT_TRUE(daemon->await_log("joined"));
  resp_client client(door());
  for (unsigned i = 0; i < 60; ++i)
    ASSERT_EQ(client.call({"GET", "k" + std::to_string(i)}), value_of(1'000'000 + i, i)) << i;
  EXPECT_EQ(client.call({"GET", "small"}), "a small one");
  EXPECT_EQ(client.call({"DBSIZE"}), "(integer) 61");
}

TEST_F(RespValues, AReplacedOrRemovedValueNeverComesBackFromDisk) {
  start(256 * mebibyte);
  resp_client client(door());
  auto filler = value_of(1 << 20, 1000);
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 20; ++i)
      ASSERT_EQ(client.call({"SET", "k" + std::to_string(i), value_of(200'000 + round * 7, i + 100 * round)}),
                "OK");
    ASSERT_EQ(client.call({"DEL", "k0", "k1"}), "(integer) 2");
    for (unsigned i = 0; i < 60; ++i) // drives them out of host memory
      ASSERT_EQ(client.call({"SET", "filler" + std::to_string(i), filler}), "OK");
    EXPECT_EQ(client.call({"MGET", "k0", "k1"}), "[(nil), (nil)]");
    for (unsigned i = 2; i < 20; ++i)
      ASSERT_EQ(client.call({"GET", "k" + std::to_string(i)}), value_of(200'000 + round * 7, i + 100 * round))
          << round << " " << i;
  }
  ASSERT_EQ(daemon->terminate(), 0);
  daemon->start();
  ASSERT_TRUE(daemon->await_log("joined"));
  resp_client later(door());
  EXPECT_EQ(later.call({"MGET", "k0", "k1"}), "[(nil), (nil)]");
  for (unsigned i = 2; i < 20; ++i)
    EXPECT_EQ(later.call({"GET", "k" + std::to_string(i)}), value_of(200'014, i + 200)) << i;
}

TEST_F(RespValues, ManyClientsWriteTheSameKeys) {
  start(256 * mebibyte);
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (unsigned c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      resp_client client(door());
      for (unsigned i = 0; i < 150; ++i) {
        std::string key = "shared" + std::to_string(i % 5);
        size_t bytes = i % 3 == 0 ? 40'000 : 500;
        std::string value(bytes, static_cast<char>('a' + c));
        if (i % 7 == 6)
          client.call({"DEL", key, "shared0"});
        else if (client.call({"SET", key, value}) != "OK")
          ++wrong;
        auto got = client.call({"GET", key});
        bool whole = got == "(nil)" || (!got.empty() && got == std::string(got.size(), got.front()) &&
                                        (got.size() == 500 || got.size() == 40'000));
        wrong += whole ? 0 : 1;
      }
    });
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(RespValues, AValueThatIsSetAgainAndAgainIsWrittenNowAndThen) {
  start(256 * mebibyte);
  resp_client client(door());
  constexpr unsigned rounds = 3000;
  for (unsigned round = 0; round < rounds; ++round) { // 16 keys in one piece
    std::string all;
    for (unsigned i = 0; i < 16; ++i)
      all += resp_call({"SET", "k" + std::to_string(i), value_of(100, round * 16 + i)});
    client.send(all);
    for (unsigned i = 0; i < 16; ++i)
      ASSERT_EQ(client.reply(), "OK");
  }
  tester native(daemon->socket());
  // Writing each of them would take 4,800,000 bytes.
  EXPECT_LT(native.tier("disk").bytes_written, rounds * 16 * 100 / 4);
  EXPECT_TRUE(eventually([&] { return native.tier("disk").objects == 16; }));
  ASSERT_EQ(daemon->terminate(), 0);
  daemon->start();
  ASSERT_TRUE(daemon->await_log("joined"));
  resp_client later(door());
  for (unsigned i = 0; i < 16; ++i)
    EXPECT_EQ(later.call({"GET", "k" + std::to_string(i)}), value_of(100, (rounds - 1) * 16 + i)) << i;
}

TEST_F(RespValues, TheLastValuesAreOnDiskAfterAnOrderlyEnd) {
  start(256 * mebibyte);
  for (unsigned round = 0; round < 3; ++round) {
    {
      resp_client client(door());
      for (unsigned i = 0; i < 200; ++i)
        ASSERT_EQ(client.call({"SET", "k" + std::to_string(i % 50), value_of(300 + i, round * 200 + i)}),
                  "OK");
    }
    ASSERT_EQ(daemon->terminate(), 0); // ends at once, while they wait in memory
    daemon->start();
    ASSERT_TRUE(daemon->await_log("joined"));
    resp_client later(door());
    for (unsigned i = 150; i < 200; ++i)
      ASSERT_EQ(later.call({"GET", "k" + std::to_string(i % 50)}), value_of(300 + i, round * 200 + i)) << i;
  }
}

TEST_F(RespValues, SmallValuesThatAreReadAtOnceCountAsUsed) {
  auto with = options();
  start(with);
  resp_client client(door());
  tester native(daemon->socket());
  ASSERT_EQ(client.call({"SET", "used", "kept"}), "OK");
  auto filler = value_of(1 << 20, 9);
  for (int i = 0; i < 100; ++i) { // three times the host memory
    ASSERT_EQ(client.call({"SET", "filler" + std::to_string(i), filler}), "OK") << i;
    for (int n = 0; n < 40; ++n) // more than are sent without an answer
      ASSERT_EQ(client.call({"GET", "used"}), "kept") << i;
  }
  EXPECT_GE(native.tier("host").hits, 4000u);
  EXPECT_EQ(client.call({"EXISTS", "used", "used", "filler0"}), "(integer) 2");
}

TEST_F(RespValues, AClientSeesItsOwnLastValueWhateverOthersDo) {
  start(256 * mebibyte);
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (unsigned c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      resp_client client(door());
      std::string own = "own" + std::to_string(c);
      for (unsigned i = 0; i < 400; ++i) {
        auto value = value_of(i % 5 == 0 ? 30'000 : 80, 1000 * c + i);
        std::string all = resp_call({"SET", own, "earlier"}) + resp_call({"SET", "shared", value}) +
                          resp_call({"SET", own, value}) + resp_call({"GET", own});
        if (i % 9 == 0)
          all += resp_call({"DEL", own, "shared"}) + resp_call({"GET", own});
        client.send(all);
        auto expect = [&](const std::string& wanted, const char* of) {
          std::string got = client.reply();
          if (got == wanted || wrong.fetch_add(1) >= 10)
            return;
          std::string what = got.substr(0, 40);
          for (unsigned other = 0; other < 4 * 1000; ++other)
            if (got == value_of(got.size(), other))
              what = "that of client " + std::to_string(other / 1000) + " in its round " +
                     std::to_string(other % 1000);
          ADD_FAILURE() << of << " in round " << i << " of client " << c << ": " << got.size()
                        << " bytes: " << what;
        };
        expect("OK", "SET own earlier");
        expect("OK", "SET shared");
        expect("OK", "SET own");
        expect(value, "GET own");
        if (i % 9 == 0) {
          client.reply();
          expect("(nil)", "GET of what was deleted");
        }
      }
    });
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
}

// A writer that finds one of several keys being written gives the others up: requests that waited for those
// have no space for them yet.
TEST_F(RespValues, AKeyThatIsGivenUpIsWrittenIntoSpaceOfItsOwn) {
  start(64 * mebibyte);
  constexpr unsigned shared_keys = 6, all_clients = 6;
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (unsigned c = 0; c < all_clients; ++c)
    clients.emplace_back([&, c] {
      resp_client client(door());
      std::string own = "own" + std::to_string(c);
      for (unsigned i = 0; i < 300; ++i) {
        auto value = value_of(80, 1000 * c + i);
        std::string all = resp_call({"SET", own, value});
        for (unsigned k = 0; k < shared_keys; ++k)
          all += resp_call({"SET", "shared" + std::to_string((k + c * i) % shared_keys), value});
        client.send(all + resp_call({"GET", own}));
        for (unsigned reply = 0; reply < 1 + shared_keys; ++reply)
          wrong += client.reply() == "OK" ? 0 : 1;
        wrong += client.reply() == value ? 0 : 1;
      }
    });
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
}

// Those who wait for the key have their turns one after the other, also if some of them leave.
TEST_F(RespValues, AKeyThatManySetIsSetByEachOfThem) {
  start(64 * mebibyte);
  constexpr unsigned all_clients = 100, rounds = 20;
  std::vector<std::unique_ptr<resp_client>> clients;
  for (unsigned c = 0; c < all_clients; ++c)
    clients.push_back(std::make_unique<resp_client>(door()));
  int wrong = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned c = 0; c < all_clients; ++c)
      clients[c]->send(resp_call({"SET", "hot", value_of(c % 7 == 0 ? 40'000 : 80, c)}));
    for (unsigned c = round; c < all_clients; c += rounds)
      clients[c] = std::make_unique<resp_client>(door()); // the one before has left without an answer
    for (unsigned c = 0; c < all_clients; ++c)
      if (c % rounds != round)
        wrong += clients[c]->reply() == "OK" ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  resp_client reader(door());
  std::string last = reader.call({"GET", "hot"});
  bool known = false;
  for (unsigned c = 0; c < all_clients; ++c)
    known = known || last == value_of(c % 7 == 0 ? 40'000 : 80, c);
  EXPECT_TRUE(known) << last.size() << " bytes";
}

} // namespace
} // namespace terrace::e2e
