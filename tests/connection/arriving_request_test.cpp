#include "connection/arriving_request.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using protocol::kind;
using phase = connection_phase;

namespace {

arriving_request a(kind which, const char* verb) {
  arriving_request what;
  what.id = 1;
  what.kind = which;
  what.verb = verb;
  return what;
}

} // namespace

TEST(ArrivingRequest, AnIdIsFreeAndNotZero) {
  auto what = a(kind::lookup, "lookup");
  EXPECT_EQ(violation_of(what, phase::serving).code, errc::ok);
  what.in_flight = true;
  EXPECT_NE(violation_of(what, phase::serving).text.find("1 is in flight"), std::string::npos);
  what.id = 0;
  EXPECT_NE(violation_of(what, phase::serving).text.find("expected 1 or more"), std::string::npos);
}

TEST(ArrivingRequest, AnUnknownKindIsAViolation) {
  EXPECT_EQ(violation_of(a(kind::error, nullptr), phase::serving).code, errc::bad_request);
}

TEST(ArrivingRequest, HelloIsTheFirstFrameAndComesOnce) {
  auto hello = a(kind::hello, "hello"), lookup = a(kind::lookup, "lookup");
  EXPECT_EQ(violation_of(hello, phase::handshake).code, errc::ok);
  EXPECT_FALSE(refusal_of(hello, phase::handshake, false));
  EXPECT_NE(violation_of(lookup, phase::handshake).text.find("got lookup"), std::string::npos);
  auto refused = refusal_of(hello, phase::serving, false);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->malformed);
}

TEST(ArrivingRequest, WhileDrainingOnlyWhatGivesBackIsServed) {
  auto lookup = a(kind::lookup, "lookup"), release = a(kind::release, "release");
  release.while_draining = true;
  auto refused = refusal_of(lookup, phase::draining, false);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why.code, errc::busy);
  EXPECT_FALSE(refused->malformed);
  EXPECT_FALSE(refusal_of(release, phase::draining, false));
  EXPECT_FALSE(refusal_of(lookup, phase::serving, false));
}

TEST(ArrivingRequest, AnObserverOnlyLooks) {
  EXPECT_FALSE(refusal_of(a(kind::status, "status"), phase::serving, true));
  EXPECT_FALSE(refusal_of(a(kind::policies, "policies"), phase::serving, true));
  EXPECT_FALSE(refusal_of(a(kind::cancel, "cancel"), phase::serving, true));
  auto refused = refusal_of(a(kind::lookup, "lookup"), phase::serving, true);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->malformed);
}

TEST(ArrivingRequest, DescriptorsAreThoseOfTheVerb) {
  auto region = a(kind::register_region, "register_region");
  region.descriptors_of_verb = 1;
  auto refused = refusal_of(region, phase::serving, false);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why.text, "register_region takes 1 descriptors, 0 came");
  region.descriptors = 1;
  EXPECT_FALSE(refusal_of(region, phase::serving, false));
}

TEST(ArrivingRequest, PhasesHaveNames) {
  EXPECT_STREQ(to_string(phase::handshake), "handshake");
  EXPECT_STREQ(to_string(phase::quarantined), "quarantined");
}

TEST(ArrivingRequest, ItsVerbHasRules) {
  protocol::frame frame;
  frame.kind = kind::register_region;
  frame.request_id = 9;
  auto region = arriving(frame, true);
  EXPECT_EQ(region.id, 9u);
  EXPECT_TRUE(region.in_flight);
  EXPECT_STREQ(region.verb, "register_region");
  EXPECT_EQ(region.descriptors, 0u);
  EXPECT_EQ(region.descriptors_of_verb, 1u);
  EXPECT_FALSE(region.while_draining);
  frame.kind = kind::release;
  EXPECT_STREQ(arriving(frame, false).verb, "release");
  EXPECT_TRUE(arriving(frame, false).while_draining);
  frame.kind = protocol::answer_to(kind::release);
  EXPECT_EQ(arriving(frame, false).verb, nullptr) << "clients send no answers";
}

TEST(ArrivingRequest, ARefusalNamesItsFrameOrItsTrace) {
  protocol::frame frame;
  frame.kind = kind::lookup;
  frame.request_id = 9;
  error why{errc::bad_request, "expected a prefix"};
  EXPECT_EQ(with_frame(why, frame).text, "expected a prefix (frame of kind 6, request 9)");
  EXPECT_EQ(with_trace(why, "").text, "expected a prefix");
  EXPECT_EQ(with_trace(why, "abc").text, "expected a prefix (trace abc)");
  EXPECT_EQ(with_trace(why, "abc").code, errc::bad_request);
  EXPECT_EQ(no_memory_for(kind::lookup).text,
            "the daemon has no memory to serve this lookup; ask for less at a time");
}
