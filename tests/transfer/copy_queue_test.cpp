// Whose copies a copier does next, and that all are done completely.
#include "transfer/copy_queue.hpp"

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "index/object_header.hpp"
#include "memory/region_populator.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <random>
#include <vector>

using namespace terrace;

namespace {

constexpr uint64_t mebibyte = 1 << 20;

struct CopyQueue : ::testing::Test {
  copy_queue line{8 * mebibyte};
  std::vector<std::byte> inside = std::vector<std::byte>(16 * mebibyte);
  std::vector<std::byte> region = std::vector<std::byte>(32 * mebibyte, std::byte{7});
  space_ptr in = std::make_shared<opened_space>(
      opened_space{space_id{1}, terrace::test::small_space(), terrace::test::small_space().fingerprint()});
  std::vector<uint64_t> done; ///< connections, in the order in which their copies ended

  bool ahead = false; ///< of demand: the requests made from now on

  context_ptr context_of(const flow& of) const {
    auto made = std::make_shared<request_context>();
    made->ahead = ahead;
    made->group = of.group;
    made->connection = connection_id{of.connection};
    return made;
  }
  /// An object of so many bytes, in pieces of `piece` bytes, between which are gaps as long.
  std::shared_ptr<const scatter_gather> runs_of(uint64_t bytes, uint64_t piece) const {
    std::vector<region_run> runs;
    if (bytes / piece != 0)
      runs.push_back({0, piece, 2 * piece, bytes / piece});
    if (bytes % piece != 0)
      runs.push_back({bytes / piece * 2 * piece, bytes % piece, 0, 1});
    std::vector<uint32_t> per_object{static_cast<uint32_t>(runs.size())};
    std::vector<uint64_t> sizes{bytes};
    return std::make_shared<const scatter_gather>(
        scatter_gather::make(runs, per_object, sizes, region.size()).value());
  }
  /// A copy into the arena in pieces of `piece` bytes.
  void copy(flow of, uint64_t bytes, uint64_t piece) {
    copy_request request;
    request.outside = {region.data(), -1, region.size(), nullptr};
    request.runs = runs_of(bytes, piece);
    request.objects.push_back({inside.data(), 0});
    request.context = context_of(of);
    line.add(std::move(request), [this, of, bytes](const copy_answer& answer) {
      EXPECT_EQ(answer.failure.code, errc::ok) << answer.failure.text;
      EXPECT_EQ(answer.bytes, bytes);
      done.push_back(of.connection);
    });
  }
  sealed_object object(uint64_t at, uint64_t bytes) {
    return {terrace::test::key_of(at), 1, inside.data() + at, bytes - object_header_bytes, bytes};
  }
  /// Objects of 4 MiB, one after the other.
  template <class Request, class Answer>
  void work(const flow& of, size_t objects) {
    Request request;
    request.space = in;
    for (size_t i = 0; i < objects; ++i)
      request.objects.push_back(object(i % 4 * 4 * mebibyte, 4 * mebibyte));
    request.context = context_of(of);
    line.add(std::move(request), [this, of](const Answer& answer) {
      EXPECT_EQ(answer.failure.code, errc::ok) << answer.failure.text;
      done.push_back(of.connection);
    });
  }
  void drain() {
    while (!line.empty())
      line.serve();
  }
};

TEST_F(CopyQueue, CopiesEverythingPieceByPiece) {
  copy({1, 1}, 3 * mebibyte + 5, 1000);
  copy({1, 2}, 5, 1);
  drain();
  EXPECT_EQ(done, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(inside[3 * mebibyte + 4], std::byte{7});
  EXPECT_EQ(inside[3 * mebibyte + 5], std::byte{0});
}

TEST_F(CopyQueue, AnEmptyCopyIsAnswered) {
  copy({1, 1}, 0, 1);
  drain();
  EXPECT_EQ(done.size(), 1u);
}

TEST_F(CopyQueue, ASmallCopyDoesNotWaitForMillionsOfTinyPieces) {
  for (int i = 0; i < 12; ++i)
    copy({1, 1}, mebibyte, 1);
  line.serve();
  copy({1, 2}, 4096, 4096);
  int slices = 0;
  for (; done.empty() || done.back() != 2; ++slices)
    line.serve();
  EXPECT_LE(slices, 2);
  drain();
  EXPECT_EQ(done.size(), 13u);
}

/// A first load into a client's memory costs twice as much as a later one.
TEST_F(CopyQueue, MappingIsChargedToWhoeverLoads) {
  auto populator = std::make_shared<region_populator>(std::function<void()>(),
                                                      [](std::byte*) { return large_page_answer::made; });
  unique_fd fd(::memfd_create("region", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 16 * mebibyte), 0);
  auto memory = mapping::map(fd.get(), 16 * mebibyte, true).value();
  ASSERT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % large_page_bytes, 0u);
  region_ahead mapped(populator, memory.size());
  copy_request load;
  load.direction = copy_direction::out_of_arena;
  load.outside = {.data = memory.data(), .bytes = memory.size(), .ahead = &mapped};
  load.runs = std::make_shared<const scatter_gather>(
      scatter_gather::make(std::vector<region_run>{{0, 12 * mebibyte}}, {},
                           std::vector<uint64_t>{12 * mebibyte}, memory.size())
          .value());
  load.objects.push_back({inside.data(), 0});
  load.context = context_of({1, 1});
  line.add(std::move(load), [this](const copy_answer& answer) {
    EXPECT_EQ(answer.bytes, 12 * mebibyte);
    done.push_back(1);
  });
  copy({1, 2}, 16 * mebibyte, 16 * mebibyte);
  drain();
  EXPECT_EQ(done, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(populator->large_pages().answers()[static_cast<size_t>(large_page_answer::made)], 6u);
}

TEST_F(CopyQueue, TinyPiecesAreChargedWhatTheyCost) {
  copy({1, 1}, mebibyte, 1);
  copy({1, 2}, 16 * mebibyte, 16 * mebibyte);
  int slices = 0;
  for (; done.empty(); ++slices)
    line.serve();
  EXPECT_EQ(done.front(), 2u) << "a million pieces cost more than 16 MiB at once";
}

TEST_F(CopyQueue, ObjectsAreSealedAndChecked) {
  seal_request seal;
  seal.space = in;
  for (uint64_t i = 0; i < 3; ++i)
    seal.objects.push_back(object(i * mebibyte, mebibyte));
  check_request check;
  check.space = in;
  check.objects = seal.objects;
  int sealed = 0;
  line.add(std::move(seal), [&](const seal_answer& answer) {
    EXPECT_EQ(answer.failure.code, errc::ok);
    ++sealed;
  });
  drain();
  EXPECT_EQ(sealed, 1);
  inside[mebibyte + object_header_bytes] ^= std::byte{1};
  std::vector<bool> good;
  line.add(std::move(check), [&](const check_answer& answer) { good = answer.good; });
  drain();
  EXPECT_EQ(good, (std::vector<bool>{true, false, true}));
}

TEST_F(CopyQueue, ALargeObjectIsChargedAsAWholeWhenItIsChecked) {
  work<check_request, check_answer>({1, 1}, 8);
  copy({1, 2}, 16 * mebibyte, 16 * mebibyte);
  drain();
  EXPECT_EQ(done, (std::vector<uint64_t>{2, 1})) << "32 MiB against 16";
}

TEST_F(CopyQueue, ALargeObjectIsChargedAsAWholeWhenItIsSealed) {
  work<seal_request, seal_answer>({1, 1}, 8);
  copy({1, 2}, 16 * mebibyte, 16 * mebibyte);
  drain();
  EXPECT_EQ(done, (std::vector<uint64_t>{2, 1}));
}

TEST_F(CopyQueue, ASliceHasAsManySmallObjectsAsItCosts) {
  seal_request seal;
  seal.space = in;
  seal.context = context_of({1, 1});
  for (uint64_t i = 0; i < 1000; ++i)
    seal.objects.push_back(object(i * 8192, 8192));
  line.add(std::move(seal), [&](const seal_answer&) { done.push_back(1); });
  copy({1, 2}, mebibyte / 2, mebibyte / 2);
  int slices = 0;
  for (; done.empty(); ++slices)
    line.serve();
  EXPECT_LE(slices, 2);
  drain();
  EXPECT_EQ(done, (std::vector<uint64_t>{2, 1}));
}

TEST_F(CopyQueue, GroupsGetEqualSharesHoweverManyConnectionsTheyHave) {
  for (uint64_t connection = 1; connection <= 8; ++connection)
    copy({1, connection}, 4 * mebibyte, 4 * mebibyte);
  copy({2, 99}, 4 * mebibyte, 4 * mebibyte);
  int slices = 0;
  for (; done.empty() || done.back() != 99; ++slices)
    line.serve();
  EXPECT_LE(slices, 10) << "every second slice is its own";
}

TEST_F(CopyQueue, WorkAheadOfDemandIsDoneAfterOthersButDoesNotStarve) {
  ahead = true;
  work<check_request, check_answer>({1, 1}, 1);
  ahead = false;
  for (size_t i = 0; i < copy_queue::patience + 2; ++i)
    copy({1, 2}, mebibyte / 2, mebibyte / 2);
  drain();
  ASSERT_EQ(done.size(), copy_queue::patience + 3);
  EXPECT_EQ(done[copy_queue::patience], 1u);
}

TEST_F(CopyQueue, ObjectsAreSealedAfterOthersButDoNotStarve) {
  work<seal_request, seal_answer>({1, 1}, 1);
  for (size_t i = 0; i < copy_queue::patience + 2; ++i)
    copy({1, 2}, mebibyte / 2, mebibyte / 2);
  drain();
  ASSERT_EQ(done.size(), copy_queue::patience + 3);
  EXPECT_EQ(done[copy_queue::patience], 1u);
}

TEST_F(CopyQueue, AnEndedRequestIsAnsweredInItsTurn) {
  copy_request request;
  request.context = std::make_shared<request_context>();
  request.context->ended = errc::cancelled;
  request.outside = {region.data(), -1, region.size(), nullptr};
  request.runs = runs_of(mebibyte, mebibyte);
  request.objects.push_back({inside.data(), 0});
  errc heard = errc::ok;
  line.add(std::move(request), [&](const copy_answer& answer) { heard = answer.failure.code; });
  drain();
  EXPECT_EQ(heard, errc::cancelled);
}

/// Random copies of random connections: all end, and the one of a connection that asks rarely soon.
TEST_F(CopyQueue, EveryCopyEnds) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    done.clear();
    size_t count = 1 + random() % 20;
    for (size_t i = 0; i < count; ++i)
      copy({random() % 2, 1 + random() % 4}, 1 + random() % mebibyte, 1 + random() % 5000);
    drain();
    EXPECT_EQ(done.size(), count);
  }
}

} // namespace

TEST_F(CopyQueue, KnowsThePayloadOfARequest) {
  copy_request copies;
  copies.runs = runs_of(3 * mebibyte, mebibyte);
  copies.objects.push_back({inside.data(), 0});
  EXPECT_EQ(copy_queue::payload_of(copies), 3 * mebibyte);
  seal_request seals;
  seals.objects = {object(0, mebibyte), object(mebibyte, mebibyte)};
  EXPECT_EQ(copy_queue::payload_of(seals), 2 * (mebibyte - object_header_bytes));
}
