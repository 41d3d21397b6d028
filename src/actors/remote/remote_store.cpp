#include "actors/remote/remote_store.hpp"

#include "base/random_id.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace terrace::actors {

namespace {

auto remote_now() { return std::chrono::steady_clock::now(); }

} // namespace

// ---- the service ----

std::string remote_service::reason() const {
  std::lock_guard lock(mutex_);
  return why_;
}

std::string remote_service::notice() const {
  std::lock_guard lock(mutex_);
  return notice_;
}

std::chrono::seconds remote_service::since() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration_cast<std::chrono::seconds>(remote_now() - since_);
}

void remote_service::serves() {
  {
    std::lock_guard lock(mutex_);
    why_.clear();
    since_ = remote_now();
  }
  serves_.store(true, std::memory_order_release);
}

void remote_service::stops(std::string why) {
  const bool served = serves_.exchange(false, std::memory_order_acq_rel);
  std::lock_guard lock(mutex_);
  if (served)
    since_ = remote_now();
  why_ = std::move(why);
}

void remote_service::set_notice(std::string notice) {
  std::lock_guard lock(mutex_);
  notice_ = std::move(notice);
}

// ---- the actor ----

void remote_store::run(task<> work, uint64_t number) {
  auto& progress = tasks_[number];
  progress = std::move(work);
  progress.start();
}

namespace {

remote_store::interface::behavior_type
remote_store_behavior(remote_store::self_pointer self,
                      const std::shared_ptr<remote_store_arguments>& arguments) {
  self->state.work = std::make_unique<remote_store>(self, std::move(*arguments));
  return {
      [self](const start_journal& request) {
        self->state.work->start(caf::actor_cast<tier_actor>(request.tier));
      },
      [self](const read_request& request) { return self->state.work->on_move(request, false); },
      [self](const write_request& request) { return self->state.work->on_move(request, true); },
      [self](const find_request& request) { return self->state.work->on_find(request); },
      [self](const remove_values_request& request) { return self->state.work->on_remove_values(request); },
      [self](const index_changes& changes) { self->state.work->on_changes(changes); },
      [self](const remote::store_status_request&) { return self->state.work->on_status(); },
      [self](const remote::store_probe_request& request) {
        return self->state.work->inspect<remote::store_probe>(request);
      },
      [self](const remote::store_sweep_request& request) {
        return self->state.work->inspect<remote::store_sweep>(request);
      },
      [self](const remote::new_credentials_notice& notice) { self->state.work->on_credentials(notice.with); },
      [self](const forget_request& request) { return self->state.work->on_forget(request); },
      [](const check_journal_request&) { return check_answer_texts{}; },
      [](const close_mover_request&) { return close_mover_answer{}; },
      [](register_memory) {},
      [](const add_memory&) {},
      [](const forget_memory&) { return retire_answer{}; }, // nothing refers to an empty segment
      [self](const runtime::io_done& done) { self->state.work->on_io_done(done); },
      [self](values_turn) { self->state.work->on_values_turn(); },
  };
}

} // namespace

remote_store_actor spawn_remote_store(caf::actor_system& system, const runtime::home& home,
                                      remote_store_arguments arguments) {
  return runtime::spawn_homed(system, home, remote_store_behavior,
                              std::make_shared<remote_store_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
