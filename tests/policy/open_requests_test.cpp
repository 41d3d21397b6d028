#include "policy/open_requests.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

entry_key key(uint64_t n) { return {n, ~n}; }

TEST(OpenRequests, AreFoundUntilTheyEnd) {
  open_requests requests;
  auto [first, made] = requests.begin(7, 3);
  auto [second, other] = requests.begin(9, 200);
  EXPECT_NE(first, second);
  EXPECT_EQ(requests.find(first)->stamp, 7U);
  EXPECT_EQ(requests.find(first)->retention, 3);
  EXPECT_EQ(requests.find(second)->retention, 7) << "the highest there is";
  requests.end(first);
  EXPECT_EQ(requests.find(first), nullptr);
  EXPECT_NE(requests.find(second), nullptr);
  EXPECT_EQ(requests.find(0), nullptr) << "no request has this number";
}

TEST(OpenRequests, TheOldestIsDroppedForOneTooMany) {
  open_requests requests;
  auto first = requests.begin(1, 0).first;
  auto second = requests.begin(1, 0).first;
  for (size_t n = 2; n < open_requests::requests_max; ++n)
    requests.begin(1, 0);
  EXPECT_NE(requests.find(first), nullptr);
  requests.begin(1, 0);
  EXPECT_EQ(requests.find(first), nullptr);
  EXPECT_NE(requests.find(second), nullptr);
  EXPECT_EQ(requests.size(), open_requests::requests_max);
}

TEST(OpenRequests, FollowTheClocksBase) {
  open_requests requests;
  auto [old, old_made] = requests.begin(5, 0);
  auto [young, young_made] = requests.begin(access_clock::rebase_step + 5, 0);
  requests.rebase();
  EXPECT_EQ(requests.find(old)->stamp, 0U);
  EXPECT_EQ(requests.find(young)->stamp, 5U);
}

TEST(OpenRequests, RememberWhatWasGivenUpForThemUpToABound) {
  open_request request;
  for (uint64_t n = 1; n <= open_request::given_up_max + 1; ++n)
    request.gave_up(key(n), key(n + 10'000));
  EXPECT_EQ(request.parent_of(key(1)), key(10'001));
  EXPECT_EQ(request.parent_of(key(open_request::given_up_max)), key(open_request::given_up_max + 10'000));
  EXPECT_TRUE(request.parent_of(key(open_request::given_up_max + 1)).empty());
}

} // namespace
} // namespace terrace
