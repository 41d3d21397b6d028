#include "connection/lookup_answers.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;

namespace {

struct NamedLookup : ::testing::Test {
  std::vector<finish_lookup_notice> told;
  context_ptr context = std::make_shared<request_context>();
  lookup_id id{{3}};

  std::unique_ptr<named_lookup> begin() {
    return std::make_unique<named_lookup>(
        id, context, [this](finish_lookup_notice notice) { told.push_back(std::move(notice)); });
  }
};

} // namespace

TEST_F(NamedLookup, TellsItsAnswerOnce) {
  auto lookup = begin();
  lookup_outcome outcome;
  outcome.chunk_tokens = 64;
  lookup->answered(std::move(outcome));
  lookup.reset();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, id);
  EXPECT_EQ(told[0].context, context);
  EXPECT_EQ(told[0].outcome->chunk_tokens, 64u);
}

TEST_F(NamedLookup, ThoseWhoWaitLearnThatItIsGone) {
  for (errc ended : {errc::ok, errc::gone}) {
    told.clear();
    context->ended = ended;
    begin();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].outcome->failure.code, errc::gone);
  }
}

TEST_F(NamedLookup, ThoseWhoWaitLearnWhatEndedIt) {
  auto lookup = begin();
  context->ended = errc::deadline;
  lookup.reset();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].outcome->failure.code, errc::deadline);
  EXPECT_EQ(told[0].outcome->failure.text, "the lookup ended before it was answered");
}
