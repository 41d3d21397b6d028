#include "base/error.hpp"
#include "base/ids.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(Errc, TheNumbersAndNamesAreThoseOfTheWire) {
  const std::pair<int, const char*> expected[] = {{0, "ok"},          {1, "busy"},        {2, "not_found"},
                                                  {3, "gone"},        {4, "deadline"},    {5, "cancelled"},
                                                  {6, "no_space"},    {7, "bad_request"}, {8, "denied"},
                                                  {9, "unsupported"}, {10, "internal"}};
  for (auto [number, name] : expected)
    EXPECT_EQ(to_string(static_cast<errc>(number)), name);
  EXPECT_EQ(to_string(static_cast<errc>(11)), "unknown");
  EXPECT_EQ(to_string(static_cast<errc>(255)), "unknown");
}

TEST(Result, CarriesAValueOrWhatWentWrong) {
  result<int> good = 7;
  EXPECT_EQ(*good, 7);
  result<int> bad = fail(errc::busy, "try again");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), (error{errc::busy, "try again"}));
}

TEST(Result, AValueThatIsNotThereSaysWhy) {
  result<int> none = fail(errc::gone, "the lease has ended; look up again");
  try {
    (void) none.value();
    FAIL() << "it has no value";
  } catch (const std::exception& thrown) {
    EXPECT_STREQ(thrown.what(), "the lease has ended; look up again (gone)");
  }
  EXPECT_THROW((void) result<int>(none).value(), tl::bad_expected_access<error>);
  try {
    const result<std::string> nothing = fail(errc::busy, "try again");
    (void) nothing.value();
    FAIL() << "it has no value";
  } catch (const tl::bad_expected_access<error>& thrown) {
    EXPECT_EQ(thrown.error().code, errc::busy);
  }
}

TEST(LeaseId, IsEmptyUntilItIsGivenOut) {
  lease_id id;
  EXPECT_TRUE(id.empty());
  id.bytes[15] = 1;
  EXPECT_FALSE(id.empty());
}

TEST(TierKind, IsOrderedFromTheFastest) {
  EXPECT_LT(tier_kind::gpu, tier_kind::host);
  EXPECT_LT(tier_kind::host, tier_kind::disk);
  EXPECT_LT(tier_kind::disk, tier_kind::remote);
  EXPECT_STREQ(to_string(tier_kind::disk), "disk");
  EXPECT_STREQ(to_string(tier_kind::none), "none");
}

} // namespace
} // namespace terrace
