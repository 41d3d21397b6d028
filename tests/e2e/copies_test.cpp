// Long loads and stores, whose parts several copiers copy at the same time.
#include "workload.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace terrace::e2e {
namespace {

/// One window, an eighth of the arena, with a part of at least 1 MiB for each copier.
constexpr uint32_t objects = 7;
constexpr size_t copiers = 6;

/// Returns the nanoseconds that each thread with the nice value of copiers has run: 10 above the daemon's, which is ours.
std::map<std::string, uint64_t> run_times(pid_t process) {
  std::map<std::string, uint64_t> times;
  const int nice = std::min(::getpriority(PRIO_PROCESS, 0) + 10, 19);
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    const std::string thread = task.path().filename();
    if (::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(thread))) == nice)
      std::ifstream(task.path() / "schedstat") >> times[thread];
  }
  return times;
}

struct LongCopies : ::testing::Test {
  daemon_under_test daemon{
      {.host_bytes = 64 * mebibyte, .more = "[copier]\nthreads = " + std::to_string(copiers) + "\n"}};
  tester client{daemon.socket(), "long", objects* object_bytes};
  std::vector<digest> chain = chain_of(1, objects);
};

TEST_F(LongCopies, AreDoneByAllCopiersAndEveryByteComesBack) {
  EXPECT_EQ(client.store(chain), objects);
  const auto before = run_times(daemon.pid());
  EXPECT_EQ(client.load_and_check(chain), objects);
  size_t worked = 0;
  for (const auto& [thread, time] : run_times(daemon.pid()))
    worked += time > before.at(thread) ? 1 : 0;
  EXPECT_GE(worked, copiers);
}

// Pieces of an object lie apart, in a region that is not mapped, whichever copier copies a part.
TEST_F(LongCopies, OfScatteredPiecesThroughADescriptorComeBack) {
  EXPECT_EQ(client.store(chain), objects);
  constexpr uint64_t piece = 64 << 10;
  unique_fd memory(::memfd_create("scattered", MFD_CLOEXEC)); // it may shrink, so the daemon does not map it
  const uint64_t bytes = 2 * objects * object_bytes;
  ASSERT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
  auto region = client->register_region(memory.get(), bytes, patiently());
  ASSERT_TRUE(region) << region.error().text;
  std::vector<client::run> runs;
  for (uint32_t i = 0; i < objects; ++i) // the gaps are as long as the pieces
    runs.push_back(
        {.offset = 2 * i * object_bytes, .bytes = piece, .stride = 2 * piece, .count = object_bytes / piece});
  auto request = client.load_of(chain);
  request.region = &*region;
  request.runs = runs;
  auto loaded = client->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, objects);
  std::vector<uint8_t> object(object_bytes);
  for (uint32_t i = 0; i < objects; ++i) {
    for (uint64_t at = 0; at < object_bytes; at += piece)
      ASSERT_EQ(
          ::pread(memory.get(), object.data() + at, piece, static_cast<off_t>(2 * (i * object_bytes + at))),
          static_cast<ssize_t>(piece));
    EXPECT_TRUE(has_content(chain[i], object)) << i;
  }
}

} // namespace
} // namespace terrace::e2e
