#include "base/large_pages.hpp"

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace terrace {
namespace {

constexpr uint64_t unit = large_page_bytes;
constexpr uint64_t page = 4096;

class LargePages : public ::testing::Test {
 protected:
  uint64_t bytes_that_exist() const {
    struct stat info {};
    EXPECT_EQ(::fstat(fd_.get(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  static constexpr uint64_t units = 6;
  unique_fd fd_ = [] {
    unique_fd fd(::memfd_create("large-pages-test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), units * unit), 0);
    return fd;
  }();
  mapping memory_ = mapping::map(fd_.get(), units* unit, true).value();
};

bool all_are(const std::byte* data, uint64_t bytes, std::byte value) {
  return std::all_of(data, data + bytes, [value](std::byte each) { return each == value; });
}

/// The kernel may have no large pages to give, so either all are made or none.
TEST_F(LargePages, AreMadeOfWhatDoesNotExist) {
  const uint64_t made = make_large_pages(memory_.data(), memory_.size());
  EXPECT_LE(made, units * unit);
  EXPECT_EQ(made % unit, 0U);
  EXPECT_GE(bytes_that_exist(), made);
  EXPECT_TRUE(all_are(memory_.data(), memory_.size(), std::byte{0}));
}

TEST_F(LargePages, LeaveWhatExistsAsItIs) {
  memory_.data()[2 * unit + 5] = std::byte{7};
  make_large_pages(memory_.data(), memory_.size());
  EXPECT_EQ(memory_.data()[2 * unit + 5], std::byte{7});
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  ASSERT_EQ(::ftruncate(fd_.get(), units * unit), 0);
  for (uint64_t i = 0; i < units; ++i)
    memory_.data()[i * unit] = std::byte{1};
  EXPECT_EQ(make_large_pages(memory_.data(), memory_.size()), 0U);
  EXPECT_EQ(bytes_that_exist(), units * page);
}

/// No page is made outside of the range, or for a unit that is only partly inside it.
TEST_F(LargePages, LieInsideTheRange) {
  const uint64_t made = make_large_pages(memory_.data() + unit + page, 3 * unit);
  EXPECT_LE(made, 2 * unit);
  EXPECT_LE(bytes_that_exist(), 2 * unit);
  EXPECT_EQ(make_large_pages(memory_.data(), 0), 0U);
  EXPECT_EQ(make_large_pages(memory_.data() + page, unit), 0U);
  EXPECT_EQ(make_large_pages(memory_.data() + 1, 1), 0U);
  EXPECT_LE(bytes_that_exist(), 2 * unit);
}

/// A client may write to its region while the daemon makes its pages.
TEST_F(LargePages, LoseNoByteThatIsWrittenMeanwhile) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> begin{false};
    std::thread writer([&] {
      auto other = mapping::map(fd_.get(), units * unit, true).value();
      begin = true;
      for (uint64_t at = 0; at < units * unit; at += page)
        other.data()[at + 17] = std::byte{9};
    });
    while (!begin) {
    }
    make_large_pages(memory_.data(), memory_.size());
    writer.join();
    for (uint64_t at = 0; at < units * unit; at += page)
      ASSERT_EQ(memory_.data()[at + 17], std::byte{9}) << at;
    ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
    ASSERT_EQ(::ftruncate(fd_.get(), units * unit), 0);
  }
}

TEST_F(LargePages, OfMemoryThatCannotBeReadAreNotMade) {
  ASSERT_EQ(::mprotect(memory_.data(), memory_.size(), PROT_NONE), 0);
  EXPECT_EQ(make_large_pages(memory_.data(), memory_.size()), 0U);
  EXPECT_EQ(bytes_that_exist(), 0U);
}

/// This works for shared memory only: a mapping of a file that ends earlier is left alone.
TEST_F(LargePages, BeyondTheEndOfTheFileAreNotMade) {
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  EXPECT_EQ(make_large_pages(memory_.data(), memory_.size()), 0U);
  EXPECT_EQ(bytes_that_exist(), 0U);
}

// ---- a single page ----

bool is_made(large_page_answer answer) {
  return answer == large_page_answer::made || answer == large_page_answer::slow;
}

/// The kernel may have no large page to give: then one small page may exist.
TEST_F(LargePages, OneIsMadeAloneAndZeroed) {
  const large_page_answer answer = make_large_page(memory_.data() + unit);
  EXPECT_EQ(bytes_that_exist(), is_made(answer) ? unit : page);
  EXPECT_TRUE(all_are(memory_.data(), memory_.size(), std::byte{0}));
}

TEST_F(LargePages, OneOfWhatExistsInPartHasTheSameBytes) {
  memory_.data()[5 * page + 7] = std::byte{7};
  EXPECT_EQ(::fallocate(fd_.get(), 0, 100 * page, page), 0); // mincore does not see it
  make_large_page(memory_.data());
  EXPECT_EQ(memory_.data()[5 * page + 7], std::byte{7});
  EXPECT_TRUE(all_are(memory_.data() + 6 * page, unit - 6 * page, std::byte{0}));
}

TEST_F(LargePages, OneOfMemoryThatCannotBeReadIsImpossible) {
  ASSERT_EQ(::mprotect(memory_.data(), memory_.size(), PROT_NONE), 0);
  EXPECT_EQ(make_large_page(memory_.data()), large_page_answer::impossible);
  EXPECT_EQ(bytes_that_exist(), 0U);
}

TEST_F(LargePages, OneIsImpossibleWhereTheProcessForbidsIt) {
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const large_page_answer answer = make_large_page(memory_.data());
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(answer, large_page_answer::impossible);
  EXPECT_LE(bytes_that_exist(), page);
}

TEST(LargePageAnswers, TellWhetherItIsWorthWhileToAskAgain) {
  for (int error : {ENOMEM, EAGAIN, EBUSY})
    EXPECT_EQ(large_page_refusal(error), large_page_answer::refused) << error;
  for (int error : {EINVAL, EFAULT, EPERM, ENOSYS})
    EXPECT_EQ(large_page_refusal(error), large_page_answer::impossible) << error;
  EXPECT_EQ(large_page_made(large_page_patience), large_page_answer::made);
  EXPECT_EQ(large_page_made(large_page_patience + std::chrono::nanoseconds(1)), large_page_answer::slow);
}

} // namespace
} // namespace terrace
