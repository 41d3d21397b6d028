// A daemon's start on a large volume: the preparer opens it, names its spaces, and restores the index and the policy; then
// the disk joins the group, and is searched and evicted from. A program of its own, because its volume is sparse.
#include "actors/supervision/preparer_actor.hpp"

#include "actors/supervision/group_builder.hpp"
#include "bench/generated_index.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

// The volume has room for all objects, 480 GB for ten million, and only their index is written: nothing is allocated.
extern "C" int fallocate(int fd, int, off_t offset, off_t bytes) { return ::ftruncate(fd, offset + bytes); }
extern "C" int fstatvfs(int, struct statvfs* found) noexcept {
  *found = {};
  found->f_bsize = found->f_frsize = 4096;
  found->f_blocks = found->f_bfree = found->f_bavail = uint64_t{1} << 40;
  return 0;
}

using namespace terrace;
using namespace terrace::actors;
using bench::generated_index;

namespace {

using clock = std::chrono::steady_clock;

struct LargeStart : terrace::test::actor_fixture {
  terrace::test::temporary_folder where;
  std::string file = where / "store";
  std::shared_ptr<copier_pool> copiers;
  group_plan plan;
  group_probes probes;
  std::shared_ptr<trust_group> group;
  std::optional<disk_prepared> prepared;
  caf::actor receiver;

  void TearDown() override {
    prepared.reset();
    if (group)
      for (const caf::actor& one : actors_of(*group))
        stop(one);
    if (copiers)
      for (const auto& one : copiers->all())
        stop(one.copier);
    stop(receiver);
    group.reset();
  }

  generated_index write_volume(uint64_t objects) {
    unique_fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    file_device device(file, fd.get());
    auto made = generated_index::write(device, objects);
    EXPECT_TRUE(made) << made.error().text;
    aligned_buffer block(superblock_bytes);
    encode(made->block(), block.bytes().first<superblock_bytes>());
    EXPECT_TRUE(device.write(superblock_offset(made->block().sequence), block.bytes()));
    return *made;
  }

  template <class Answer, class Handle, class Message>
  Answer ask(const Handle& who, Message message) {
    auto answer = std::make_shared<std::optional<Answer>>();
    sys.spawn([answer, who, message](caf::event_based_actor* self) {
      self->request(who, caf::infinite, message)
          .then([answer](const Answer& value) { *answer = value; }, [](const caf::error&) {});
    });
    settle();
    EXPECT_TRUE(*answer) << "is not answered";
    return answer->value_or(Answer{});
  }

  void start(const generated_index& made) {
    plan.name = "test";
    plan.host.bytes = 4 << 20;
    plan.disk = tier_config{.kind = tier_kind::disk, .allocator = "size_class", .policy = "lru"};
    plan.disk_files = {file};
    plan.detached = false;
    copiers = std::make_shared<copier_pool>(std::vector{
        copier_pool::member{spawn_copier(sys, {.piece_bytes = 4096, .detached = false}), nullptr}});
    auto built = build_group(sys, plan, probes, copiers);
    ASSERT_TRUE(built) << built.error().text;
    group = *built;
    receiver = sys.spawn([this]() -> caf::behavior {
      return {[this](const disk_prepared& report) { prepared = report; }, [](const memory_committed&) {}};
    });
    preparer_arguments work;
    work.disk =
        extent_files_options{.paths = {file}, .capacity_bytes = made.block().capacity_bytes, .direct = false};
    work.disk_plan = *plan.disk;
    work.spaces = group->group;
    work.policy = group->policy;
    work.report_to = receiver;
    work.detached = false;
    spawn_preparer(sys, std::move(work));
    settle();
    ASSERT_TRUE(prepared);
    ASSERT_EQ(prepared->failure.code, errc::ok) << prepared->failure.text;
    EXPECT_EQ(prepared->disk->unplaced, 0u);
    seconds = prepared->disk->seconds;
    join_disk(
        sys, *group, plan, probes, [this] { return home(); }, std::move(*prepared->disk));
    settle();
    reserve_spaces_request spaces;
    for (uint32_t space = 1; space <= generated_index::spaces; ++space)
      spaces.fingerprints.push_back({{static_cast<uint8_t>(space)}});
    ids = ask<reserve_spaces_answer>(group->group, spaces).ids;
    ASSERT_EQ(ids.size(), generated_index::spaces);
  }

  batch_ptr objects(const generated_index& made, uint64_t first, uint64_t step, uint64_t count) const {
    auto batch = std::make_shared<object_batch>();
    for (uint64_t i = 0; i < count; ++i) {
      index_record record = made.expected((first + i * step) % made.objects());
      object_key key{ids[record.space - 1], record.pool, record.rank, {}};
      key.chunk.bytes = record.chunk.bytes;
      batch->keys.push_back(key);
      batch->parents.push_back({});
      batch->payload_bytes.push_back(record.payload_bytes);
    }
    return batch;
  }
  size_t found(const batch_ptr& these) {
    auto answer =
        ask<probe_answer>(group->disk()->tier, probe_request{these, false, false, {0, these->size()}});
    size_t count = 0;
    for (size_t i = 0; i < these->size(); ++i)
      count += answer.present.test(i);
    return count;
  }

  void start_with(uint64_t count) {
    auto made = write_volume(count);
    auto begun = clock::now();
    start(made);
    if (HasFatalFailure())
      return;
    std::chrono::duration<double> joined = clock::now() - begun;
    auto tier = ask<tier_report>(group->disk()->tier, tier_status_request{});
    EXPECT_EQ(tier.objects, count);
    EXPECT_EQ(tier.usage.used_bytes, count * generated_index::object_bytes);
    EXPECT_EQ(tier.held_objects, 0u);
    auto policies = ask<policies_report>(group->policy, policies_request{});
    EXPECT_EQ(policies.tracked, count);
    EXPECT_EQ(found(objects(made, 7, count / 1000 - 1, 1000)), 1000u);

    // The next object evicts what has not been used for longest: that is the oldest that was found.
    uint64_t room = tier.usage.free_bytes / generated_index::object_bytes;
    auto more = std::make_shared<object_batch>();
    for (uint64_t i = 0; i < room + 8; ++i) {
      object_key key{ids[0], 0, 0, {}};
      std::memcpy(key.chunk.bytes.data(), &i, sizeof i);
      more->keys.push_back(key);
      more->parents.push_back({});
      more->payload_bytes.push_back(generated_index::object_bytes - object_header_bytes);
    }
    acquire_request wanted;
    wanted.objects = more;
    wanted.may_fill.assign(more->size(), true);
    auto acquired = ask<acquire_answer>(group->disk()->tier, wanted);
    EXPECT_EQ(acquired.failure.code, errc::ok) << acquired.failure.text;
    EXPECT_EQ(found(objects(made, 1, 1, 8)), 0u);
    EXPECT_EQ(found(objects(made, count / 2 + 1, 1, 18)), 18u);
    acquired = {};
    settle();

    struct rusage used {};
    ::getrusage(RUSAGE_SELF, &used);
    std::cout << count << " objects: opened after " << seconds << " s, joined after " << joined.count()
              << " s, at most " << used.ru_maxrss / 1024 << " MiB of memory, "
              << policies.bookkeeping_bytes / count << " bytes per object in the policy\n";
  }

  double seconds = 0;
  std::vector<space_id> ids;
};

} // namespace

TEST_F(LargeStart, ServesAHundredThousandObjects) { start_with(100'000); }

TEST_F(LargeStart, SlowServesTenMillionObjects) {
  if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
    GTEST_SKIP() << "takes 4 GiB of memory and 4 GiB of disk; set TERRACE_SLOW_TESTS to run it";
  start_with(10'000'000);
}
