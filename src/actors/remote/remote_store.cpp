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

constexpr uint64_t control_tags = 16, bulk_tags = 32;

auto remote_now() { return std::chrono::steady_clock::now(); }

/// Names that nobody else derives, and that end with this run.
remote::realm names_of_this_run(const remote::realm& shared) {
  std::array<boot_id, 2> random{random_boot_id(), random_boot_id()};
  std::array<uint8_t, sizeof random> key;
  std::memcpy(key.data(), random.data(), key.size());
  return shared.with_key(key);
}

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

// ---- the connections ----

remote_store::remote_store(self_pointer self, remote_store_arguments arguments)
    : self_(self), with_(std::move(arguments)), own_names_(names_of_this_run(with_.plan.names)),
      random_(random_entry_key_salt().first), run_(random_()), control_(callbacks_of(control_tags)),
      bulk_(callbacks_of(bulk_tags)) {
  realm_.key = with_.plan.names.epoch_key_of_all();
  with_.probe->degraded(true);
  owe_recorded();
  connect();
}

store_link::callbacks remote_store::callbacks_of(uint64_t first_tag) {
  return {.first_tag = first_tag,
          .submit =
              [this](runtime::io_request request, uint64_t tag) {
                return self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_),
                                            tag);
              },
          .cancel = [this](runtime::operation_id id) { self_->port().cancel(id); },
          .ready = [this] { on_link_ready(); },
          .finished =
              [this, first_tag](const remote::finished_command& finished) {
                if (first_tag == control_tags)
                  on_told(finished);
                else
                  on_moved(finished);
              },
          .failed = [this](const std::string& why) { close(why); },
          .turned = [this] { pump(); }};
}

void remote_store::after(std::chrono::nanoseconds time, uint64_t tag) {
  runtime::io_request wait;
  wait.code = runtime::io_code::timeout;
  wait.after = std::max(time, std::chrono::nanoseconds(0));
  self_->port().submit(std::move(wait), caf::actor_cast<caf::strong_actor_ptr>(self_), tag);
}

void remote_store::connect() {
  phase_ = phase::connecting;
  control_.connect(with_.plan.address, with_.plan.credentials);
  if (phase_ == phase::connecting)
    bulk_.connect(with_.plan.address, with_.plan.credentials);
}

void remote_store::on_link_ready() {
  if (!control_.ready() || !bulk_.ready())
    return;
  told_ = control_.server()->can_track();
  if (!told_)
    return on_ready();
  ask_store([](remote::valkey_connection& server) { server.track(0); },
            [this](const remote::finished_command* reply) {
              if (reply == nullptr)
                return;
              told_ = reply->result == remote::command_result::done;
              on_ready();
            });
}

void remote_store::on_ready() {
  phase_ = phase::ready;
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_succeeded();
  with_.service->set_notice({});
  with_.service->serves();
  with_.probe->degraded(false);
  if (!std::exchange(warned_, {}).empty())
    with_.log("is in service again");
  prepare(nullptr);
  for (const auto& [fingerprint, space] : owed_)
    prepare(space);
  for (const auto& [id, space] : spaces_) // another machine may have cleared it meanwhile
    prepare(space);
}

/// Ends the connections. What waits is answered once the kernel has let go of its memory.
void remote_store::close(const std::string& why) {
  if (phase_ == phase::closing)
    return;
  phase_ = phase::closing;
  why_ = "the store at " + with_.plan.address.text + ": " + why;
  with_.service->stops(why_);
  with_.probe->degraded(true);
  if (why_ != warned_)
    with_.warn("is out of service: " + why_);
  warned_ = why_;
  control_.end();
  bulk_.end();
  book_.forget_all();
  realm_.token.ask_again();
  for (const auto& [id, space] : spaces_)
    space->epoch.token.ask_again();
  for (const auto& [fingerprint, space] : owed_)
    space->epoch.token.ask_again();
  auto lost = std::exchange(asked_, {});
  for (auto& question : std::exchange(questions_, {}))
    lost.push_back(std::move(question.told));
  for (const said& told : lost)
    told(nullptr);
  lose();
}

void remote_store::lose() {
  if (phase_ != phase::closing || !control_.idle() || !bulk_.idle())
    return;
  phase_ = phase::down;
  control_.forget();
  bulk_.forget();
  window_.restart();
  for (auto* steps : {&sent_, &reads_, &writes_})
    for (auto lost = std::exchange(*steps, {}); !lost.empty(); lost.pop_front())
      end(*lost.front(), move_outcome::away);
  auto now = remote_now();
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_failed(now, random_());
  else
    breaker_.failed(now, random_());
  after(breaker_.retry_at() - now, retry_timer);
}

/// Begins what there is room for, sends and receives.
void remote_store::pump() {
  if (phase_ == phase::closing)
    return lose();
  take_invalidated();
  while (!questions_.empty() && control_.ready() && control_.server()->has_room()) {
    auto next = std::move(questions_.front());
    questions_.pop_front();
    asked_.push_back(std::move(next.told));
    next.ask(*control_.server());
  }
  if (phase_ == phase::ready)
    while (begin_next(reads_) || (reads_.empty() && begin_next(writes_))) {
    }
  control_.pump(nullptr);
  bulk_.pump(sent_.empty() ? nullptr : sent_.front());
}

void remote_store::ask_store(std::function<void(remote::valkey_connection&)> ask, said told) {
  auto timed = [this, told = std::move(told), asked = remote_now()](const remote::finished_command* reply) {
    if (reply != nullptr)
      with_.counts->answered(remote_now() - asked);
    told(reply);
  };
  questions_.push_back({std::move(ask), std::move(timed)});
}

void remote_store::on_told(const remote::finished_command& finished) {
  auto told = std::move(asked_.front());
  asked_.pop_front();
  told(&finished);
}

void remote_store::run(task<> work, uint64_t number) {
  auto& progress = tasks_[number];
  progress = std::move(work);
  progress.start();
}

void remote_store::on_io_done(const runtime::io_done& done) {
  if (done.tag >= bulk_tags)
    bulk_.on_io_done(done.tag, done.result);
  else if (done.tag >= control_tags)
    control_.on_io_done(done.tag, done.result);
  else if (done.tag == budget_timer)
    on_budget();
  else if (done.tag == retry_timer) {
    breaker_.begin_trial();
    connect();
  }
  pump();
}

// ---- the actor ----

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
  };
}

} // namespace

remote_store_actor spawn_remote_store(caf::actor_system& system, const runtime::home& home,
                                      remote_store_arguments arguments) {
  return runtime::spawn_homed(system, home, remote_store_behavior,
                              std::make_shared<remote_store_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
