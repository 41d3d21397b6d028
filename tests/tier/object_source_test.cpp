#include "tier/object_source.hpp"

#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

space_ptr space() {
  auto spec = terrace::testing::mixed_space();
  return std::make_shared<const opened_space>(opened_space{space_id{9}, spec, spec.fingerprint()});
}

} // namespace

TEST(ObjectSource, MakesAnyPartOfTheKeysOfAllRanks) {
  auto in = space();
  chunk_layout layout(in->spec);
  auto chunks = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < 7; ++n)
    chunks->push_back(key_of(n).chunk);
  object_source all(in, chunks);
  ASSERT_EQ(all.size(), 35u);
  for (size_t first = 0; first <= all.size(); ++first)
    for (size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{11}, SIZE_MAX}) {
      auto part = all.cut(first, count);
      ASSERT_EQ(part.range.first, 0u);
      ASSERT_EQ(part.range.count, std::min(count, all.size() - first));
      ASSERT_EQ(part.objects->size(), part.range.count);
      for (size_t i = 0; i < part.range.count; ++i)
        ASSERT_EQ(part.objects->keys[i],
                  layout.key(in->id, (*chunks)[(first + i) / 5], static_cast<uint32_t>((first + i) % 5)));
      if (part.range.count == 0)
        continue;
      EXPECT_TRUE(part.objects->trailing.test(2));
      EXPECT_FALSE(part.objects->trailing.test(0));
    }
}

TEST(ObjectSource, APartOfABatchIsARangeOfIt) {
  auto batch = chain(0, 10);
  object_source all(batch);
  EXPECT_EQ(all.size(), 10u);
  auto part = all.cut(8, 5);
  EXPECT_EQ(part.objects, batch);
  EXPECT_EQ(part.range.first, 8u);
  EXPECT_EQ(part.range.count, 2u);
  EXPECT_EQ(all.cut(11, 1).range.count, 0u);
}

TEST(ObjectSource, MayBeEmpty) {
  EXPECT_EQ(object_source().size(), 0u);
  EXPECT_EQ(object_source().cut(0, 9).range.count, 0u);
}
