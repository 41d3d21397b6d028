// Ranges of chunks in a session and after a parent: a request may name chunks whose tokens it has sent.
#include "workload.hpp"

#include <numeric>

namespace terrace::e2e {
namespace {

constexpr uint32_t chunk = space_chunk_tokens; // 16 tokens

class SessionRanges : public testing::Test {
 protected:
  SessionRanges() {
    std::iota(prompt_.begin(), prompt_.end(), 1U);
    client::lookup_request whole;
    whole.in = by_.space();
    whole.what = client::prefix::of_tokens(prompt_);
    whole.digests = true;
    names_ = by_->lookup(whole, patiently())->digests;
    EXPECT_EQ(names_.size(), 4U);
  }
  static void expect_uncovered(const error& refused) {
    EXPECT_EQ(refused.code, errc::bad_request);
    for (const char* part : {"(parent_tokens)", "start of the prompt", "a first_chunk of 2 or more"})
      EXPECT_NE(refused.text.find(part), std::string::npos) << part << ": " << refused.text;
  }

  daemon_under_test daemon_;
  tester by_{daemon_.socket()};
  std::vector<uint32_t> prompt_ = std::vector<uint32_t>(4 * chunk);
  std::vector<digest> names_;
};

TEST_F(SessionRanges, ARangeBeforeTheContinuationIsRefused) {
  auto session = by_->open_session(by_.space(), {}, patiently()).value();
  constexpr uint64_t had = 2 * chunk + 3;
  ASSERT_TRUE(session.lookup(std::span(prompt_).first(had), 0, {}, patiently()));
  auto what = session.continued(prompt_, had);
  // Ranges as a client sends them that counts from the first chunk it sends.
  for (client::chunk_range range : {client::chunk_range{0, 2}, {0, 0}, {1, 2}, {0, 4}}) {
    auto store = by_.store_of(names_, range);
    store.what = what;
    auto stored = by_->store(store, patiently());
    ASSERT_FALSE(stored) << range.first << " + " << range.count;
    expect_uncovered(stored.error());
    auto load = by_.load_of(names_, range);
    load.what = what;
    auto loaded = by_->load(load, patiently());
    ASSERT_FALSE(loaded) << range.first << " + " << range.count;
    expect_uncovered(loaded.error());
    auto reserved = by_->reserve({.in = by_.space(), .what = what, .range = range}, patiently());
    ASSERT_FALSE(reserved) << range.first << " + " << range.count;
    expect_uncovered(reserved.error());
  }
  EXPECT_EQ(by_.lookup(names_).found_chunks, 0U) << "nothing is stored";
}

TEST_F(SessionRanges, ARangeCountsFromTheStartOfThePrompt) {
  auto session = by_->open_session(by_.space(), {}, patiently()).value();
  EXPECT_EQ(by_.store({names_.begin(), names_.begin() + 2}), 2U);
  ASSERT_TRUE(session.lookup(std::span(prompt_).first(2 * chunk), 0, {}, patiently()));
  for (size_t i : {2U, 3U})
    fill_content(names_[i], by_.piece(i - 2));
  auto store = by_.store_of(names_, {2, 2});
  store.what = session.continued(prompt_, 2 * chunk);
  auto stored = by_->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 2U);
  EXPECT_EQ(by_.load_and_check(names_), 4U);
  auto earlier = by_.load_of(names_, {1, 1});
  earlier.what = session.continued(prompt_, chunk); // its tokens are sent, too
  EXPECT_EQ(by_->load(earlier, patiently())->delivered_chunks, 1U);
  EXPECT_TRUE(has_content(names_[1], by_.piece(0)));
}

TEST_F(SessionRanges, ARangeUnderALeaseCountsFromWhatTheLeaseHolds) {
  auto session = by_->open_session(by_.space(), {}, patiently()).value();
  EXPECT_EQ(by_.store(names_), 4U);
  ASSERT_TRUE(session.lookup(std::span(prompt_).first(2 * chunk), 0, {}, patiently()));
  auto found = session.lookup(prompt_, 2 * chunk, {.lease = true}, patiently());
  ASSERT_TRUE(found) << found.error().text;
  auto places = by_->read_lease(found->held.id(), {1, 1}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  EXPECT_TRUE(has_content(names_[1], places->objects.at(0)));
}

TEST_F(SessionRanges, ARangeOfWhatContinuesAParentCountsFromTheParent) {
  auto rest = client::prefix::of_tokens(std::span(prompt_).subspan(2 * chunk));
  rest.parent = names_[1].bytes;
  rest.parent_tokens = 2 * chunk;
  for (size_t i : {2U, 3U})
    fill_content(names_[i], by_.piece(i - 2));
  auto store = by_.store_of(names_, {2, 2}); // counts as if from the prompt's start
  store.what = rest;
  auto refused = by_->store(store, patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("count from token 32 (parent_tokens)"), std::string::npos)
      << refused.error().text;
  store.range = {0, 2};
  EXPECT_EQ(by_->store(store, patiently())->stored_chunks, 2U);
  EXPECT_EQ(by_.store({names_.begin(), names_.begin() + 2}), 2U);
  EXPECT_EQ(by_.load_and_check(names_), 4U);
}

} // namespace
} // namespace terrace::e2e
