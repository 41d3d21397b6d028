// One operation of a whole course fails, or all from there on: store, write-through, leave host memory, load, clear,
// restart. The course is recorded once, and then played for each of its operations on the disk and each way to fail,
// with a shutdown and with a crash before the restart.
#include "disk_fixture.hpp"

#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <tuple>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;
using runtime::io_request;

namespace {

enum class fault : uint8_t {
  none,
  error,
  cut_short,
  never_completes,
  errors_from_now_on,
  nothing_completes_from_now_on
};

/// The two ways to end before a restart.
enum class ending : uint8_t { shutdown, crash };

bool moves_data(const io_request& request) {
  return request.code == io_code::read || request.code == io_code::write || request.code == io_code::readv ||
         request.code == io_code::writev;
}

bool is_of_the_disk(const io_request& request) {
  return moves_data(request) || request.code == io_code::fsync;
}

/// The first 512 bytes of a transfer, and no more.
int32_t first_bytes(const io_request& request) {
  bool listed = request.code == io_code::readv || request.code == io_code::writev;
  void* data = listed ? static_cast<const iovec*>(request.data)->iov_base : request.data;
  auto at = static_cast<off_t>(request.offset);
  bool reads = request.code == io_code::read || request.code == io_code::readv;
  auto moved = reads ? ::pread(request.fd, data, 512, at) : ::pwrite(request.fd, data, 512, at);
  return moved < 0 ? -errno : static_cast<int32_t>(moved);
}

/// A group of its own with its own files, in which operation `position` fails.
struct course : disk_fixture {
  course(size_t number_of_paths, fault how, size_t position)
      : whole(how == fault::none || how == fault::cut_short) {
    // Where there is such a folder, its volumes are made in no time.
    std::string in_memory = "/dev/shm/terrace-group-XXXXXX";
    if (::mkdtemp(in_memory.data()) != nullptr)
      folder = in_memory;
    start({.host_objects = 24, .disk_objects = 85, .disk_paths = number_of_paths});
    ring.respond([this, how, position](const io_request& request) -> std::optional<int32_t> {
      if (over || !is_of_the_disk(request))
        return std::nullopt;
      size_t now = operations++;
      if (now == position) {
        what = request.code;
        return begin_fault(how, request);
      }
      if (now > position && how == fault::errors_from_now_on)
        return -EIO;
      return std::nullopt;
    });
  }
  ~course() override { TearDown(); }
  void TestBody() override {}

  std::optional<int32_t> begin_fault(fault how, const io_request& request) {
    if (how == fault::error || how == fault::errors_from_now_on)
      return -EIO;
    if (how == fault::cut_short)
      return moves_data(request) ? first_bytes(request) : -EIO;
    if (how == fault::never_completes)
      ring.hold_those([lost = &request](const io_request& one) { return &one == lost; });
    if (how == fault::nothing_completes_from_now_on)
      ring.hold_those(is_of_the_disk);
    return std::nullopt;
  }

  /// Longer than an operation may take.
  void wait_out() {
    for (int i = 0; i < 6; ++i)
      advance(2500ms);
  }
  template <class Answer>
  Answer patiently(const box<Answer>& answer) {
    settle();
    for (int i = 0; i < 4 && !*answer; ++i)
      wait_out();
    EXPECT_TRUE(*answer) << "is not answered";
    return answer->value_or(Answer{{errc::internal, "no answer"}});
  }
  clear_answer clear_patiently(const tier_actor& tier) {
    return patiently(ask<clear_answer>(tier, clear_request{}));
  }

  /// What a load delivers is right, and what it does not deliver stays as it was.
  load_result load_right(uint64_t first, size_t count) {
    auto loaded = patiently(begin_load(first, count));
    EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
    for (uint64_t n = 0; n < count; ++n)
      EXPECT_TRUE(n < loaded.chunks ? delivered(first + n) : untouched(first + n)) << first + n;
    return loaded;
  }
  /// Neither a transfer that the kernel ends early nor a failure of the index costs an object.
  void expect_whole(const load_result& loaded, size_t count) {
    EXPECT_LE(loaded.chunks, count);
    if (whole) {
      EXPECT_EQ(loaded.chunks, count);
    }
  }
  void expect_nothing_leaked() {
    for (const tier_actor& tier : {group->host, disk_tier()}) {
      auto now = report(tier);
      EXPECT_EQ(now.held_objects, 0u);
      EXPECT_EQ(now.waiting, 0u);
      EXPECT_EQ(now.usage.used_bytes, now.objects * physical);
      EXPECT_EQ(now.usage.used_bytes + now.usage.free_bytes, now.usage.capacity_bytes);
    }
  }
  void expect_in_service_or_told() {
    if (!service->reads() || !service->writes()) {
      EXPECT_NE(service->reason(), "");
    }
  }

  void play(ending how) {
    patiently(begin_store(0, 4));
    wait_out();
    expect_in_service_or_told();
    forget_host(0, 4);
    expect_whole(load_right(0, 4), 4);
    patiently(begin_store(4, 4));
    forget_host(0, 8);
    expect_whole(load_right(0, 8), 8);
    expect_in_service_or_told();
    auto of_host = clear_patiently(group->host);
    EXPECT_EQ(of_host.failure.code, errc::ok);
    auto of_disk = clear_patiently(disk_tier());
    bool cleared = of_disk.failure.code == errc::ok && !of_disk.missed;
    EXPECT_EQ(load_right(0, 8).chunks, 0u) << "what was cleared is found";
    EXPECT_EQ(patiently(begin_store(10, 3)).stored_chunks, 3u);
    wait_out();
    expect_in_service_or_told();

    // The device gives back what it kept, and has time to return.
    over = true;
    ring.release_those();
    settle();
    for (int i = 0; i < 40; ++i)
      advance(30s);
    EXPECT_TRUE(service->reads()) << service->reason();
    EXPECT_TRUE(service->writes()) << service->reason();
    expect_nothing_leaked();
    EXPECT_EQ(patiently(begin_store(20, 2)).stored_chunks, 2u);
    settle();
    EXPECT_EQ(present(disk_tier(), 20, 2), 2u);
    forget_host(20, 2);
    EXPECT_EQ(load_right(20, 2).chunks, 2u);
    expect_nothing_leaked();

    restart(how == ending::shutdown);
    EXPECT_EQ(present(group->host, 0, 30), 0u);
    size_t back = present(disk_tier(), 0, 8);
    EXPECT_TRUE(!cleared || back == 0) << back << " objects that were cleared came back";
    load_right(0, 8);
    expect_whole(load_right(10, 3), 3);
    EXPECT_EQ(load_right(20, 2).chunks, 2u);
    expect_nothing_leaked();
  }

  bool whole;            ///< no object may be lost
  size_t operations = 0; ///< on the disk so far
  io_code what{};        ///< that failed
  bool over = false;
};

void play_all(size_t paths, fault how, ending end) {
  course recorded(paths, fault::none, SIZE_MAX);
  recorded.play(end);
  ASSERT_FALSE(::testing::Test::HasFailure()) << "without any fault";
  ASSERT_GT(recorded.operations, 20u);
  for (size_t position = 0; position < recorded.operations; ++position) {
    course faulty(paths, how, position);
    SCOPED_TRACE("operation " + std::to_string(position) + " of " + std::to_string(recorded.operations));
    faulty.play(end);
    EXPECT_GT(faulty.operations, position) << "the operation never began";
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "by an operation of code " << static_cast<int>(faulty.what);
      return;
    }
  }
}

using faults = std::tuple<size_t, fault, ending>;

std::string name_of(const ::testing::TestParamInfo<faults>& info) {
  constexpr std::array<const char*, 6> ways{"None",           "Error",           "CutShort",
                                            "NeverCompletes", "ErrorsFromNowOn", "NothingCompletesFromNowOn"};
  auto [paths, how, end] = info.param;
  return std::string(ways[static_cast<size_t>(how)]) + (paths == 1 ? "OnePath" : "TwoPaths") +
         (end == ending::crash ? "Crash" : "Shutdown");
}

struct FaultPositions : ::testing::TestWithParam<faults> {};

} // namespace

TEST_P(FaultPositions, NothingWrongIsServedAndTheDiskReturns) {
  auto [paths, how, end] = GetParam();
  play_all(paths, how, end);
}

INSTANTIATE_TEST_SUITE_P(
    , FaultPositions,
    ::testing::Combine(::testing::Values(1, 2),
                       ::testing::Values(fault::error, fault::cut_short, fault::never_completes,
                                         fault::errors_from_now_on, fault::nothing_completes_from_now_on),
                       ::testing::Values(ending::shutdown, ending::crash)),
    name_of);
