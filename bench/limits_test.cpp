#include "bench/bare_copy.hpp"
#include "bench/bare_disk.hpp"
#include "bench/bare_echo.hpp"
#include "bench/bare_echo_server.hpp"
#include "bench/bare_hash.hpp"
#include "bench/bare_store.hpp"
#include "bench/load_generator.hpp"
#include "bench/shared_memory.hpp"
#include "tests/support/redis_process.hpp"
#include "tests/support/scrape.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <openssl/sha.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace terrace::bench {
namespace {

TEST(BareEcho, AnswersEveryRequestWhateverItsSize) {
  for (size_t bytes : {1, 4096, 524'288}) {
    bare_echo echo(bytes, bytes / 2 + 1);
    for (int i = 0; i < 3; ++i)
      echo.round_trip();
  }
}

TEST(BareEchoServer, AnswersManyConnectionsUntilEachHasItsAnswer) {
  bare_echo_server server(8, 5000, 300);
  std::vector<uint8_t> request(5000, 1);
  // Runs for no time: one request on each connection, and each is answered.
  EXPECT_GT(requests_per_second(server.clients(), request, 300, 0), 0);
  EXPECT_GT(requests_per_second(server.clients(), request, 300, 0), 0) << "nothing was left over from before";
}

TEST(BareHash, IsAChainOfSha256) {
  std::vector<uint8_t> bytes(512);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 7);
  std::array<uint8_t, 32 + 256> message{};
  std::array<uint8_t, 32> digest{};
  for (size_t block = 0; block < 2; ++block) {
    std::memcpy(message.data(), digest.data(), 32);
    std::memcpy(message.data() + 32, bytes.data() + block * 256, 256);
    SHA256(message.data(), message.size(), digest.data());
  }
  uint64_t head;
  std::memcpy(&head, digest.data(), sizeof head);
  EXPECT_EQ(bare_sha256_chain(bytes, 256), head);
  EXPECT_NE(bare_xxh3_chain(bytes, 256), bare_xxh3_chain(bytes, 128));
}

TEST(BareStore, ReadsWhatItHasWritten) {
  if (!test::redis_process::installed())
    GTEST_SKIP() << "no redis-server on this machine; install the package `redis-server`";
  test::temporary_folder folder{"/tmp"};
  const uint16_t port = test::free_port();
  test::redis_process server(folder.path(), {"--port", std::to_string(port), "--bind", "127.0.0.1"});
  bare_store client(port);
  constexpr uint64_t value = 100'000;
  std::vector<uint8_t> from(5 * value), to(5 * value);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const std::vector<std::string> keys{"k/a", "k/b", "k/c", "k/d", "k/e"};
  client.set(keys, value, from);
  auto there = client.keys("k/*");
  std::sort(there.begin(), there.end());
  EXPECT_EQ(there, keys);
  client.get(keys, value, to);
  EXPECT_EQ(to, from);
  const std::vector<std::string> some{"k/a", "other", "k/e"};
  EXPECT_EQ(client.exist(some), 2u);
  client.track();
  EXPECT_EQ(client.exist(some), 2u);
  client.remove("k/*");
  EXPECT_EQ(client.exist(some), 0u);
}

TEST(SharedMemory, IsTheSameThroughItsDescriptor) {
  shared_memory memory(1 << 16);
  void* second = ::mmap(nullptr, 1 << 16, PROT_READ, MAP_SHARED, memory.descriptor(), 0);
  ASSERT_NE(second, MAP_FAILED);
  memory.bytes()[100] = 0x11;
  EXPECT_EQ(static_cast<uint8_t*>(second)[100], 0x11);
  ::munmap(second, 1 << 16);
}

TEST(BareCopy, CopiesEveryPieceOnceWithAnyNumberOfThreads) {
  constexpr uint64_t piece = 64, total = 100 * piece;
  std::vector<uint8_t> from(total), small(10 * piece);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<uint8_t>(i / piece);
  for (size_t threads : {1, 2, 7}) {
    std::vector<uint8_t> to(total);
    EXPECT_GE(seconds_to_copy({total, piece, threads}, to, from), 0);
    EXPECT_EQ(to, from);
  }
  for (uint64_t call : {uint64_t{16}, uint64_t{24}, piece}) { // with 24 the last call of a piece is shorter
    std::vector<uint8_t> to(total);
    seconds_to_copy({total, piece, 2, call}, to, from);
    EXPECT_EQ(to, from) << call;
  }
  seconds_to_copy({total, piece, 1}, small, from);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), from.end() - 10 * piece)) << "round and round";
}

TEST(BareDisk, WritesAndReadsEveryBlockAndLeavesNothingBehind) {
  std::string folder = (std::filesystem::temp_directory_path() / "terrace-bench-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    bare_disk disk(folder, 8 << 20, 1 << 20, 5 << 20, 4);
    EXPECT_GT(disk.write_all(), 0);
    EXPECT_GT(disk.read_all(), 0);
    EXPECT_EQ(std::filesystem::file_size(folder + "/bare-disk"), 8u << 20);
    disk.forget();
    EXPECT_GT(disk.write_all(), 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

} // namespace
} // namespace terrace::bench
