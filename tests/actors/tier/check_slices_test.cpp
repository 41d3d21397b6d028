// A check that falls into a request of several turns.
#include "group_fixture.hpp"

#include "tier/objects/residency.hpp"
#include "tier/objects/tier_check.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct CheckSlices : group_fixture {
  static constexpr size_t objects = residency::clear_objects_max + 400;

  CheckSlices() { start({.host_objects = 32, .disk_objects = 2'048}); }

  /// Objects of the disk tier that no test reads.
  void publish() {
    acquire_request place;
    place.objects = chain(0, objects, payload);
    auto acquired = ask<acquire_answer>(disk_tier(), place);
    settle();
    ASSERT_TRUE(*acquired);
    publish_request complete;
    complete.places = (*acquired)->places;
    complete.space = in;
    ask<publish_answer>(disk_tier(), complete);
    settle();
    ASSERT_EQ(report(disk_tier()).objects, objects);
  }

  uint64_t begin_walk() {
    auto begun = ask<check_tier_answer>(disk_tier(), check_tier_request{});
    settle();
    return (*begun)->walk;
  }
};

} // namespace

TEST_F(CheckSlices, BetweenTwoTurnsOfAClearFindNothing) {
  publish();
  uint64_t walk = begin_walk();
  auto cleared = ask<clear_answer>(disk_tier(), clear_request{in->id});
  std::vector<box<check_tier_answer>> slices; // they are in the mailbox before the clear's second turn
  for (size_t slots = 0; slots < objects; slots += check_slots)
    slices.push_back(ask<check_tier_answer>(disk_tier(), check_tier_request{walk}));
  settle();
  ASSERT_TRUE(*cleared);
  EXPECT_EQ((*cleared)->objects, objects);
  uint64_t seen = 0;
  for (const auto& slice : slices) {
    ASSERT_TRUE(*slice);
    EXPECT_EQ((*slice)->failure.code, errc::ok) << (*slice)->failure.text;
    for (const std::string& difference : (*slice)->differences)
      ADD_FAILURE() << difference;
    seen += (*slice)->objects;
  }
  EXPECT_TRUE((*slices.back())->last);
  EXPECT_EQ(seen, objects - residency::clear_objects_max) << "they did not fall between the turns";
}
