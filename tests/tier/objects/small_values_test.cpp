#include "tier/objects/small_values.hpp"

#include "tests/tier/objects.hpp"
#include "tier/objects/residency.hpp"

#include <gtest/gtest.h>

#include <cstring>

using namespace terrace;
using namespace terrace::test;

namespace {

struct SmallValues : ::testing::Test {
  residency tier{tier_kind::host};
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 1 << 20, .segment_bytes = 1 << 20}).value();
  uint64_t next_offset = 0;
  small_values values;

  void store(uint64_t number, const std::string& bytes) {
    acquire_request request;
    request.objects = chain(number, 1, bytes.size());
    auto wanted = tier.missing(request);
    extent space{next_offset, wanted.sizes.front()};
    next_offset += space.size;
    auto taken = tier.acquire(request, wanted, {space});
    std::memcpy(memory->at(space.offset) + object_header_bytes, bytes.data(), bytes.size());
    tier.publish(taken.places, false);
  }
  bool read(uint64_t first, std::vector<uint32_t> copies) {
    return values.read(*tier.index(), *memory, chain(first, copies.size())->keys, copies);
  }
};

} // namespace

TEST_F(SmallValues, CopiesWhatIsThere) {
  store(0, "zero");
  store(1, "");
  store(2, "two");
  ASSERT_TRUE(read(0, {1, 1, 3}));
  EXPECT_EQ(values.of(0), "zero");
  EXPECT_EQ(values.of(1), "");
  EXPECT_EQ(values.of(2), "two");
  EXPECT_EQ(values.ids().size(), 3u);
  ASSERT_TRUE(read(2, {1}));
  EXPECT_EQ(values.of(0), "two");
}

TEST_F(SmallValues, RefusesWhatIsNotThereAndWhatIsTooLarge) {
  store(0, "zero");
  EXPECT_FALSE(read(0, {1, 1}));
  store(1, std::string(small_values::bytes_max / 2, 'x'));
  EXPECT_TRUE(read(0, {1, 1}));
  EXPECT_FALSE(read(0, {1, 2})) << "in all replies together";
  store(2, std::string(small_values::bytes_max + 1, 'x'));
  EXPECT_FALSE(read(2, {1}));
  EXPECT_TRUE(read(2, {0})) << "nobody wants its bytes";
}

TEST_F(SmallValues, RefusesWhileTheTierChangesItsIndex) {
  store(0, "zero");
  auto shut = const_cast<resident_table&>(tier.table()).shut();
  EXPECT_FALSE(read(0, {1}));
}
