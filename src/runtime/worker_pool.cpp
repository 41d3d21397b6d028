#include "runtime/worker_pool.hpp"
#include "runtime/uring.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace terrace::runtime {

namespace {

constexpr int64_t sample_interval_ns = 100'000'000;
constexpr double sample_weight = 0.5;
// Shares of time that differ by less count as equal; otherwise noise would outweigh the number of residents.
constexpr double equal_share = 0.1;

} // namespace

worker_pool::worker_pool(runtime_options options, size_t workers, caf::actor_system* system)
    : options_(std::move(options)), serving_(workers), loads_(workers) {
  for (size_t i = 0; i < workers + options_.transfer_workers; ++i)
    loops_.push_back(std::make_unique<event_loop>(*this, i, options_, system));
}

void worker_pool::sample_load() {
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  auto elapsed = now - sampled_ns_;
  if (elapsed < sample_interval_ns)
    return;
  for (size_t i = 0; i < serving_; ++i) {
    auto busy = loops_[i]->counters().busy_ns.get();
    auto share = static_cast<double>(busy - loads_[i].busy_ns) / static_cast<double>(elapsed);
    loads_[i].recent = sampled_ns_ == 0 ? 0 : loads_[i].recent * (1 - sample_weight) + share * sample_weight;
    loads_[i].busy_ns = busy;
  }
  sampled_ns_ = now;
}

event_loop& worker_pool::least_busy() {
  std::lock_guard guard(load_mutex_);
  sample_load();
  auto rank = [this](size_t i) {
    return std::tuple{static_cast<int>(loads_[i].recent / equal_share), loops_[i]->unit().residents()};
  };
  size_t best = 0;
  for (size_t i = 1; i < serving_; ++i)
    if (rank(i) < rank(best))
      best = i;
  return *loops_[best];
}

event_loop& worker_pool::transfer_worker() {
  if (serving_ == loops_.size())
    return least_busy();
  auto fewer = [](auto& a, auto& b) { return a->unit().residents() < b->unit().residents(); };
  return **std::min_element(loops_.begin() + static_cast<ptrdiff_t>(serving_), loops_.end(), fewer);
}

event_loop& worker_pool::least_loaded() {
  std::lock_guard guard(load_mutex_);
  sample_load();
  auto rank = [this](size_t i) {
    return std::tuple{loops_[i]->counters().queued.get(), static_cast<int>(loads_[i].recent / equal_share)};
  };
  size_t best = 0;
  for (size_t i = 1; i < serving_; ++i)
    if (rank(i) < rank(best))
      best = i;
  return *loops_[best];
}

event_loop* worker_pool::find_sleeper(size_t except) {
  auto others = sleepers_.load(std::memory_order_relaxed) & ~(uint64_t{1} << except);
  return others == 0 ? nullptr : loops_[static_cast<size_t>(std::countr_zero(others))].get();
}

void worker_pool::set_asleep(size_t index, bool asleep) {
  if (index >= serving_) // nobody gives it work
    return;
  if (asleep)
    sleepers_.fetch_or(uint64_t{1} << index, std::memory_order_relaxed);
  else
    sleepers_.fetch_and(~(uint64_t{1} << index), std::memory_order_relaxed);
}

void worker_pool::cancel(operation_id id, const event_loop* from) {
  auto ring = operation_pool::ring_of(id);
  if (ring < 0 || static_cast<size_t>(ring) >= loops_.size() ||
      loops_[static_cast<size_t>(ring)].get() == from)
    return;
  loops_[static_cast<size_t>(ring)]->post_cancel(id);
}

void worker_pool::report_started() {
  std::lock_guard guard(start_mutex_);
  ++started_;
  start_changed_.notify_all();
}

void worker_pool::report_failure(size_t index, const error& why) {
  std::lock_guard guard(start_mutex_);
  if (failure_.code == errc::ok)
    failure_ = {why.code, "worker " + std::to_string(index) + " has no ring: " + why.text};
}

void worker_pool::ring_is_lost(size_t index, int error_number) {
  end_mutex_.lock();
  error why{errc::unsupported,
            "worker " + std::to_string(index) + ": " + explain_ring_error("io_uring_enter", error_number)};
  if (options_.ring_lost)
    options_.ring_lost(why);
  else
    std::fprintf(stderr, "%s\n", why.text.c_str());
  std::abort();
}

result<void> worker_pool::wait_started() {
  std::unique_lock guard(start_mutex_);
  start_changed_.wait(guard, [this] { return started_ == loops_.size(); });
  if (failure_.code != errc::ok)
    return tl::unexpected(failure_);
  return {};
}

} // namespace terrace::runtime
