// Clients that misuse their own memory while the daemon works on it hurt only themselves.
#include "tests/support/child_process.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

/// Returns a memfd without seals: the daemon reads and writes it through its descriptor.
unique_fd unsealed_memory(uint64_t bytes) {
  unique_fd fd(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  (void) !::ftruncate(fd.get(), static_cast<off_t>(bytes));
  return fd;
}

class Region : public ::testing::Test {
 protected:
  void SetUp() override { witness_.store(shared_); }
  void TearDown() override {
    EXPECT_EQ(witness_.load_and_check(shared_), shared_.size());
    EXPECT_EQ(daemon_.terminate(), 0);
  }

  daemon_under_test daemon_;
  tester witness_{daemon_.socket(), "witness"};
  tester client_{daemon_.socket(), "client"};
  std::vector<digest> shared_ = chain_of(1, 4);
};

TEST_F(Region, UnsealedOneIsServedThroughItsDescriptor) {
  unique_fd memory = unsealed_memory(8 * object_bytes);
  auto region = client_->register_region(memory.get(), 8 * object_bytes, patiently());
  ASSERT_TRUE(region);
  EXPECT_FALSE(region->mapped());
  auto request = client_.load_of(shared_);
  request.region = &*region;
  auto loaded = client_->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 4U);
  std::vector<uint8_t> bytes(object_bytes);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(::pread(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(i * object_bytes)),
              static_cast<ssize_t>(object_bytes));
    EXPECT_TRUE(has_content(shared_[i], bytes));
  }
}

TEST_F(Region, TruncatedDuringTransfersItIsGone) {
  unique_fd memory = unsealed_memory(8 * object_bytes);
  auto region = client_->register_region(memory.get(), 8 * object_bytes, patiently());
  ASSERT_TRUE(region);
  auto kept = witness_.lookup(shared_, true);
  // In the first round the file shrinks under transfers that are in progress. One of them may write once more
  // and so make the file longer again, so the second round begins only when all of them are answered.
  for (uint64_t round = 0; round < 2; ++round) {
    std::vector<client::ticket<client::load_result>> loads;
    std::vector<client::ticket<client::store_result>> stores;
    std::vector<std::vector<digest>> chains;
    for (uint64_t i = 0; i < 16; ++i) {
      chains.push_back(chain_of(100 * (round + 1) + i, 4));
      auto load = client_.load_of(shared_);
      load.region = &*region;
      loads.push_back(client_->async().load(load, patiently()).value());
      auto store = client_.store_of(chains.back());
      store.region = &*region;
      stores.push_back(client_->async().store(store, patiently()).value());
    }
    ASSERT_TRUE(round > 0 || ::ftruncate(memory.get(), 0) == 0);
    for (size_t i = 0; i < loads.size(); ++i) {
      auto loaded = loads[i].wait(patiently());
      auto stored = stores[i].wait(patiently());
      EXPECT_TRUE(round == 0 || (!loaded && !stored)) << "a file without bytes was read or written";
      EXPECT_TRUE(loaded || loaded.error().code == errc::gone) << loaded.error().text;
      EXPECT_TRUE(stored || stored.error().code == errc::gone) << stored.error().text;
      // A chain is stored in two windows, and the file may shrink between them.
      uint32_t left = client_.lookup(chains[i]).found_chunks;
      EXPECT_TRUE(stored || left == 0 || (round == 0 && left < 4)) << "a failed store left " << left;
    }
    ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
  }
  EXPECT_EQ(client_.load_and_check(shared_), 4U); // its other region still works
  kept.held.release();
  occupy(client_, 1000, objects_in(32 * mebibyte)); // nothing of the failed ones is still held
  EXPECT_TRUE(stored_when_free(witness_, shared_));
}

TEST_F(Region, ScribbledOverDuringAStoreItSpoilsItsOwnChunksAlone) {
  child_process scribbler([this](const child_voice& voice) {
    voice.say('s');
    for (uint64_t round = 0;; ++round) // runs until it is killed
      for (size_t at = 0; at < client_.memory().size(); at += 512)
        client_.memory().data()[at] = static_cast<uint8_t>(round);
    return 0;
  });
  ASSERT_EQ(scribbler.await_word(), 's');
  auto chain = chain_of(50, 8);
  auto stored = client_->store(client_.store_of(chain), patiently());
  scribbler.kill();
  ASSERT_TRUE(stored) << stored.error().text;
  ASSERT_EQ(stored->stored_chunks, 8U);
  // Stored chunks stay as they are.
  ASSERT_TRUE(client_->load(client_.load_of(chain), patiently()));
  std::vector<uint8_t> first(client_.memory().bytes().begin(), client_.memory().bytes().end());
  ASSERT_TRUE(client_->load(client_.load_of(chain), patiently()));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), client_.memory().data()));
}

} // namespace
} // namespace terrace::e2e
