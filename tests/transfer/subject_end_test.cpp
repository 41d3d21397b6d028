// What a request in progress holds is let go before its mark of work ends: otherwise a check sees holds of which nobody tells,
// while no request is in progress.
#include "transfer/copy_messages.hpp"
#include "transfer/load_plan.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/prefetch_plan.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

template <class Subject>
void expect_holds_to_end_first() {
  uint64_t before = work_mark::now().in_progress, then = 0;
  {
    Subject of;
    of.context = std::make_shared<request_context>();
    of.context->work.begin();
    of.held_by = keep_alive(&then, [&then](const void*) { then = work_mark::now().in_progress; });
  }
  EXPECT_EQ(then, before + 1);
  EXPECT_EQ(work_mark::now().in_progress, before);
}

/// The same of a message: whoever worked for it may let go of it after it has answered.
template <class Request>
void expect_owners_to_end_first() {
  uint64_t before = work_mark::now().in_progress, then = 0;
  {
    Request of;
    of.context = std::make_shared<request_context>();
    of.context->work.begin();
    of.owners.push_back(keep_alive(&then, [&then](const void*) { then = work_mark::now().in_progress; }));
  }
  EXPECT_EQ(then, before + 1);
  EXPECT_EQ(work_mark::now().in_progress, before);
}

} // namespace

TEST(SubjectEnd, OfCopiersRequests) {
  expect_owners_to_end_first<copy_request>();
  expect_owners_to_end_first<seal_request>();
  expect_owners_to_end_first<check_request>();
}
TEST(SubjectEnd, OfMoversRequests) {
  expect_owners_to_end_first<read_request>();
  expect_owners_to_end_first<write_request>();
}
TEST(SubjectEnd, OfALoad) { expect_holds_to_end_first<load_subject>(); }
TEST(SubjectEnd, OfAPrefetch) { expect_holds_to_end_first<prefetch_subject>(); }
