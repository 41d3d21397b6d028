#include "storage/index_journal.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

constexpr uint64_t volume_bytes = 1 << 20;

index_record object(uint64_t generation, uint64_t offset) {
  index_record r;
  r.space = 1;
  r.generation = generation;
  r.offset = offset;
  return r;
}

std::vector<index_record> published(const journal_events& events) {
  std::vector<index_record> list;
  events.for_each_published([&](const index_record& r) { list.push_back(r); });
  return list;
}

using list = std::vector<index_record>;

TEST(JournalEvents, TheHighestGenerationOfAnOffsetCountsWhateverTheOrder) {
  journal_events events(volume_bytes);
  for (const index_record& r :
       {object(5, 4096), object(3, 0), object(7, 4096), object(6, 4096), object(3, 0)})
    events.add(r);
  events.settle();
  EXPECT_EQ(published(events), (list{object(3, 0), object(7, 4096)}));
  EXPECT_EQ(events.size(), 2u);
}

TEST(JournalEvents, ARemovalIsLaterThanThePublicationOfItsGeneration) {
  journal_events events(volume_bytes);
  events.add(removal_of(object(3, 0)));
  events.add(object(3, 0));
  events.add(removal_of(object(3, 8192)));
  events.add(object(4, 8192));
  events.settle();
  EXPECT_EQ(published(events), (list{object(4, 8192)}));
}

TEST(JournalEvents, SupersedeWhatIsNotNewerAtTheirOffset) {
  journal_events events(volume_bytes);
  events.add(removal_of(object(5, 4096)));
  events.settle();
  EXPECT_TRUE(events.supersedes(object(4, 4096)));
  EXPECT_TRUE(events.supersedes(object(5, 4096)));
  EXPECT_FALSE(events.supersedes(object(6, 4096)));
  EXPECT_FALSE(events.supersedes(object(4, 0)));
  EXPECT_FALSE(events.supersedes(object(4, 8192)));
}

TEST(JournalEvents, CountBeyondTheArenaToo) {
  journal_events events(volume_bytes);
  events.add(object(5, 2 * volume_bytes));
  events.settle();
  EXPECT_TRUE(events.supersedes(object(4, 2 * volume_bytes)));
  EXPECT_FALSE(events.supersedes(object(4, 3 * volume_bytes)));
  EXPECT_EQ(published(events).size(), 1u);
}

} // namespace
} // namespace terrace
