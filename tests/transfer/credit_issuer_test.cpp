#include "transfer/write_queue.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <optional>

using namespace terrace;
using namespace terrace::test;

namespace {

struct returned_credits final : credit_sink {
  void give_back(uint64_t bytes) override { returned.push_back(bytes); }
  std::vector<uint64_t> returned;
};

struct CreditIssuer : ::testing::Test {
  static constexpr uint64_t segment = 1 << 20;
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 4 * segment, .segment_bytes = segment}).value();
  std::shared_ptr<returned_credits> sink = std::make_shared<returned_credits>();
  credit_issuer issuer{2 * segment, memory, sink};

  using answer_ptr = std::shared_ptr<std::optional<write_credit_answer>>;
  answer_ptr ask(uint64_t bytes, context_ptr of = nullptr) {
    auto given = std::make_shared<std::optional<write_credit_answer>>();
    issuer.issue({bytes, std::move(of)}, [given](write_credit_answer answer) { *given = std::move(answer); });
    return given;
  }
  static write_through_notice offer(size_t objects) {
    write_through_notice notice;
    notice.objects = chain(1, objects, 4096);
    return notice;
  }
};

} // namespace

TEST_F(CreditIssuer, GivesCreditsThatReturnTheirBytesWhenTheyEnd) {
  auto given = ask(2 * segment);
  ASSERT_TRUE(*given);
  EXPECT_EQ((*given)->failure.code, errc::ok);
  auto next = ask(1);
  EXPECT_FALSE(*next);
  given->reset();
  ASSERT_EQ(sink->returned, std::vector<uint64_t>{2 * segment});
  issuer.put_back({2 * segment});
  EXPECT_TRUE(*next);
}

TEST_F(CreditIssuer, FollowsMemoryThatIsResized) {
  ASSERT_TRUE(memory->grow(4 * segment));
  auto given = ask(4 * segment);
  EXPECT_TRUE(*given) << "half of what there is now";
  EXPECT_FALSE(*ask(1));
}

TEST_F(CreditIssuer, HasNoLimitIfNoneIsWanted) {
  issuer = credit_issuer(UINT64_MAX, memory, sink);
  auto first = ask(100 * segment), second = ask(100 * segment);
  EXPECT_TRUE(*first);
  EXPECT_TRUE(*second);
}

TEST_F(CreditIssuer, AnswersRequestsThatEndWhileTheyWait) {
  auto all = ask(2 * segment);
  auto of = context();
  auto waits = ask(1, of);
  of->ended = errc::deadline;
  issuer.sweep();
  ASSERT_TRUE(*waits);
  EXPECT_EQ((*waits)->failure.code, errc::deadline);
  EXPECT_FALSE((*waits)->credit);
}

TEST_F(CreditIssuer, AdmitsOffersForWhichACreditIsFree) {
  auto first = offer(1);
  ASSERT_TRUE(issuer.admit(first));
  EXPECT_TRUE(first.credit);
  auto all = ask(2 * segment - physical_bytes_for(4096));
  EXPECT_TRUE(*all);
  auto second = offer(1);
  EXPECT_FALSE(issuer.admit(second));
  EXPECT_FALSE(second.credit);
  EXPECT_TRUE(issuer.admit(first)) << "it has its credit";
}
