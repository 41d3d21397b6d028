#include "transfer/write_admission.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace write_admission_test {

constexpr uint64_t payload = 4096;
const uint64_t physical = physical_bytes_for(payload);
const write_budget::time_point begin{};

struct switched final : tier_availability {
  bool on = true;
  bool reads() const override { return true; }
  bool writes() const override { return on; }
  std::string reason() const override { return {}; }
};

write_plan made(size_t objects) {
  std::vector<object_place> places(objects);
  for (size_t i = 0; i < objects; ++i)
    places[i] = {object_id{100 + i}, i * physical, payload, physical};
  write_through_notice notice;
  notice.objects = chain(1, objects, payload);
  notice.held = std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  return write_plan(std::move(notice));
}

write_admission admission(const admission_rules& rules, std::shared_ptr<offers_again> looks = nullptr) {
  return {tier_kind::disk, rules, nullptr, std::move(looks), begin};
}

TEST(WriteAdmission, AsksNobodyIfEverythingIsAdmitted) {
  auto all = admission({});
  EXPECT_FALSE(all.may_refuse());
  EXPECT_FALSE(all.asks_room());
  auto plan = made(2);
  EXPECT_FALSE(all.question(plan, 0));
  EXPECT_EQ(all.pay(plan, begin), 0u);
}

TEST(WriteAdmission, ABudgetAloneAsksNoPolicy) {
  auto limited = admission({admission_rule::always, {.bytes_per_day = 24 * physical}}); // one object per hour
  EXPECT_TRUE(limited.may_refuse());
  auto plan = made(2);
  EXPECT_FALSE(limited.question(plan, 0));
  EXPECT_EQ(limited.pay(plan, begin), 1u);
  limited.ended(plan);
  auto next = made(1);
  EXPECT_EQ(limited.pay(next, begin), 0u) << "the first passage wrote nothing";
}

TEST(WriteAdmission, ABudgetMayChange) {
  auto looks = std::make_shared<offers_again>(false);
  write_admission store(tier_kind::remote, {}, nullptr, looks, begin);
  EXPECT_FALSE(store.may_refuse());
  store.set_budget({.bytes_per_second = physical}, begin);
  EXPECT_TRUE(store.may_refuse());
  auto plan = made(3);
  EXPECT_EQ(store.pay(plan, begin), 2u);
  store.set_budget({}, begin);
  EXPECT_FALSE(store.may_refuse());
  auto next = made(3);
  EXPECT_EQ(store.pay(next, begin), 0u);
}

TEST(WriteAdmission, AsksThePolicyAboutWhatDoesNotFit) {
  auto looks = std::make_shared<offers_again>(false);
  auto rule = admission({admission_rule::beats_victim, {}}, looks);
  EXPECT_TRUE(rule.may_refuse());
  EXPECT_TRUE(rule.asks_room());
  auto plan = made(2);
  EXPECT_FALSE(rule.question(plan, 2 * physical));
  EXPECT_FALSE(*looks) << "the tier has room for what comes";
  auto asked = rule.question(plan, physical);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->entries.size(), 1u);
  EXPECT_EQ(asked->tier, tier_kind::disk);
  EXPECT_EQ(asked->rule, admission_rule::beats_victim);
  EXPECT_TRUE(*looks);
}

TEST(WriteAdmission, ARuleWithoutRoomAsksAboutEverything) {
  auto rule = admission({admission_rule::seen_twice, {}});
  EXPECT_TRUE(rule.may_refuse());
  EXPECT_FALSE(rule.asks_room());
  auto plan = made(2);
  auto asked = rule.question(plan, 0);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->entries.size(), 2u);
}

TEST(WriteAdmission, ADeviceOutOfServiceTakesNothing) {
  auto service = std::make_shared<switched>();
  write_admission disk(tier_kind::disk, {}, service, nullptr, begin);
  EXPECT_TRUE(disk.in_service());
  service->on = false;
  EXPECT_FALSE(disk.in_service());
  EXPECT_TRUE(admission({}).in_service()) << "without a device that can fail";
}

TEST(WriteAdmission, LoadsLookAgainOnlyWhereSomethingMayHaveBeenRefused) {
  EXPECT_FALSE(write_admission::looks_of({}, true));
  EXPECT_FALSE(write_admission::looks_of({admission_rule::seen_twice, {}}, false));
  auto twice = write_admission::looks_of({admission_rule::seen_twice, {}}, true);
  ASSERT_TRUE(twice);
  EXPECT_TRUE(*twice) << "what is stored once is refused";
  auto full = write_admission::looks_of({admission_rule::beats_victim, {}}, true);
  ASSERT_TRUE(full);
  EXPECT_FALSE(*full) << "until the tier is full";
}

} // namespace write_admission_test
