#include "runtime/event_loop.hpp"
#include "runtime/thread_priority.hpp"
#include "runtime/turn_times.hpp"
#include "runtime/uring.hpp"
#include "runtime/worker_pool.hpp"

#include <caf/scheduled_actor.hpp>

namespace terrace::runtime {

namespace {

thread_local const event_loop* loop_of_this_thread = nullptr;
thread_local turn_limit longest_turn{TERRACE_TURN_LIMIT_US * int64_t{1000}};

} // namespace

event_loop::event_loop(worker_pool& pool, size_t index, const runtime_options& options,
                       caf::actor_system* system)
    : pool_(pool), index_(index), options_(options), port_(static_cast<uint8_t>(index)), unit_(*this, system),
      polling_(index < pool.serving() ? int64_t{options.busy_poll_us} * 1000 : 0) {
  port_.forward_cancels([this](operation_id id) { pool_.cancel(id, this); });
}

bool event_loop::is_current() const { return loop_of_this_thread == this; }

void event_loop::enqueue(caf::resumable* job, job_kind kind) {
  if (is_current())
    queue_.push({job, kind, now_ns_});
  else
    post({job, kind, 0});
}

void event_loop::enqueue_next(caf::resumable* job) {
  if (is_current() && turn_of_ != nullptr)
    queue_.push_next({job, job_kind::homed, now_ns_});
  else
    enqueue(job, job_kind::homed);
}

void event_loop::post(job_type item) {
  bool was_asleep = false;
  {
    std::lock_guard guard(mutex_);
    external_.push_back(item);
    has_external_.store(true, std::memory_order_release);
    was_asleep = asleep_.exchange(false, std::memory_order_acq_rel);
  }
  if (was_asleep)
    port_.kernel()->wake();
}

void event_loop::post(const std::vector<job_type>& items) {
  bool was_asleep = false;
  {
    std::lock_guard guard(mutex_);
    external_.insert(external_.end(), items.begin(), items.end());
    has_external_.store(true, std::memory_order_release);
    was_asleep = asleep_.exchange(false, std::memory_order_acq_rel);
  }
  if (was_asleep)
    port_.kernel()->wake();
}

void event_loop::post_cancel(operation_id id) {
  bool was_asleep = false;
  {
    std::lock_guard guard(mutex_);
    cancels_.push_back(id);
    has_external_.store(true, std::memory_order_release);
    was_asleep = asleep_.exchange(false, std::memory_order_acq_rel);
  }
  if (was_asleep)
    port_.kernel()->wake();
}

caf::resumable* event_loop::next(caf::execution_unit* worker) {
  if (!started_)
    start(worker);
  end_turn();
  auto item = queue_.take_next();
  if (item.value == nullptr)
    item = next_turn();
  current_kind_ = item.kind;
  counters_.jobs.add();
  counters_.queued.set(queue_.size());
  begin_turn(item.value);
  return item.value;
}

event_loop::job_type event_loop::next_turn() {
  for (;;) {
    between_jobs();
    if (!queue_.empty())
      break;
    if (!poll())
      sleep();
  }
  auto item = queue_.pop();
  if (item.kind == job_kind::floating && now_ns_ - item.since_ns > floating_wait_ns)
    waited_too_long_ = true;
  ++jobs_since_enter_;
  return item;
}

/// The clock is read once per turn: what the loop does between two turns is counted with the second, except the time
/// in the kernel.
void event_loop::begin_turn(caf::resumable* job) {
  bool is_actor = job->subtype() == caf::resumable::scheduled_actor;
  turn_of_ = is_actor ? static_cast<caf::scheduled_actor*>(job)->name() : "none";
  turn_began_ns_ = now_ns_;
  longest_turn.begin();
}

void event_loop::end_turn() {
  if (turn_of_ == nullptr)
    return;
  longest_turn.end(turn_of_);
  turns_.add(turn_of_, read_clock() - turn_began_ns_);
  turn_of_ = nullptr;
}

void event_loop::again(caf::resumable* job) {
  // A busy floating actor and other work run in parallel if a worker is asleep.
  auto* sleeper =
      current_kind_ == job_kind::floating && queue_.homed() != 0 ? pool_.find_sleeper(index_) : nullptr;
  if (sleeper == nullptr) {
    queue_.push_again({job, current_kind_, now_ns_});
    return;
  }
  counters_.pushes.add();
  counters_.pushed_jobs.add();
  sleeper->post({job, job_kind::floating, 0, true});
}

void event_loop::start(caf::execution_unit* worker) {
  // Here and not in the constructor: with SINGLE_ISSUER the ring belongs to the thread that created it.
  started_ = true;
  loop_of_this_thread = this;
  const bool serves = index_ < pool_.serving();
  prepare_worker_thread(serves ? "worker-" + std::to_string(index_)
                               : "transfer-" + std::to_string(index_ - pool_.serving()),
                        options_.slice_us);
  auto ring = options_.make_ring ? options_.make_ring(options_) : make_uring(options_);
  if (!ring)
    pool_.report_failure(index_, ring.error());
  port_.open(ring ? std::move(*ring) : make_refusing_ring(ENOSYS), worker);
  busy_since_ns_ = last_enter_ns_ = read_clock();
  pool_.report_started();
}

void event_loop::between_jobs() {
  if (has_external_.load(std::memory_order_acquire))
    drain_external();
  deliver();
  if (queue_.empty())
    return;
  auto& ring = *port_.kernel();
  bool owes_kernel = ring.has_unsubmitted() || ring.wants_enter();
  // An actor that stays busy must not delay the kernel: neither the answers it just sent nor newly received
  // messages.
  if (owes_kernel && (queue_.next().again || jobs_since_enter_ >= jobs_between_enters ||
                      now_ns_ - last_enter_ns_ >= ns_between_enters))
    enter(true);
  else if (jobs_since_enter_ >= jobs_between_enters)
    account();
  if (pool_.size() > 1 && (queue_.floating() > floating_jobs_kept || waited_too_long_))
    push_load();
}

void event_loop::drain_external() {
  std::vector<operation_id> cancels;
  {
    std::lock_guard guard(mutex_);
    taken_.swap(external_);
    cancels.swap(cancels_);
    has_external_.store(false, std::memory_order_relaxed);
  }
  for (auto& item : taken_)
    queue_.push({item.value, item.kind, now_ns_, item.again});
  taken_.clear();
  for (auto id : cancels)
    port_.cancel(id);
}

void event_loop::deliver() {
  if (auto n = port_.deliver())
    counters_.completions.add(n);
}

void event_loop::enter(bool between_jobs) {
  go_on_unless(between_jobs ? port_.kernel()->enter_between() : port_.kernel()->enter());
  counters_.enters.add();
  account();
  last_enter_ns_ = now_ns_;
  deliver();
}

void event_loop::account() {
  jobs_since_enter_ = 0;
  read_clock();
  counters_.busy_ns.add(static_cast<uint64_t>(now_ns_ - busy_since_ns_));
  busy_since_ns_ = now_ns_;
  counters_.heartbeat.add();
  counters_.in_flight.set(port_.in_flight());
}

/// Looks for completions and for messages of other threads, without system calls. True: there are some.
bool event_loop::poll() {
  if (!polling_.begins(now_ns_))
    return false;
  enter(); // what was started is submitted; now the kernel announces what completes
  auto found = [this] {
    return !queue_.empty() || has_external_.load(std::memory_order_acquire) || port_.kernel()->has_ready();
  };
  counters_.polls.add();
  pool_.set_asleep(index_, true); // may be given work: it sees it at once
  int64_t began_ns = now_ns_;
  bool paid = found();
  while (!paid && polling_.goes_on(read_clock()))
    paid = found();
  pool_.set_asleep(index_, false);
  polling_.ends(paid);
  if (polling_.suspects() && preemptions_.grew())
    polling_.was_preempted(now_ns_);
  counters_.polls_paid.add(paid ? 1 : 0);
  counters_.polling_ns.add(static_cast<uint64_t>(now_ns_ - began_ns));
  counters_.heartbeat.add();
  busy_since_ns_ = now_ns_;
  if (paid && queue_.empty() && port_.kernel()->wants_enter())
    enter();
  return paid;
}

void event_loop::sleep() {
  {
    std::lock_guard guard(mutex_);
    if (!external_.empty() || !cancels_.empty())
      return;
    asleep_.store(true, std::memory_order_release);
  }
  account();
  counters_.enters.add();
  pool_.set_asleep(index_, true);
  go_on_unless(port_.kernel()->wait());
  pool_.set_asleep(index_, false);
  asleep_.store(false, std::memory_order_release);
  read_clock();
  busy_since_ns_ = last_enter_ns_ = now_ns_;
  counters_.wake_ups.add();
  counters_.heartbeat.add();
}

void event_loop::push_load() {
  waited_too_long_ = false;
  auto* sleeper = pool_.find_sleeper(index_);
  if (sleeper == nullptr)
    return;
  auto share = queue_.take_half();
  if (share.empty())
    return;
  counters_.pushes.add();
  counters_.pushed_jobs.add(share.size());
  sleeper->post(share);
}

void event_loop::shut_down() {
  go_on_unless(port_.close());
  counters_.in_flight.set(0);
  loop_of_this_thread = nullptr;
}

caf::resumable* event_loop::drain_one() {
  drain_external();
  if (auto* woken = queue_.take_next().value)
    return woken;
  return queue_.empty() ? nullptr : queue_.pop().value;
}

// Without its ring a worker can neither wait nor serve, and its operations never complete: it would try again
// for ever.
void event_loop::go_on_unless(int refused) {
  if (refused != 0)
    pool_.ring_is_lost(index_, refused);
}

int64_t event_loop::read_clock() {
  now_ns_ = std::chrono::steady_clock::now().time_since_epoch().count();
  return now_ns_;
}

} // namespace terrace::runtime
