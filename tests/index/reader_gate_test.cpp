#include "index/reader_gate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

using namespace terrace;

TEST(ReadGate, LetsManyReadersInAtOnce) {
  reader_gate gate;
  auto first = gate.try_read();
  auto second = gate.try_read();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(ReadGate, TurnsReadersAwayWhileItsWriterIsIn) {
  reader_gate gate;
  {
    auto writing = gate.write();
    EXPECT_FALSE(gate.try_read());
    EXPECT_FALSE(gate.try_read()) << "who was turned away leaves nothing behind";
  }
  EXPECT_TRUE(gate.try_read());
}

TEST(ReadGate, AWriterThatWaitsTurnsReadersAwayAndGoesInWhenTheLastHasLeft) {
  reader_gate gate;
  std::atomic<bool> wrote{false};
  std::thread writer;
  {
    auto reading = gate.try_read();
    ASSERT_TRUE(reading);
    writer = std::thread([&] {
      auto writing = gate.write();
      wrote = true;
    });
    while (gate.try_read()) {
    } // until the writer waits
    EXPECT_FALSE(wrote);
  }
  writer.join();
  EXPECT_TRUE(wrote);
  EXPECT_TRUE(gate.try_read());
}

TEST(ReadGate, AReaderNeverSeesHalfAChange) {
  reader_gate gate;
  std::array<uint64_t, 8> words{};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  std::atomic<uint64_t> torn{0}, seen{0};
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!done) {
        auto reading = gate.try_read();
        if (!reading)
          continue;
        ++seen;
        for (uint64_t word : words)
          torn += word != words[0];
      }
    });
  for (uint64_t n = 1; n <= 20'000 || seen == 0; ++n) {
    auto writing = gate.write();
    words.fill(n);
  }
  done = true;
  for (auto& reader : readers)
    reader.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(seen, 0u);
}
