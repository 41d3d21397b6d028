// The actors of a trust group under the simulation's scheduler: stores and loads of several clients at once, in a host tier
// too small for all of them.
#include "simulated_process.hpp"

#include "actors/supervision/group_builder.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace terrace::simulation {
namespace actor_scheduler_test {

using namespace terrace::actors;
using std::chrono::milliseconds;

size_t threads_of_process() {
  std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// A machine without files: what runs on it is in memory.
struct machine {
  explicit machine(uint64_t seed)
      : random(seed), events(random.next()), disk(random.next(), 1 << 20),
        process(events, disk, random.next(), actor_delays::draw(random)) {}
  seeded_random random;
  scheduler events;
  simulated_disk disk;
  simulated_process process;
};

TEST(ActorScheduler, DelayedMessagesComeAtVirtualTimes) {
  machine m(1);
  std::vector<std::chrono::nanoseconds> seen;
  auto notes = [&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, std::chrono::hours{2}, caf::unit);
    return {[&, self](caf::unit_t) {
      seen.push_back(m.events.now());
      self->quit();
    }};
  };
  m.process.sys.spawn(notes);
  m.process.settle();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_GE(seen[0], std::chrono::hours{2});
  EXPECT_LT(seen[0], std::chrono::hours{2} + milliseconds{10});
}

TEST(ActorScheduler, AHomedActorGetsTheCompletionsOfTheSimulatedRing) {
  machine m(1);
  int32_t result = 0;
  auto waits = [&](runtime::homed_actor* self) -> caf::behavior {
    self->port().submit({.code = runtime::io_code::timeout, .after = milliseconds{7}}, self->ctrl(), 3);
    return {[&, self](const runtime::io_done& done) {
      result = done.result;
      self->quit();
    }};
  };
  runtime::spawn_homed(m.process.sys, m.process.home(), waits);
  m.process.settle();
  EXPECT_EQ(result, -ETIME);
  EXPECT_GE(m.events.now(), milliseconds{7});
}

constexpr uint64_t payload = 8192;
constexpr size_t chunks_max = 32;

/// One trust group with a host tier for eight objects, and clients that store and load.
class group_run {
 public:
  explicit group_run(uint64_t seed) : m_(seed) { build(); }
  ~group_run() {
    for (const caf::actor& one : actors_of(*group_))
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    for (const auto& one : copiers_->all())
      caf::anon_send_exit(one.copier, caf::exit_reason::user_shutdown);
    m_.process.settle();
    account_.reset();
    copiers_.reset();
    group_.reset();
  }

  /// Several clients at once; returns when all have their answers.
  void run() {
    size_t threads = threads_of_process();
    for (size_t client = 0; client < 4; ++client)
      next_request(client, 12);
    m_.process.settle();
    EXPECT_EQ(threads_of_process(), threads) << "somebody has a thread of its own";
    EXPECT_EQ(answered_, 4U * 12U) << "a request was not answered";
    EXPECT_GT(intact_, 0U);
    EXPECT_EQ(wrong_, 0U);
  }

  void set_trace(actor_scheduler::trace to) { m_.process.actors().set_trace(std::move(to)); }
  uint64_t trace_hash() const { return m_.events.trace_hash(); }
  const std::string& answers() const { return answers_; }

 private:
  static std::byte content(uint64_t number, size_t i) {
    return static_cast<std::byte>(number * 31 + i % 253);
  }

  void build() {
    auto spec = terrace::test::small_space();
    spec.pools[0].object_bytes = payload;
    in_ = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
    auto load = std::make_shared<copier_load>();
    auto copier = spawn_copier(m_.process.sys, {.piece_bytes = 4096, .load = load, .detached = false});
    copiers_ = std::make_shared<copier_pool>(std::vector<copier_pool::member>{{copier, load}});
    group_plan plan;
    plan.name = "simulated";
    plan.host.bytes = 8 * physical_bytes_for(payload);
    plan.host.policy = "lru";
    plan.policy_time = clock_source::told;
    plan.leases = {100, 100, 100};
    plan.detached = false;
    probes_.paths.resize(1);
    auto built = build_group(m_.process.sys, plan, probes_, copiers_);
    ASSERT_TRUE(built) << built.error().text;
    group_ = *built;
    group_->window_bytes = plan.host.bytes;
    account_ = group_->leases->open();
  }

  outside_memory region(size_t client) {
    return {regions_[client].data(), -1, regions_[client].size(), nullptr};
  }

  std::shared_ptr<const scatter_gather> runs(uint64_t first, size_t count) {
    std::vector<region_run> list;
    for (uint64_t n = first; n < first + count; ++n)
      list.push_back({n * payload, payload, 0, 1});
    auto made = scatter_gather::make(list, {}, std::vector<uint64_t>(count, payload), chunks_max * payload);
    return std::make_shared<const scatter_gather>(std::move(*made));
  }

  void next_request(size_t client, size_t left) {
    if (left == 0)
      return;
    uint64_t first = m_.random.below(chunks_max - 4);
    size_t count = 1 + m_.random.below(4);
    if (m_.random.coin())
      store(client, left, first, count);
    else
      load(client, left, first, count);
  }

  template <class Result, class Job, class Done>
  void ask(const caf::actor& worker, Job job, Done done) {
    m_.process.sys.spawn([=, asked = std::make_shared<Job>(std::move(job))](caf::event_based_actor* self) {
      self->request(worker, caf::infinite, std::move(*asked))
          .then([=](const Result& answer) { done(answer); },
                [](const caf::error&) { ADD_FAILURE() << "an actor has ended"; });
    });
  }

  void store(size_t client, size_t left, uint64_t first, size_t count) {
    for (uint64_t n = first; n < first + count; ++n)
      for (size_t i = 0; i < payload; ++i)
        regions_[client][n * payload + i] = content(n, i);
    store_job job;
    job.group = group_;
    job.space = in_;
    job.objects = terrace::test::chain(first, count, payload);
    job.runs = runs(first, count);
    job.source = region(client);
    auto worker = spawn_store(m_.process.sys);
    ask<store_result>(worker, std::move(job), [=, this](const store_result& result) {
      answer("s", client, first, result.stored_chunks, static_cast<int>(result.failure.code));
      caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
      next_request(client, left - 1);
    });
  }

  void load(size_t client, size_t left, uint64_t first, size_t count) {
    std::fill(regions_[client].begin(), regions_[client].end(), std::byte{0xcc});
    load_job job;
    job.group = group_;
    job.space = in_;
    job.objects = terrace::test::chain(first, count, payload);
    job.runs = runs(first, count);
    job.target = region(client);
    job.account = account_;
    auto worker = spawn_load(m_.process.sys);
    ask<load_result>(worker, std::move(job), [=, this](const load_result& result) {
      check(client, first, result.chunks);
      answer("l", client, first, result.chunks, static_cast<int>(result.failure.code));
      caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
      next_request(client, left - 1);
    });
  }

  void check(size_t client, uint64_t first, size_t chunks) {
    for (uint64_t n = first; n < first + chunks; ++n)
      for (size_t i = 0; i < payload; ++i)
        ++(regions_[client][n * payload + i] == content(n, i) ? intact_ : wrong_);
  }

  void answer(const char* what, size_t client, uint64_t first, size_t chunks, int code) {
    ++answered_;
    answers_ += std::string(what) + std::to_string(client) + ":" + std::to_string(first) + "=" +
                std::to_string(chunks) + (code == 0 ? "" : "!" + std::to_string(code)) + " ";
  }

  machine m_;
  group_probes probes_;
  space_ptr in_;
  std::shared_ptr<copier_pool> copiers_;
  std::shared_ptr<trust_group> group_;
  account_ptr account_;
  std::vector<std::vector<std::byte>> regions_ = std::vector(4, std::vector<std::byte>(chunks_max* payload));
  size_t answered_ = 0;
  uint64_t intact_ = 0, wrong_ = 0;
  std::string answers_;
};

struct outcome {
  uint64_t hash = 0;
  std::string answers;
  std::string trace;
  bool operator==(const outcome&) const = default;
};

outcome play(uint64_t seed) {
  outcome seen;
  group_run run(seed);
  run.set_trace([&](std::chrono::nanoseconds at, const std::string& what) {
    seen.trace += std::to_string(at.count()) + " " + what.substr(0, what.find(':')) + "\n";
  });
  run.run();
  seen.hash = run.trace_hash();
  seen.answers = run.answers();
  return seen;
}

TEST(ActorScheduler, AGroupDoesTheSameWithTheSameSeed) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    auto once = play(seed), again = play(seed);
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed;
    EXPECT_EQ(once.answers, again.answers) << "seed " << seed;
  }
}

TEST(ActorScheduler, OtherSeedsInterleaveAGroupInOtherWays) {
  std::set<uint64_t> hashes;
  std::set<std::string> answers;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto seen = play(seed);
    hashes.insert(seen.hash);
    answers.insert(seen.answers);
  }
  EXPECT_EQ(hashes.size(), 20U);
  EXPECT_EQ(answers.size(), 20U);
}

} // namespace actor_scheduler_test
} // namespace terrace::simulation
