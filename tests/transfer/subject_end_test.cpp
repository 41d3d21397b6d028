// What a request in progress holds is let go before its mark of work ends: otherwise a check sees holds of which nobody tells,
// while no request is in progress.
#include "transfer/load_course.hpp"
#include "transfer/prefetch_course.hpp"

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

} // namespace

TEST(SubjectEnd, OfALoad) { expect_holds_to_end_first<load_subject>(); }
TEST(SubjectEnd, OfAPrefetch) { expect_holds_to_end_first<prefetch_subject>(); }
