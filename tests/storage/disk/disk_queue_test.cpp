#include "storage/disk/disk_queue.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t page = 4096;
std::byte memory[64 * page];

struct DiskQueue : ::testing::Test {
  disk_queue queue{{.depth = 4,
                    .bytes_in_flight = 8 * page,
                    .piece_bytes = 4 * page,
                    .alone_bytes = 8 * page,
                    .beside_bytes = 4 * page}};

  using answer_ptr = std::shared_ptr<std::optional<disk_answer>>;
  using step = std::pair<uint64_t, disk_queue::transfer>;

  /// Makes operations of `pages` pages each, one behind the other in the file.
  static disk_request request(disk_direction direction, const std::vector<uint64_t>& pages, uint64_t at = 0) {
    disk_request made;
    made.direction = direction;
    for (uint64_t count : pages) {
      made.operations.push_back({at * page, memory + at * page, count * page});
      at += count;
    }
    return made;
  }
  answer_ptr add(disk_request what) {
    auto answer = std::make_shared<std::optional<disk_answer>>();
    queue.add(std::move(what), [answer](disk_answer value) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(value);
    });
    return answer;
  }
  answer_ptr read(const std::vector<uint64_t>& pages, uint64_t at = 0) {
    return add(request(disk_direction::read, pages, at));
  }
  answer_ptr write(const std::vector<uint64_t>& pages, uint64_t at = 0) {
    return add(request(disk_direction::write, pages, at));
  }
  std::vector<step> all_next() {
    std::vector<step> out;
    while (auto one = queue.next())
      out.push_back(std::move(*one));
    return out;
  }
  void complete(const step& what) { queue.completed(what.first, static_cast<int32_t>(what.second.bytes)); }
};

} // namespace

TEST_F(DiskQueue, AnswersOnceWhenTheLastOperationIsDone) {
  auto answer = read({1, 2});
  auto steps = all_next();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].second.file_offset, page);
  EXPECT_EQ(steps[1].second.memory, memory + page);
  EXPECT_EQ(steps[1].second.bytes, 2 * page);
  complete(steps[1]);
  EXPECT_FALSE(*answer);
  complete(steps[0]);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, (std::vector{0, 0}));
  EXPECT_EQ(queue.in_flight(), 0u);
}

TEST_F(DiskQueue, AnEmptyRequestIsAnsweredAtOnce) {
  EXPECT_TRUE(*read({}));
  EXPECT_FALSE(queue.next());
}

TEST_F(DiskQueue, KeepsToItsDepth) {
  read({1, 1, 1, 1, 1, 1});
  auto steps = all_next();
  EXPECT_EQ(steps.size(), 4u);
  EXPECT_EQ(queue.waiting(), 2u);
  complete(steps[2]);
  EXPECT_EQ(all_next().size(), 1u);
}

TEST_F(DiskQueue, KeepsToItsBytes) {
  read({3, 3, 3});
  auto steps = all_next();
  EXPECT_EQ(steps.size(), 2u);
  complete(steps[0]);
  EXPECT_EQ(all_next().size(), 1u);
}

TEST_F(DiskQueue, AnOperationLargerThanAllBytesGoesAlone) {
  queue = disk_queue({.depth = 4, .bytes_in_flight = 2 * page, .piece_bytes = 4 * page});
  read({4, 1});
  auto steps = all_next();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].second.bytes, 4 * page);
  complete(steps[0]);
  EXPECT_EQ(all_next().size(), 1u);
}

TEST_F(DiskQueue, LongOperationsAreCutAndTheirPartsGoBesideEachOtherBeforeTheNext) {
  auto answer = read({6, 1});
  auto steps = all_next();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].second.bytes, 4 * page);
  EXPECT_TRUE(steps[0].second.first);
  EXPECT_EQ(steps[1].second.file_offset, 4 * page);
  EXPECT_EQ(steps[1].second.memory, memory + 4 * page);
  EXPECT_EQ(steps[1].second.bytes, 2 * page);
  EXPECT_FALSE(steps[1].second.first);
  EXPECT_EQ(steps[2].second.file_offset, 6 * page);
  complete(steps[1]);
  complete(steps[2]);
  EXPECT_FALSE(*answer);
  complete(steps[0]);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, (std::vector{0, 0}));
}

TEST_F(DiskQueue, AfterAnErrorNoMoreOfAnOperationIsStartedAndItsFirstErrorIsTheAnswer) {
  auto answer = read({20, 1});
  auto steps = all_next();
  ASSERT_EQ(steps.size(), 2u); // as many bytes as may be in flight; 12 pages wait
  queue.completed(steps[1].first, -EIO);
  EXPECT_FALSE(*answer);
  steps.resize(1);
  auto other = queue.next();
  ASSERT_TRUE(other);
  EXPECT_EQ(other->second.file_offset, 20 * page);
  complete(*other);
  EXPECT_FALSE(*answer) << "the kernel still has a part";
  queue.completed(steps[0].first, -ENODEV);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, (std::vector{EIO, 0}));
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_EQ(queue.in_flight(), 0u);
}

TEST_F(DiskQueue, AShortTransferGoesOnBehindItsEnd) {
  auto answer = read({3});
  auto steps = all_next();
  queue.completed(steps[0].first, page);
  steps = all_next();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].second.file_offset, page);
  EXPECT_EQ(steps[0].second.memory, memory + page);
  EXPECT_EQ(steps[0].second.bytes, 2 * page);
  complete(steps[0]);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{0});
}

TEST_F(DiskQueue, TransfersThatTheKernelPutOffAreTriedAgain) {
  auto answer = read({1});
  queue.completed(all_next()[0].first, -EAGAIN);
  EXPECT_FALSE(*answer);
  queue.completed(all_next()[0].first, -EINTR);
  EXPECT_FALSE(*answer);
  complete(all_next()[0]);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{0});
}

TEST_F(DiskQueue, EveryOperationHasItsOwnError) {
  auto answer = write({1, 1, 1});
  auto steps = all_next();
  queue.completed(steps[0].first, -EIO);
  complete(steps[1]);
  queue.completed(steps[2].first, -ENOSPC);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, (std::vector{EIO, 0, ENOSPC}));
}

TEST_F(DiskQueue, ATransferOfNoBytesIsAnErrorAndNotALoop) {
  auto answer = read({1});
  queue.completed(all_next()[0].first, 0);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{EIO});
}

TEST_F(DiskQueue, ReadsGoBeforeWrites) {
  write({1});
  read({1}, 8);
  auto first = queue.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->second.direction, disk_direction::read);
  EXPECT_EQ(queue.next()->second.direction, disk_direction::write);
}

TEST_F(DiskQueue, AWriteBesideReadsIsCutSmallerAndGoesBetweenThem) {
  queue = disk_queue({.depth = 3, .piece_bytes = 4 * page, .beside_bytes = 2 * page});
  auto written = write({4});
  read({4, 4, 4}, 8);
  auto steps = all_next();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].second.direction, disk_direction::write);
  EXPECT_EQ(steps[1].second.bytes, 2 * page);
  EXPECT_TRUE(steps[1].second.first);
  complete(steps[1]);
  auto rest = queue.next();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->second.direction, disk_direction::write);
  EXPECT_EQ(rest->second.file_offset, 2 * page);
  EXPECT_FALSE(rest->second.first);
  complete(*rest);
  EXPECT_TRUE(*written);
}

TEST_F(DiskQueue, EachUrgencyHasALineOfItsOwn) {
  auto prefetch = request(disk_direction::read, {1});
  prefetch.urgency = io_class::prefetch;
  auto scrub = request(disk_direction::read, {1});
  scrub.urgency = io_class::scrub;
  add(std::move(scrub));
  write({1});
  add(std::move(prefetch));
  read({1, 1});
  EXPECT_EQ(queue.waiting(io_class::load), 2u);
  EXPECT_EQ(queue.waiting(io_class::scrub), 1u);
  EXPECT_EQ(queue.waiting(), 5u);
  std::vector<io_class> order;
  for (const auto& one : all_next())
    order.push_back(one.second.priority);
  EXPECT_EQ(order, (std::vector{io_class::load, io_class::prefetch, io_class::write, io_class::scrub}));
  EXPECT_EQ(queue.bytes_in_flight(io_class::write), page);
}

TEST_F(DiskQueue, ATransferKnowsSinceWhenItsRequestWaits) {
  disk_queue::time_point then{std::chrono::seconds(5)};
  queue.add(
      request(disk_direction::read, {1}), [](disk_answer) {}, then);
  EXPECT_EQ(queue.next()->second.queued, then);
}

TEST_F(DiskQueue, WhatWaitsForARequestThatEndedIsNotStarted) {
  auto of = context();
  disk_request what = request(disk_direction::read, {1, 1, 1, 1, 1, 1});
  what.context = of;
  auto answer = add(std::move(what));
  auto steps = all_next();
  of->ended = errc::cancelled;
  EXPECT_FALSE(*answer); // the kernel still writes into its memory
  complete(steps[0]);
  EXPECT_FALSE(queue.next());
  EXPECT_FALSE(*answer);
  for (size_t i = 1; i < steps.size(); ++i)
    complete(steps[i]);
  EXPECT_FALSE(queue.next());
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, (std::vector{0, 0, 0, 0, ECANCELED, ECANCELED}));
}

TEST_F(DiskQueue, WhatWaitsCanBeFailedByDirection) {
  queue = disk_queue({.depth = 1});
  auto written = write({1});
  auto first = read({1, 1});
  auto running = queue.next();
  ASSERT_TRUE(running);
  queue.fail_waiting(disk_direction::read, ENODEV);
  EXPECT_FALSE(*first); // the kernel has its first operation
  complete(*running);
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->failed, (std::vector{0, ENODEV}));
  EXPECT_EQ(queue.waiting(), 1u);
  queue.fail_waiting(disk_direction::write, ENOSPC);
  ASSERT_TRUE(*written);
  EXPECT_EQ((*written)->failed, std::vector{ENOSPC});
}

TEST_F(DiskQueue, ACancelledRequestGivesWayToTheNext) {
  disk_request what = request(disk_direction::read, {1, 1});
  what.context = ended(errc::deadline);
  auto cancelled = add(std::move(what));
  auto alive = read({1}, 8);
  auto steps = all_next();
  EXPECT_TRUE(*cancelled);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].second.file_offset, 8 * page);
  complete(steps[0]);
  EXPECT_TRUE(*alive);
}

TEST_F(DiskQueue, OwnersAreKeptUntilTheKernelIsDone) {
  auto owner = std::make_shared<int>(1);
  std::weak_ptr<int> watched = owner;
  disk_request what = request(disk_direction::read, {1});
  what.owners = {std::move(owner)};
  auto answer = add(std::move(what));
  {
    auto started = queue.next();
    ASSERT_TRUE(started);
    EXPECT_FALSE(watched.expired());
    queue.completed(started->first, -EIO);
    EXPECT_TRUE(*answer);
    EXPECT_FALSE(watched.expired()); // the ring still has its copy
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(DiskQueue, OwnersOutliveTheQueueWhileATransferIsInTheKernel) {
  auto owner = std::make_shared<int>(1);
  std::weak_ptr<int> watched = owner;
  auto short_lived = std::make_unique<disk_queue>(io_limits{});
  disk_request what = request(disk_direction::write, {1});
  what.owners = {std::move(owner)};
  auto promise = std::make_shared<int>(2);
  std::weak_ptr<int> owed = promise;
  short_lived->add(std::move(what), [kept = std::move(promise)](disk_answer) {});
  auto started = short_lived->next();
  short_lived.reset();
  EXPECT_TRUE(owed.expired()); // the answer ends with the actor that owes it, not with the ring
  EXPECT_FALSE(watched.expired());
  started.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(DiskQueue, AStalledOperationIsAnsweredAndMakesRoomWhileItsOwnersStay) {
  auto owner = std::make_shared<int>(1);
  std::weak_ptr<int> watched = owner;
  disk_request what = request(disk_direction::read, {1, 1, 1, 1, 1});
  what.owners = {std::move(owner)};
  auto answer = add(std::move(what));
  {
    auto steps = all_next();
    ASSERT_EQ(steps.size(), 4u);
    queue.stalled(steps[1].first);
    EXPECT_EQ(queue.in_flight(), 3u);
    auto last = all_next();
    ASSERT_EQ(last.size(), 1u);
    EXPECT_NE(last[0].first, steps[1].first); // the tag belongs to the stalled operation
    for (size_t i : {0, 2, 3})
      complete(steps[i]);
    complete(last[0]);
    ASSERT_TRUE(*answer);
    EXPECT_EQ((*answer)->failed, (std::vector{0, ETIMEDOUT, 0, 0, 0}));
    EXPECT_FALSE(watched.expired());
    complete(steps[1]); // completes long after
    EXPECT_EQ(queue.in_flight(), 0u);
    read({1});
    EXPECT_EQ(queue.next()->first, steps[1].first);
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(DiskQueue, ConnectionsTakeTurns) {
  constexpr uint64_t mebibyte = 1 << 20;
  queue = disk_queue({.depth = 1});
  auto of = [](uint64_t connection) {
    auto made = context();
    made->connection = connection_id{connection};
    return made;
  };
  auto read_of = [&](uint64_t connection, std::vector<uint64_t> offsets) {
    disk_request made;
    made.context = of(connection);
    for (uint64_t offset : offsets)
      made.operations.push_back({offset, memory, mebibyte});
    return add(std::move(made));
  };
  auto greedy = read_of(1, {0, 1, 2, 3}), other = read_of(2, {100}), third = read_of(3, {200});
  std::vector<uint64_t> order;
  while (auto one = queue.next()) {
    order.push_back(one->second.file_offset);
    complete(*one);
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{0, 100, 200, 1, 2, 3}));
  EXPECT_TRUE(*greedy && *other && *third);
}

TEST_F(DiskQueue, ABegunOperationIsCompletedBeforeAnotherConnectionHasItsTurn) {
  queue = disk_queue({.depth = 1, .piece_bytes = 4 * page});
  auto made = request(disk_direction::read, {8});
  made.context = context();
  made.context->connection = connection_id{1};
  add(std::move(made));
  auto first = queue.next();
  ASSERT_TRUE(first);
  auto small = request(disk_direction::read, {1}, 20);
  small.context = context();
  small.context->connection = connection_id{2};
  add(std::move(small));
  complete(*first);
  auto rest = queue.next();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->second.file_offset, 4 * page);
}
