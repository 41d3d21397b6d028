#include "tier/space/allocation_queue.hpp"

#include "objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

space_refusal refusal(errc why, acquire_request request = {}) { return refusal_of(request, {why, "why"}); }

acquire_request ahead_of_demand() {
  auto of = std::make_shared<request_context>();
  of->ahead = true;
  acquire_request request;
  request.context = of;
  return request;
}

} // namespace

TEST(SpaceRefusal, DroppedIsWhatEvictionCouldHaveMadeRoomFor) {
  EXPECT_EQ(refusal(errc::busy), space_refusal::dropped) << "too many wait";
  acquire_request late;
  late.context = ended(errc::deadline);
  EXPECT_EQ(refusal(errc::deadline, late), space_refusal::dropped) << "its turn did not come in time";
}

TEST(SpaceRefusal, NoRoomIsWhatEvictionCouldNot) {
  EXPECT_EQ(refusal(errc::no_space), space_refusal::no_room);
  acquire_request late;
  late.context = ended(errc::deadline);
  late.may_come_again = true;
  EXPECT_EQ(refusal(errc::no_space, late), space_refusal::no_room) << "it has no time to come again";
}

TEST(SpaceRefusal, WhoComesAgainForLessIsNotRefused) {
  acquire_request request;
  request.may_come_again = true;
  EXPECT_EQ(refusal(errc::no_space, request), space_refusal::none);
  request.context = context();
  EXPECT_EQ(refusal(errc::no_space, request), space_refusal::none);
  EXPECT_EQ(refusal(errc::busy, request), space_refusal::dropped) << "this ends the request";
}

TEST(SpaceRefusal, PrefetchesAreCountedApart) {
  EXPECT_EQ(refusal(errc::busy, ahead_of_demand()), space_refusal::prefetch);
  EXPECT_EQ(refusal(errc::no_space, ahead_of_demand()), space_refusal::prefetch);
  EXPECT_EQ(refusal(errc::deadline, ahead_of_demand()), space_refusal::none);
}

TEST(SpaceRefusal, WhoeverEndsOrErrsIsNotRefused) {
  for (errc why : {errc::cancelled, errc::gone, errc::bad_request, errc::internal})
    EXPECT_EQ(refusal(why), space_refusal::none);
}
