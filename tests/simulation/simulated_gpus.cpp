#include "simulated_gpus.hpp"

#include "daemon_heap.hpp"
#include "simulated_sockets.hpp"

#include "actors/gpu/child/gpu_child_actor.hpp"
#include "gpu/host/host_engine.hpp"

#include <caf/send.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <deque>

namespace terrace::simulation {

namespace {

thread_local simulated_gpus* gpus_of_thread = nullptr;

std::chrono::nanoseconds drawn(seeded_random& random, std::chrono::nanoseconds most) {
  return std::chrono::nanoseconds(random.between(0, static_cast<uint64_t>(most.count())));
}

/// Everything in a process refers to one; it has ended when nothing is left.
using gpu_life = std::shared_ptr<simulated_gpu>;

gpu_life begin_life(const std::shared_ptr<simulated_gpu>& of) {
  return gpu_life(of.get(), [of](simulated_gpu*) {
    daemon_heap::pause not_its_own;
    of->events.after(drawn(of->random, of->habits.most), [of] {
      of->gone = true;
      of->link = nullptr;
      (void) ::eventfd_write(of->ended.get(), 1);
      simulated_sockets::touch();
    });
  });
}

/// A stream. Its copies are made one after the other.
class simulated_engine final : public gpu::copy_engine {
 public:
  simulated_engine(gpu_life of, std::shared_ptr<gpu::completion_queue> completions)
      : of_(std::move(of)), completions_(std::move(completions)) {}
  ~simulated_engine() override { of_->events.cancel(next_); }

  result<void> issue(const step& wanted) override {
    daemon_heap::pause not_its_own;
    steps_.push_back(wanted);
    if (next_ == 0)
      go_on();
    return {};
  }
  result<void> check() override { return {}; }

 private:
  using copying = void (simulated_engine::*)();

  void later(copying then) {
    next_ = of_->events.after(of_->takes(), [this, then] {
      daemon_heap::pause not_its_own;
      next_ = 0;
      (this->*then)();
    });
  }
  void go_on() {
    if (!steps_.empty())
      later(&simulated_engine::begin);
  }
  void begin() {
    const step& now = steps_.front();
    uint64_t bytes = bytes_of(*now.part);
    middle_ = of_->random.between(0, bytes);
    copy(now, 0, middle_);
    if (of_->random.chance(of_->habits.dies))
      of_->kill();
    if (of_->random.chance(of_->habits.fails)) {
      failed_request_ = now.request;
      report(error{of_->random.coin() ? errc::internal : errc::gone, "a simulated copy failed"});
      return;
    }
    later(&simulated_engine::end);
  }
  void end() {
    const step& now = steps_.front();
    if (failed_request_ == now.request) {
      report(error{errc::internal, "a copy before it failed"});
      return;
    }
    copy(now, middle_, bytes_of(*now.part));
    if (now.part->signal)
      now.page->page().write(*now.part->signal);
    report(std::nullopt);
  }
  void report(std::optional<error> failure) {
    of_->events.note({20, steps_.front().ticket, failure ? 1U : 0U});
    completions_->push({steps_.front().ticket, std::move(failure)});
    simulated_sockets::touch();
    steps_.pop_front();
    go_on();
  }
  /// Copies these bytes of all that the step copies.
  static void copy(const step& of, uint64_t from, uint64_t to) {
    auto* region = dynamic_cast<const gpu::host_memory&>(*of.region).data();
    auto* object = dynamic_cast<const gpu::host_memory&>(*of.object).data();
    uint64_t at = 0;
    for (const gpu::strided_copy& run : of.part->copies)
      for (uint64_t i = 0; i < run.count; ++i, at += run.bytes) {
        uint64_t first = std::max(from, at), last = std::min(to, at + run.bytes);
        if (first >= last)
          continue;
        auto* in_region = region + run.region_offset + i * run.region_stride + (first - at);
        auto* in_object = object + run.object_offset + i * run.object_stride + (first - at);
        bool loads = of.way == gpu::direction::load;
        std::memcpy(loads ? in_region : in_object, loads ? in_object : in_region, last - first);
      }
  }

  gpu_life of_;
  std::shared_ptr<gpu::completion_queue> completions_;
  std::deque<step> steps_;
  scheduler::event_id next_ = 0;
  uint64_t middle_ = 0; ///< of the first step
  uint64_t failed_request_ = 0;
};

class simulated_device final : public gpu::device {
 public:
  simulated_device(gpu_life of, std::shared_ptr<gpu::device> memory)
      : of_(std::move(of)), memory_(std::move(memory)) {}

  std::string name() const override { return "simulated"; }
  result<std::shared_ptr<gpu::memory>> allocate(uint64_t bytes) override {
    if (of_->random.chance(of_->habits.refuses))
      return fail(errc::no_space, "the simulated device has no memory left");
    return memory_->allocate(bytes);
  }
  result<std::shared_ptr<gpu::memory>> pin(std::shared_ptr<const mapping> pages) override {
    return memory_->pin(std::move(pages));
  }
  result<std::shared_ptr<gpu::memory>> pin_for_reading(std::shared_ptr<const mapping> pages, uint64_t offset,
                                                       uint64_t bytes) override {
    return memory_->pin_for_reading(std::move(pages), offset, bytes);
  }
  result<std::shared_ptr<gpu::memory>> import(gpu::memory_handle handle) override {
    return memory_->import(std::move(handle));
  }
  result<std::shared_ptr<gpu::attached_page>>
  attach(std::shared_ptr<const gpu::generation_page> page) override {
    return memory_->attach(std::move(page));
  }
  result<std::unique_ptr<gpu::copy_engine>>
  make_engine(std::shared_ptr<gpu::completion_queue> completions) override {
    return std::make_unique<simulated_engine>(of_, std::move(completions));
  }

 private:
  gpu_life of_;
  std::shared_ptr<gpu::device> memory_;
};

result<gpu::opened_device> open_simulated(const gpu_life& of) {
  auto memory = gpu::make_host_device();
  if (!memory)
    return tl::unexpected(memory.error());
  return gpu::opened_device{std::make_shared<simulated_device>(of, std::move(*memory)), "simulated"};
}

/// The C library's own function, or a sanitizer's.
template <class F>
F* next_definition(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

} // namespace

gpu_habits gpu_habits::draw(seeded_random& random) {
  gpu_habits habits;
  habits.most = std::chrono::nanoseconds(random.swarm(2'000'000));
  habits.latest = std::chrono::milliseconds(random.between(1, 4000));
  habits.staging_bytes = 16 * 4096U << random.below(5); // slots of a page to 64 KiB
  if (random.coin())
    return habits;
  habits.late = random.swarm(300'000);
  habits.fails = random.swarm(300'000);
  habits.dies = random.swarm(200'000);
  habits.refuses = random.swarm(500'000);
  habits.no_start = random.swarm(500'000);
  return habits;
}

std::chrono::nanoseconds simulated_gpu::takes() {
  return drawn(random, random.chance(habits.late) ? habits.latest : habits.most);
}

void simulated_gpu::kill() {
  if (signal != 0 || gone)
    return;
  signal = SIGKILL;
  daemon_heap::pause not_its_own;
  // The daemon may have ended by then, with all its actors.
  events.after(takes(), [link = caf::actor_cast<caf::actor_addr>(link)] {
    if (auto process = caf::actor_cast<caf::actor>(link))
      caf::anon_send_exit(process, caf::exit_reason::kill);
  });
}

simulated_gpus::simulated_gpus(scheduler& events, uint64_t seed, const gpu_habits& habits)
    : events_(events), random_(seed), habits_(habits) {
  gpus_of_thread = this;
}

simulated_gpus::~simulated_gpus() { gpus_of_thread = nullptr; }

simulated_gpus* simulated_gpus::of_this_thread() { return gpus_of_thread; }

void simulated_gpus::run_on(caf::actor_system& system, const runtime::home& home) {
  system_ = &system;
  home_ = home;
}

void simulated_gpus::kill() {
  for (const auto& [pid, process] : processes_)
    process->kill();
}

bool simulated_gpus::none() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const auto& each) { return each.second->gone; });
}

int simulated_gpus::start(pid_t& pid, const std::string& device) {
  daemon_heap::pause not_its_own;
  unique_fd socket(::fcntl(passed_, F_DUPFD_CLOEXEC, 0));
  if (random_.chance(habits_.no_start))
    return EAGAIN;
  pid = ++last_pid_;
  ++started_;
  std::erase_if(processes_, [](const auto& each) { return each.second->gone; });
  auto made = std::make_shared<simulated_gpu>(
      simulated_gpu{events_, random_.fork(), habits_, unique_fd(::eventfd(0, EFD_CLOEXEC))});
  processes_[pid] = made;
  gpu_life life = begin_life(made);
  made->link =
      actors::spawn_link(*system_, {.socket = std::move(socket),
                                    .device = device,
                                    .messages = home_,
                                    .loads = home_,
                                    .stores = home_,
                                    .open = [life](const std::string&) { return open_simulated(life); },
                                    .end = [life](int code) { life->code = code; }});
  return 0;
}

simulated_gpu* simulated_gpus::of_pid(pid_t pid) const {
  auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : found->second.get();
}

simulated_gpu* simulated_gpus::of_descriptor(int descriptor) const {
  auto found = watched_.find(descriptor);
  return found == watched_.end() ? nullptr : of_pid(found->second);
}

int simulated_gpus::watch(pid_t pid) {
  daemon_heap::pause not_its_own;
  int descriptor = ::fcntl(of_pid(pid)->ended.get(), F_DUPFD_CLOEXEC, 0);
  if (descriptor >= 0)
    watched_[descriptor] = pid;
  return descriptor;
}

} // namespace terrace::simulation

// ---- the calls, under their names in the C library ----

using terrace::simulation::next_definition;
using terrace::simulation::simulated_gpus;

#define SIMULATED_PROCESS_CALL(name) __asm__(name) __attribute__((used))

extern "C" {

int simulated_adddup2(posix_spawn_file_actions_t*, int, int) noexcept
    SIMULATED_PROCESS_CALL("posix_spawn_file_actions_adddup2");
int simulated_adddup2(posix_spawn_file_actions_t* files, int from, int to) noexcept {
  if (auto* of = simulated_gpus::of_this_thread())
    of->pass(from);
  return next_definition<decltype(::posix_spawn_file_actions_adddup2)>("posix_spawn_file_actions_adddup2")(
      files, from, to);
}

int simulated_posix_spawn(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                          char* const*, char* const*) SIMULATED_PROCESS_CALL("posix_spawn");
int simulated_posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* files,
                          const posix_spawnattr_t* attributes, char* const* arguments,
                          char* const* environment) {
  if (auto* of = simulated_gpus::of_this_thread())
    return of->start(*pid, arguments[2]);
  return next_definition<decltype(::posix_spawn)>("posix_spawn")(pid, path, files, attributes, arguments,
                                                                 environment);
}

int simulated_waitid(idtype_t, id_t, siginfo_t*, int) SIMULATED_PROCESS_CALL("waitid");
int simulated_waitid(idtype_t kind, id_t id, siginfo_t* how, int options) {
  auto* of = simulated_gpus::of_this_thread();
  const auto* process = of != nullptr && kind == P_PID ? of->of_pid(static_cast<pid_t>(id)) : nullptr;
  if (process == nullptr)
    return next_definition<decltype(::waitid)>("waitid")(kind, id, how, options);
  if (!process->gone)
    return 0;
  how->si_pid = static_cast<pid_t>(id);
  how->si_code = process->signal != 0 ? CLD_KILLED : CLD_EXITED;
  how->si_status = process->signal != 0 ? process->signal : process->code;
  return 0;
}

long simulated_syscall(long, ...) noexcept SIMULATED_PROCESS_CALL("syscall");
long simulated_syscall(long number, ...) noexcept {
  va_list more;
  va_start(more, number);
  std::array<long, 6> words{};
  for (long& each : words)
    each = va_arg(more, long);
  va_end(more);
  auto* of = simulated_gpus::of_this_thread();
  if (of != nullptr && number == SYS_pidfd_open && of->of_pid(static_cast<pid_t>(words[0])) != nullptr)
    return of->watch(static_cast<pid_t>(words[0]));
  if (of != nullptr && number == SYS_pidfd_send_signal)
    if (auto* process = of->of_descriptor(static_cast<int>(words[0]))) {
      process->kill();
      return 0;
    }
  static auto* const real = next_definition<decltype(::syscall)>("syscall");
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

} // extern "C"
