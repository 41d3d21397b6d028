// The daemon as production wires it, in the simulated machine.
#include "daemon_run.hpp"
#include "simulated_daemon.hpp"

#include "tests/support/raw_client.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <unistd.h>

namespace terrace::simulation {
namespace {

struct machine {
  explicit machine(uint64_t seed)
      : random(seed), events(random.next()), disk(random.next(), 64 << 20), calls(events, random.next()) {
    EXPECT_EQ(disk.mkdir(simulated_calls::folder), 0);
    EXPECT_EQ(disk.fsync(disk.open("/", O_RDONLY | O_DIRECTORY)), 0);
    calls.mount(disk);
  }
  seeded_random random;
  scheduler events;
  simulated_disk disk;
  simulated_calls calls;
};

TEST(SimulatedDaemon, ServesAClientAndEnds) {
  test::temporary_folder folder;
  machine m(1);
  simulated_daemon daemon(m.events, m.disk, {.with = small_settings(folder.path() + "/s"), .seed = 3});
  for (int i = 0; i < 1000 && daemon.step(); ++i) {
  }
  test::raw_client client(folder.path() + "/s");
  EXPECT_TRUE(client.send(test::hello_frame()));
  EXPECT_TRUE(client.send(test::status_frame(2)));
  simulated_sockets::touch();
  std::vector<test::received> answers;
  for (int i = 0; i < 1000 && answers.size() < 2 && daemon.step(); ++i)
    while (auto answer = client.next())
      answers.push_back(*answer);
  ASSERT_EQ(answers.size(), 2U);
  const auto& group = *answers[1].as<wire::StatusAnswer>().groups()->Get(0);
  EXPECT_EQ(group.tiers()->size(), 2U);
  for (const auto* tier : *group.tiers())
    EXPECT_EQ(tier->state()->str(), "ready") << (tier->reason() ? tier->reason()->str() : "");
  client.close();
  daemon.drain();
  while (!daemon.ended() && daemon.step()) {
  }
  EXPECT_TRUE(daemon.ended_well());
}

/// The seed 322 found that it was closed a third of the request deadline after it had connected.
TEST(SimulatedDaemon, ARedisClientThatHasGivenThePasswordMayBeIdle) {
  test::temporary_folder folder;
  machine m(1);
  settings with = small_settings(folder.path() + "/s");
  with.resp.emplace_back();
  with.resp.back().address = folder.path() + "/r";
  with.resp.back().password_file = folder.path() + "/password";
  std::ofstream(with.resp.back().password_file) << "open sesame\n";
  ::chmod(with.resp.back().password_file.c_str(), 0600);
  simulated_daemon daemon(m.events, m.disk, {.with = with, .seed = 3});
  daemon_model model;
  client_world world{.events = m.events, .model = model, .calls = m.calls};
  unique_fd socket = world.connect(
      {.name = "idle", .uid = simulated_calls::user, .ends = std::make_shared<unique_fd>(::eventfd(0, 0))},
      with.resp.back().address);
  auto asks = [&](std::string_view text, std::chrono::nanoseconds after) {
    m.events.after(after, [&, text] {
      EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(text.size()));
      simulated_sockets::touch();
    });
  };
  auto deadline = std::chrono::nanoseconds(with.connection.request_deadline);
  asks("AUTH wrong\r\n", deadline / 10);
  asks("*2\r\n$4\r\nAUTH\r\n$11\r\nopen sesame\r\n", deadline / 8);
  asks("PING\r\n", 10 * deadline);
  while (m.events.now() < 11 * deadline && daemon.step()) {
  }
  std::array<char, 1000> told{};
  auto bytes = ::recv(socket.get(), told.data(), told.size(), MSG_DONTWAIT);
  std::string_view all(told.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  EXPECT_TRUE(all.ends_with("+OK\r\n+PONG\r\n")) << all;
}

/// Part of the waits in order; 0.99: the 99th percentile.
double part_of(std::vector<double> waits, double part) {
  auto at = waits.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(waits.size() - 1));
  std::nth_element(waits.begin(), at, waits.end());
  return *at;
}

/// Copiers and devices are shared by two groups, so each has at least half of them, whatever the other one asks for.
TEST(SimulatedDaemon, ALoudGroupAtMostDoublesTheWaitsOfAnother) {
  std::vector<double> alone, beside; // in units of the seed, whose delays are its own
  for (uint64_t seed = 1, played = 0; played < 20; ++seed) {
    run_bounds bounds{.seed = seed, .lives = 0};
    daemon_run quiet({.bounds = bounds, .others = neighbours::silent});
    auto clients = quiet.clients_of_groups();
    if (!quiet.is_healthy() || clients.size() != 2 || clients[0] == 0 || clients[1] == 0)
      continue;
    ++played;
    quiet.play();
    daemon_run loud({.bounds = bounds, .others = neighbours::loud});
    loud.play();
    for (const auto* run : {&quiet, &loud})
      for (const std::string& each : run->broken())
        ADD_FAILURE() << "seed " << seed << ": " << each;
    double sum = 0;
    for (auto each : quiet.waits_of(0))
      sum += static_cast<double>(each.count());
    if (sum == 0) // nothing takes any time in this seed
      continue;
    double mean = sum / static_cast<double>(quiet.waits_of(0).size());
    for (auto each : quiet.waits_of(0))
      alone.push_back(static_cast<double>(each.count()) / mean);
    for (auto each : loud.waits_of(0))
      beside.push_back(static_cast<double>(each.count()) / mean);
  }
  EXPECT_LE(part_of(beside, 0.99), 2 * part_of(alone, 0.99));
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// The seeds of this run: one, or that many from the first.
std::pair<uint64_t, uint64_t> seeds() {
  uint64_t first = number_from("TERRACE_SIMULATION_SEED", 0);
  uint64_t count = number_from("TERRACE_SIMULATION_SEEDS", first != 0 ? 1 : 100);
  first = std::max<uint64_t>(first, 1);
  return {first, first + count - 1};
}

/// The seed being played, for a daemon that ends the program.
volatile sig_atomic_t seed_now = 0;

void tell_seed(int signal) {
  std::string text = "the daemon ended the program\n  repeat it with: ./test simulation --seed " +
                     std::to_string(seed_now) + " --trace\n";
  (void) !::write(STDERR_FILENO, text.data(), text.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

actor_scheduler::trace trace_if_asked() {
  if (std::getenv("TERRACE_SIMULATION_TRACE") == nullptr)
    return nullptr;
  return [](std::chrono::nanoseconds at, const std::string& line) {
    std::cout << at.count() / 1000 << " us: " << line << "\n";
  };
}

/// Plays in a process of its own, which the daemon may end. Returns the first broken promise, without its numbers.
std::string failure_of(const run_bounds& bounds) {
  int ends[2];
  if (::pipe(ends) != 0)
    throw std::runtime_error("no pipe");
  unique_fd reads(ends[0]), writes(ends[1]);
  pid_t child = ::fork();
  if (child == 0) {
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE})
      std::signal(signal, SIG_DFL);
    daemon_run run({.bounds = bounds});
    run.play();
    std::string text = run.broken().empty() ? "" : run.broken().front();
    std::erase_if(text, [](char each) { return each >= '0' && each <= '9'; });
    (void) !::write(writes.get(), text.data(), text.size());
    std::_Exit(0);
  }
  writes.reset();
  std::string text;
  char part[512];
  for (ssize_t count; (count = ::read(reads.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(count));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "the daemon ended the program" : text;
}

/// What is to be played: some seeds, or one with bounds.
std::vector<run_bounds> asked_for() {
  if (const char* text = std::getenv("TERRACE_SIMULATION_ONLY")) {
    auto bounds = run_bounds::parse(text);
    if (!bounds)
      throw std::runtime_error("expected bounds such as \"seed=17 lives=1 clients=0,2 deeds=14 events=90 "
                               "without=pin,disk_faults\", got \"" +
                               std::string(text) + "\"");
    return {*bounds};
  }
  std::vector<run_bounds> all;
  auto [first, last] = seeds();
  for (uint64_t seed = first; seed <= last; ++seed)
    all.push_back({.seed = seed});
  return all;
}

/// What seeds found, reduced. A change of the generator makes other lives of them; then they are like other seeds.
TEST(SimulatedDaemon, ScriptsOfWhatWasFoundPass) {
  for (
      const char* script :
      {// Objects of a remote store came up during a clear, and went down to the disk that it had left.
       "seed=33 lives=1 clients=0,2,3,4,5,6,7,8 deeds=5 events=350 "
       "without=actor_delays,cancel_lookup,disk_delays,disk_faults,evict,gpu,load_leased,pause,pin,prefetch,"
       "read_"
       "leased,"
       "release,rot,save_prompt,set_policy,stop_reading,vanishing",
       // The check was wrong: a prompt was unpinned that is equal to the pinned one and begins at another root.
       "seed=31073 lives=2 clients=0,1,2,3,4,5 deeds=131 events=1098 "
       "without=await_lookup,die,disk_delays,disk_faults,evict,gpu,gpu_faults,lease,look_around,lookup,move,"
       "redis,rot,save_prompt,set_policy,store_faults,vanishing",
       // A Redis client was closed for a command without its rest, although the daemon had stopped receiving.
       "seed=1497 lives=1 clients=0,1,6,7,8 deeds=120 events=2749 "
       "without=disk_faults,gpu,pause,quota,reload,rot,save_prompt,stop_reading,store_faults,vanishing",
       // A check asked a writer before it counted the requests, one of which gave objects to the writer and ended.
       "seed=3671 lives=0 events=380",
       // A check asked tiers what is being written after it had counted the requests, the next of which wrote.
       "seed=7605 clients=0,1,6,7,8 deeds=112 events=1116 "
       "without=clear_all,disk_faults,gpu_faults,hostile,pause,pin,prefetch,reload,revoke,rot,"
       "stop_reading,store_faults,vanishing",
       // A check did not know who holds the value of a reply that is being sent to a Redis client.
       "seed=7062 lives=1 clients=0,1,2,3,4,5,6,7,8 deeds=13 events=951 "
       "without=actor_delays,clear_all,disconnect,disk_delays,disk_faults,evict,gpu,gpu_faults,load_leased,"
       "move,prefetch,quota,revoke,rot,save_prompt,session,set_policy,store_faults,vanishing",
       // The check: a move down found an object held that was being written to the remote store.
       "seed=8733 lives=0 clients=1,3,6 deeds=14 events=0 "
       "without=await_lookup,clear_all,cuts,disconnect,disk_delays,disk_faults,explain,gpu_faults,move,pin,"
       "reserve,rot,stop_reading,store_faults,vanishing",
       // A load at the bound of a quota waited for a lease, because a transfer held the bytes when the tier looked.
       "seed=7343 lives=1 clients=1,2,3,4,5,6 deeds=49 events=2217 "
       "without=await_lookup,clear_all,disk_delays,disk_faults,gpu_faults,look_around,move,pause,"
       "reload,revoke,rot,stop_reading,store_faults,vanishing",
       // An eviction never reached a remote store whose token had not been read for 5 seconds.
       "seed=3891 lives=0 clients= deeds=0 events=0 without=actor_delays,await_lookup,cancel,"
       "cancel_lookup,clear_all,clear_space,cuts,die,disconnect,disk_delays,disk_faults,evict,"
       "explain,gpu,gpu_faults,hostile,lease,load,load_leased,look_around,lookup,move,pause,pin,"
       "prefetch,quota,read_leased,redis,release,reload,reserve,revoke,rot,save_prompt,session,"
       "set_policy,stop_reading,store,turn_twice,unpin,vanishing",
       // An object that was being written to the remote store was evicted from its tier, and written nevertheless.
       "seed=5400 lives=0 clients= deeds=0 events=0 without=actor_delays,await_lookup,cancel,"
       "cancel_lookup,clear_all,clear_space,die,disconnect,disk_delays,disk_faults,evict,explain,"
       "gpu,gpu_faults,hostile,lease,load,load_leased,look_around,lookup,move,pause,pin,prefetch,"
       "quota,read_leased,redis,release,reload,reserve,revoke,rot,save_prompt,session,set_policy,"
       "stop_reading,store,store_faults,turn_twice,unpin,vanishing",
       // A load behind an eviction found in the remote store what was still to be removed there.
       "seed=5613 lives=0 clients= deeds=0 events=0 without=actor_delays,await_lookup,cancel,"
       "cancel_lookup,clear_all,clear_space,cuts,die,disconnect,disk_delays,disk_faults,evict,"
       "explain,gpu,gpu_faults,hostile,lease,load,load_leased,look_around,lookup,move,pause,pin,"
       "prefetch,quota,read_leased,redis,release,reload,reserve,revoke,rot,save_prompt,session,"
       "set_policy,stop_reading,store,store_faults,turn_twice,unpin,vanishing",
       // A remote store that refused to remove a value made an eviction an internal error.
       "seed=2448 clients=0,1,2 deeds=64 events=1471 without=cancel,die,disk_delays,disk_faults,gpu,"
       "gpu_faults,hostile,lease,load_leased,move,pause,quota,redis,reload,reserve,revoke,rot,"
       "stop_reading,turn_twice,vanishing",
       // After a crash memory had an object from the remote store, so it was not stored again, and the store came back empty.
       "seed=8932 lives=2 clients=0,1 deeds=19 events=732 without=await_lookup,clear_all,disk_faults,"
       "evict,explain,gpu,gpu_faults,lease,lookup,pause,redis,reload,reserve,revoke,rot,session,"
       "stop_reading,vanishing",
       // A client that came while the daemon drained was refused memory of a device. That is no failure of the device.
       "seed=4741 lives=1 clients=0,1,4,5 deeds=10 events=232 "
       "without=cancel,clear_all,disk_delays,disk_faults,gpu_faults,redis,revoke,rot,set_policy,store_faults,"
       "vanishing"}) {
    auto bounds = run_bounds::parse(script);
    ASSERT_TRUE(bounds) << script;
    daemon_run run({.bounds = *bounds});
    run.play();
    for (const std::string& each : run.broken())
      ADD_FAILURE() << each << "\n  repeat it with: ./test simulation --only \"" << script << "\" --trace";
  }
}

TEST(SimulatedDaemon, KeepsItsPromisesWhateverHappens) {
  auto all = asked_for();
  if (std::getenv("TERRACE_SIMULATION_REDUCE") != nullptr) {
    std::string failure = failure_of(all.front());
    if (!failure.empty())
      all = {reduce(all.front(), [&](const run_bounds& tried) { return failure_of(tried) == failure; })};
    std::cout << "the smallest that fails, for a list of tests or --only:\n  " << all.front().text() << "\n";
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE})
    std::signal(signal, tell_seed);
  uint64_t answers = 0, errors = 0, checked = 0, clears = 0, crashes = 0, restarts = 0, steps = 0, failed = 0;
  uint64_t gpu_processes = 0, gpu_bytes = 0;
  uint64_t hash = 0; // the same in every build
  std::chrono::nanoseconds time{};
  std::ofstream traces; // each seed and its hash, to be compared with another build's
  if (const char* path = std::getenv("TERRACE_SIMULATION_TRACES"))
    traces.open(path);
  for (const run_bounds& bounds : all) {
    seed_now = static_cast<sig_atomic_t>(bounds.seed);
    daemon_run run({.bounds = bounds, .trace = trace_if_asked()});
    run.play();
    for (const std::string& each : run.broken())
      ADD_FAILURE() << each << "\n  repeat it with: ./test simulation --seed " << bounds.seed << " --trace";
    failed += run.broken().empty() ? 0 : 1;
    hash = hash * 31 + run.trace_hash();
    traces << bounds.seed << " " << run.trace_hash() << "\n";
    answers += run.answers(), errors += run.errors(), checked += run.objects_checked(),
        clears += run.clears();
    crashes += run.crashes(), restarts += run.restarts(), steps += run.steps(), time += run.virtual_time();
    gpu_processes += run.gpu_processes(), gpu_bytes += run.gpu_bytes();
    if (failed == (GTEST_FLAG_GET(fail_fast) ? 1 : 5))
      break;
  }
  if (all.size() >= 100) {
    EXPECT_NE(gpu_bytes, 0U) << "no load came from the tier of a device";
  }
  std::cout << all.size() << " seeds, " << steps << " events in "
            << std::chrono::duration_cast<std::chrono::minutes>(time).count()
            << " virtual minutes: " << answers << " answers, " << errors << " errors, " << checked
            << " objects compared, " << clears << " clears, " << crashes << " crashes, " << restarts
            << " restarts, " << gpu_processes << " processes of GPUs, " << gpu_bytes
            << " bytes loaded from their tiers; trace " << std::hex << hash << std::dec << "\n";
}

TEST(SimulatedDaemon, ASeedGivesTheSameTrace) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto play = [&] {
      daemon_run run({.bounds = {.seed = seed}});
      run.play();
      return run.trace_hash();
    };
    uint64_t once = play();
    std::vector<std::unique_ptr<char[]>> moved; // other addresses
    for (size_t i = 0; i < 100; ++i)
      moved.push_back(std::make_unique<char[]>(64 << i % 8));
    EXPECT_EQ(play(), once) << "seed " << seed;
  }
}

} // namespace
} // namespace terrace::simulation
