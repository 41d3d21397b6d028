#include "memory/region_populator.hpp"

#include "memory/client_mapping.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <vector>

namespace terrace::test {
namespace region_populator_test {

constexpr uint64_t page = populate_steps::page_bytes;
constexpr uint64_t region_bytes = 8 << 20;

unique_fd sealed_memory(uint64_t bytes, int more_seals = 0) {
  unique_fd fd(::memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | more_seals), 0);
  return fd;
}

void write_pages(int fd, uint64_t first, uint64_t count) {
  std::vector<char> bytes(count * page, 'x');
  EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(first * page)),
            static_cast<ssize_t>(bytes.size()));
}

uint64_t pages_that_exist(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512 / page;
}

/// Returns how many pages of this process's memory are in its page tables.
uint64_t mapped_pages(const std::byte* data, uint64_t bytes) {
  unique_fd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::vector<uint64_t> entries(bytes / page);
  auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(data) / page * sizeof(uint64_t));
  EXPECT_EQ(::pread(map.get(), entries.data(), entries.size() * sizeof(uint64_t), at),
            static_cast<ssize_t>(entries.size() * sizeof(uint64_t)));
  return static_cast<uint64_t>(
      std::count_if(entries.begin(), entries.end(), [](uint64_t each) { return (each >> 63) != 0; }));
}

class RegionAhead : public ::testing::Test {
 protected:
  void SetUp() override {
    mapping probe = mapping::map(sealed_memory(page).get(), page, true).value();
    if (::madvise(probe.data(), page, MADV_POPULATE_READ) != 0)
      GTEST_SKIP() << "this kernel cannot populate (before Linux 5.14)";
  }

  uint64_t pass() { return pass(ahead_); }
  uint64_t pass(region_ahead& of) {
    uint64_t bytes = 0;
    while (auto more = of.go_on(fd_.get(), memory_.data(), region_bytes))
      bytes += *more;
    return bytes;
  }

  unique_fd fd_ = sealed_memory(region_bytes);
  mapping memory_ = mapping::map(fd_.get(), region_bytes, true).value();
  region_ahead ahead_{{}, region_bytes};
};

TEST_F(RegionAhead, MapsWhatExistsAndMakesNothing) {
  write_pages(fd_.get(), 0, 3);
  write_pages(fd_.get(), 1000, 40);
  EXPECT_EQ(pass(), 43 * page);
  EXPECT_EQ(pages_that_exist(fd_.get()), 43u);
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), 43u);
  EXPECT_EQ(memory_.data()[1000 * page], std::byte{'x'});
}

TEST_F(RegionAhead, ACopyMakesItDueForWhatCameLater) {
  EXPECT_FALSE(ahead_.copy_begins()); // the pass of the registration still waits
  EXPECT_EQ(pass(), 0u);
  write_pages(fd_.get(), 0, 512);
  EXPECT_FALSE(ahead_.copy_begins()); // the last pass found nothing, so the second copy asks for the next
  EXPECT_TRUE(ahead_.copy_begins());
  EXPECT_FALSE(ahead_.copy_begins()); // a pass waits already
  EXPECT_EQ(pass(), 512 * page);
  EXPECT_TRUE(ahead_.copy_begins());
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), 512u);
}

/// The copier maps the slice just as fast.
TEST_F(RegionAhead, APassLeavesOutWhatACopyHasReached) {
  write_pages(fd_.get(), 0, region_bytes / page);
  ahead_.before_store(region_ahead::slice_bytes);
  ahead_.before_store(0);
  EXPECT_EQ(pass(), region_bytes - 2 * region_ahead::slice_bytes);
  EXPECT_LE(mapped_pages(memory_.data(), 2 * region_ahead::slice_bytes), 16u); // neighbors of the third
  EXPECT_FALSE(ahead_.copy_begins()); // no copy is left until the next pass
}

TEST_F(RegionAhead, AWholeRegionIsNeverDueAgain) {
  write_pages(fd_.get(), 0, region_bytes / page);
  EXPECT_EQ(pass(), region_bytes);
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(ahead_.copy_begins());
  memory_.data()[region_bytes - 1] = std::byte{1}; // it was mapped for reading, and so for writing
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), region_bytes / page);
}

TEST_F(RegionAhead, AReadOnlyRegionIsMappedForReading) {
  fd_ = sealed_memory(region_bytes);
  write_pages(fd_.get(), 0, 100);
  ASSERT_EQ(::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  memory_ = mapping::map(fd_.get(), region_bytes, false).value();
  EXPECT_EQ(pass(), 100 * page);
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), 100u);
}

// ---- before a load ----

constexpr uint64_t slice = region_ahead::slice_bytes;

large_page_answer next_answer;     ///< answer of `some_maker`
std::vector<std::byte*> asked_for; ///< units that loads asked for
large_page_answer some_maker(std::byte* unit) {
  asked_for.push_back(unit);
  return next_answer;
}

class BeforeALoad : public RegionAhead {
 protected:
  BeforeALoad() {
    asked_for.clear();
    next_answer = large_page_answer::made;
  }
  uint64_t before_load(uint64_t number) { return ahead_.before_load(memory_.data(), number * slice); }
  uint64_t answers(large_page_answer of) const {
    return populator_->large_pages().answers()[static_cast<size_t>(of)];
  }

  std::shared_ptr<region_populator> populator_ =
      std::make_shared<region_populator>(std::function<void()>(), some_maker);
  region_ahead ahead_{populator_, region_bytes};
};

TEST_F(BeforeALoad, WhatDoesNotExistIsMadeAsALargePageOnce) {
  EXPECT_TRUE(ahead_.is_new(slice));
  EXPECT_EQ(before_load(1), slice);
  EXPECT_FALSE(ahead_.is_new(slice));
  EXPECT_TRUE(ahead_.is_new(0));
  EXPECT_EQ(before_load(1), 0U);
  EXPECT_EQ(asked_for, std::vector{memory_.data() + slice});
  EXPECT_EQ(answers(large_page_answer::made), 1U);
}

TEST_F(BeforeALoad, TheKernelsPageHasNothingBesideIt) {
  auto real = std::make_shared<region_populator>();
  region_ahead ahead(real, region_bytes);
  EXPECT_EQ(ahead.before_load(memory_.data(), slice), slice);
  EXPECT_LE(pages_that_exist(fd_.get()), slice / page);
  EXPECT_GE(::lseek(fd_.get(), 0, SEEK_DATA), static_cast<off_t>(slice));
  const auto given = real->large_pages().answers();
  EXPECT_EQ(std::accumulate(given.begin(), given.end(), uint64_t{0}), 1U);
}

TEST_F(BeforeALoad, WhatExistsIsMappedAndNothingIsMade) {
  write_pages(fd_.get(), 512, 512);
  write_pages(fd_.get(), 1030, 10);
  EXPECT_EQ(before_load(1), 2 * slice);
  EXPECT_EQ(mapped_pages(memory_.data() + slice, slice), 512U);
  EXPECT_EQ(before_load(2), 2 * 10 * page);
  EXPECT_EQ(mapped_pages(memory_.data() + 2 * slice, slice), 10U);
  EXPECT_EQ(pages_that_exist(fd_.get()), 522U);
  EXPECT_TRUE(asked_for.empty());
}

TEST_F(BeforeALoad, NothingIsDoneWhereAPassHasMappedAllPages) {
  write_pages(fd_.get(), 0, 512 + 100);
  pass(ahead_);
  EXPECT_FALSE(ahead_.is_new(0));
  EXPECT_EQ(before_load(0), 0U);
  EXPECT_EQ(before_load(1), 2 * 100 * page); // more pages may have come since
}

TEST_F(BeforeALoad, AfterARefusalSomeAreLeftToTheFaults) {
  next_answer = large_page_answer::refused;
  EXPECT_EQ(before_load(0), slice); // it may have taken long
  EXPECT_EQ(before_load(1), 0U);    // a pause follows
  next_answer = large_page_answer::made;
  EXPECT_EQ(before_load(2), slice);
  EXPECT_EQ(asked_for, (std::vector{memory_.data(), memory_.data() + 2 * slice}));
  EXPECT_EQ(answers(large_page_answer::refused), 1U);
  EXPECT_EQ(pages_that_exist(fd_.get()), 0U);
}

/// Fragmented memory is a property of the machine, whichever region it is for.
TEST_F(BeforeALoad, ARefusalIsForAllRegions) {
  next_answer = large_page_answer::refused;
  before_load(0);
  region_ahead other(populator_, region_bytes);
  EXPECT_EQ(other.before_load(memory_.data(), 0), 0U);
  EXPECT_EQ(asked_for.size(), 1U);
}

TEST_F(BeforeALoad, AMappingThatCannotHaveThemIsNotAskedForAgain) {
  next_answer = large_page_answer::impossible;
  EXPECT_EQ(before_load(0), slice);
  for (uint64_t i = 1; i < region_bytes / slice; ++i)
    EXPECT_EQ(before_load(i), 0U);
  region_ahead other(populator_, region_bytes);
  next_answer = large_page_answer::made;
  EXPECT_EQ(other.before_load(memory_.data(), 0), slice);
  EXPECT_EQ(answers(large_page_answer::impossible), 1U);
  EXPECT_EQ(asked_for.size(), 2U);
}

TEST_F(BeforeALoad, ARegionThatBeginsElsewhereHasNone) {
  EXPECT_EQ(ahead_.before_load(memory_.data() + page, 0), 0U);
  EXPECT_TRUE(asked_for.empty());
}

TEST_F(BeforeALoad, TheEndOfARegionIsLeftToTheFaults) {
  region_ahead odd(populator_, 2 * slice - page);
  EXPECT_EQ(odd.before_load(memory_.data(), slice), 0U);
  EXPECT_TRUE(asked_for.empty());
}

TEST_F(BeforeALoad, NothingIsDoneAfterTheEndOfThePopulator) {
  populator_.reset();
  EXPECT_EQ(before_load(0), 0U);
  EXPECT_TRUE(asked_for.empty());
}

TEST_F(BeforeALoad, MemoryThatCannotBeMappedIsLeftToTheFaults) {
  write_pages(fd_.get(), 0, 512);
  ASSERT_EQ(::mprotect(memory_.data(), region_bytes, PROT_NONE), 0);
  next_answer = large_page_answer::impossible;
  EXPECT_EQ(before_load(0), slice); // the slice looked like a hole
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), 0U);
}

TEST_F(RegionAhead, PagesAreLeftAloneWhereTheKernelDoesNotTellWhichExist) {
  write_pages(fd_.get(), 0, 100);
  EXPECT_FALSE(ahead_.go_on(-1, memory_.data(), region_bytes));
  EXPECT_EQ(mapped_pages(memory_.data(), region_bytes), 0u);
}

/// A populator that does nothing until `open`.
struct held_populator {
  std::promise<void> gate;
  std::shared_ptr<region_populator> what =
      std::make_shared<region_populator>([waiting = gate.get_future().share()] { waiting.wait(); });
};

TEST(RegionPopulator, DoesNotKeepARegion) {
  held_populator populator;
  auto teardown_thread = std::make_shared<teardown>();
  auto budget = region_budget::make({"the test", region_bytes, 1});
  auto region = client_region::open(sealed_memory(region_bytes), region_bytes,
                                    {budget->take(region_bytes).value(), teardown_thread, populator.what})
                    .value();
  EXPECT_EQ(populator.what->waiting(), 1u);
  region.reset();
  teardown_thread->finish();
  EXPECT_EQ(budget->regions(), 0u);
  populator.gate.set_value();
  populator.what->finish();
}

/// An owner that wants the bytes of a region that has ended need not find it held for a slice.
TEST(RegionPopulator, TellsWhenItHoldsARegionNoLonger) {
  auto populator = std::make_shared<region_populator>();
  for (int round = 0; round < 200; ++round) {
    auto fd = sealed_memory(region_bytes);
    write_pages(fd.get(), 0, 16);
    auto region = client_region::open(std::move(fd), region_bytes, {{}, nullptr, populator}).value();
    std::weak_ptr<const client_region> weak = region;
    region.reset();
    std::promise<bool> ended;
    populator->after_slice([&] { ended.set_value(weak.expired()); });
    EXPECT_TRUE(ended.get_future().get());
  }
  populator->finish();
  bool ran = false;
  populator->after_slice([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(RegionPopulator, MapsRegionsFromTheirRegistrationOn) {
  auto populator = std::make_shared<region_populator>();
  auto fd = sealed_memory(region_bytes);
  write_pages(fd.get(), 0, region_bytes / page);
  auto region = client_region::open(std::move(fd), region_bytes, {{}, nullptr, populator}).value();
  std::weak_ptr<const client_region> weak = region;
  region->copy_begins(); // asks for no second pass, because one waits already
  populator->finish();
  EXPECT_LE(populator->populated_bytes(), region_bytes);
  // The kernel also maps neighbors of a slice, and the last slice may not have had its turn.
  EXPECT_LE(populator->populated_bytes() / page, mapped_pages(region->data(), region_bytes));
  region.reset();
  EXPECT_TRUE(weak.expired());
}

TEST(RegionPopulator, WhatWaitsAtItsEndIsDropped) {
  held_populator populator;
  std::vector<std::shared_ptr<const client_region>> regions;
  for (int i = 0; i < 10; ++i)
    regions.push_back(
        client_region::open(sealed_memory(region_bytes), region_bytes, {{}, nullptr, populator.what})
            .value());
  EXPECT_EQ(populator.what->waiting(), 10u);
  populator.gate.set_value();
  populator.what->finish();
  populator.what->finish();
  EXPECT_EQ(regions.front().use_count(), 1);
  regions.front()->copy_begins();
  populator.what->add(regions.front()); // the populator has ended
}

} // namespace region_populator_test
} // namespace terrace::test
