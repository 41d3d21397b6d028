// Transfers in as many runs and pieces as a request may have.
#include "workload.hpp"

#include <cstring>

namespace terrace::e2e {
namespace scattered_test {

constexpr size_t objects = 24;
constexpr size_t runs_per_object = 16'384; ///< 393,216 in all: they are checked in slices
constexpr uint64_t run_bytes = object_bytes / runs_per_object;

/// A client whose objects lie in the region back to front, in tiny runs.
class Scattered : public ::testing::Test {
 protected:
  Scattered() {
    for (size_t i = 0; i < objects; ++i)
      for (size_t r = runs_per_object; r-- != 0;)
        runs_.push_back({.offset = i * object_bytes + r * run_bytes, .bytes = run_bytes});
  }
  client::store_request to_store() {
    auto request = client_.store_of(chain_);
    request.runs = runs_;
    request.runs_per_object = per_object_;
    return request;
  }
  client::load_request to_load() {
    auto request = client_.load_of(chain_);
    request.runs = runs_;
    request.runs_per_object = per_object_;
    return request;
  }
  void fill() {
    for (size_t i = 0; i < objects; ++i)
      fill_content(chain_[i], client_.piece(i));
  }
  /// Returns the refusal of a store or load whose runs are wrong.
  std::string refusal() {
    auto stored = client_->store(to_store(), patiently());
    EXPECT_FALSE(stored);
    auto loaded = client_->load(to_load(), patiently());
    EXPECT_FALSE(loaded);
    if (stored || loaded)
      return "";
    EXPECT_EQ(stored.error().code, errc::bad_request);
    EXPECT_EQ(stored.error().text, loaded.error().text);
    EXPECT_TRUE(client_->admin().status(patiently())) << "the connection goes on";
    return stored.error().text;
  }

  daemon_under_test daemon_{{.workers = 1}};
  tester client_{daemon_.socket(), "scattered", objects* object_bytes};
  std::vector<digest> chain_ = chain_of(1, objects);
  std::vector<client::run> runs_;
  std::vector<uint32_t> per_object_ = std::vector<uint32_t>(objects, runs_per_object);
};

TEST_F(Scattered, EveryRunIsCopiedToItsPlace) {
  fill();
  auto stored = client_->store(to_store(), patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, objects);
  std::memset(client_.memory().data(), 0, client_.memory().size());
  auto loaded = client_->load(to_load(), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, objects);
  for (size_t i = 0; i < objects; ++i)
    EXPECT_TRUE(has_content(chain_[i], client_.piece(i))) << i;
  // The object itself is back to front.
  ASSERT_TRUE(client_->load(client_.load_of(chain_, {0, 1}, 1), patiently()));
  EXPECT_EQ(std::memcmp(client_.piece(1).data(), client_.piece(0).last(run_bytes).data(), run_bytes), 0);
  EXPECT_FALSE(has_content(chain_[0], client_.piece(1)));
}

TEST_F(Scattered, AMillionPiecesOfAByteAreCopied) {
  fill();
  std::vector<digest> one{chain_[0]};
  // Every second byte of two objects of the region.
  client::run odd{.offset = 1, .bytes = 1, .stride = 2, .count = object_bytes};
  auto request = client_.store_of(one);
  request.runs = {&odd, 1};
  auto stored = client_->store(request, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  ASSERT_TRUE(client_->load(client_.load_of(one, {}, 2), patiently()));
  for (size_t i = 0; i < object_bytes; ++i)
    ASSERT_EQ(client_.piece(2)[i], client_.memory().bytes()[1 + 2 * i]) << i;
}

TEST_F(Scattered, AWrongRunAtTheEndRefusesTheRequestWithItsNumber) {
  runs_.back().offset = objects * object_bytes;
  auto text = refusal();
  EXPECT_NE(text.find("run " + std::to_string(runs_.size() - 1)), std::string::npos) << text;
  EXPECT_NE(text.find("exceeds the region"), std::string::npos) << text;
  EXPECT_EQ(client_.lookup(chain_).found_chunks, 0U);
}

TEST_F(Scattered, MorePiecesThanARequestMayHaveAreRefused) {
  for (client::run& run : runs_)
    run = {.offset = run.offset, .bytes = run_bytes / 4, .stride = run_bytes / 4, .count = 4};
  auto text = refusal();
  EXPECT_NE(text.find("expected at most 1048576 pieces"), std::string::npos) << text;
}

TEST_F(Scattered, ARequestThatEndsWhileItsRunsAreCheckedIsAnswered) {
  fill();
  for (int round = 0; round < 8; ++round) {
    auto ticket = client_->async().store(to_store(), patiently());
    ASSERT_TRUE(ticket) << ticket.error().text;
    ASSERT_TRUE(ticket->cancel(patiently()));
    auto stored = ticket->wait(patiently());
    EXPECT_TRUE(stored || stored.error().code == errc::cancelled) << stored.error().text;
  }
  auto stored = client_->store(to_store(), patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks + stored->present_chunks, objects);
}

} // namespace scattered_test
} // namespace terrace::e2e
