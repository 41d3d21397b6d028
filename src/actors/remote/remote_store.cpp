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

constexpr uint64_t first_link_tag = 16;
constexpr uint64_t tags_of(uint64_t link) { return first_link_tag + link * store_link::tags; }

auto remote_now() { return std::chrono::steady_clock::now(); }

std::chrono::nanoseconds patience_of(const remote_plan& plan) {
  return std::max<std::chrono::nanoseconds>(remote_store::patience_min, 4 * plan.lookup_budget);
}

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
      random_(random_entry_key_salt().first), run_(random_()),
      questions_link_(callbacks_of(tags_of(0), patience_of(with_.plan),
                                   [this](const remote::finished_command& told) { on_told(told); })),
      reads_{
          store_link(callbacks_of(tags_of(1), patience_of(with_.plan),
                                  [this](const remote::finished_command& done) { on_moved(reads_, done); }))},
      writes_{store_link(callbacks_of(
          tags_of(2), std::max<std::chrono::nanoseconds>(patience_for_writes, patience_of(with_.plan)),
          [this](const remote::finished_command& done) { on_moved(writes_, done); }))},
      sentinel_{.link = store_link(
                    callbacks_of(tags_of(3), patience_of(with_.plan),
                                 [this](const remote::finished_command& told) { on_primary(told); })),
                .all = with_.plan.address.sentinels,
                .text = with_.plan.address.text,
                .primary = with_.plan.address.primary} {
  realm_.key = with_.plan.names.epoch_key_of_all();
  with_.probe->degraded(true);
  owe_recorded();
  connect();
}

store_link::callbacks
remote_store::callbacks_of(uint64_t first_tag, std::chrono::nanoseconds silence_max,
                           std::function<void(const remote::finished_command&)> finished) {
  return {.first_tag = first_tag,
          .silence_max = silence_max,
          .submit =
              [this](runtime::io_request request, uint64_t tag) {
                return self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_),
                                            tag);
              },
          .cancel = [this](runtime::operation_id id) { self_->port().cancel(id); },
          .ready = [this] { on_link_ready(); },
          .finished = std::move(finished),
          .failed =
              [this, first_tag](const std::string& why) {
                if (first_tag == tags_of(3))
                  leave_sentinel(why);
                else
                  close(why);
              },
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
  sentinel_.asked = 0;
  if (sentinel_.all.empty())
    connect_to_server();
  else
    ask_sentinel();
}

void remote_store::connect_to_server() {
  for (store_link* link : servers())
    if (phase_ == phase::connecting)
      link->connect(with_.plan.address, with_.plan.credentials);
}

void remote_store::on_link_ready() {
  if (sentinel_.link.ready())
    return sentinel_.link.server()->primary(0, sentinel_.primary);
  for (const store_link* link : servers())
    if (!link->ready())
      return;
  told_ = questions_link_.server()->can_track();
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

// ---- sentinels ----

/// One after the other is asked, until one tells where the server is.
void remote_store::ask_sentinel() {
  sentinel_.failure = "it does not tell";
  sentinel_.leaves = false;
  sentinel_.link.connect(sentinel_.all[sentinel_.next], {});
}

void remote_store::on_primary(const remote::finished_command& told) {
  if (told.result == remote::command_result::refused)
    return leave_sentinel(told.why.text);
  if (told.result == remote::command_result::absent)
    return leave_sentinel("it watches no primary of the name " + sentinel_.primary +
                          ": check the name behind the last '/' of address");
  auto address = remote::parse_store_address(told.text);
  if (!address || address->at_path())
    return leave_sentinel("it names no address and port");
  if (with_.plan.address.length == 0 || with_.plan.address.name != address->name ||
      std::memcmp(&with_.plan.address.bytes, &address->bytes, sizeof address->bytes) != 0)
    with_.log("uses the server at " + told.text + ", as its sentinel at " +
              sentinel_.all[sentinel_.next].text + " tells");
  address->text = told.text + " (" + sentinel_.text + ")";
  with_.plan.address = std::move(*address);
  leave_sentinel({});
}

void remote_store::leave_sentinel(const std::string& why) {
  sentinel_.failure = why;
  sentinel_.leaves = true;
  sentinel_.link.end();
}

/// Its connection has ended.
void remote_store::after_sentinel() {
  sentinel_.leaves = false;
  sentinel_.link.forget();
  if (sentinel_.failure.empty())
    return connect_to_server();
  const std::string of_last = "the sentinel at " + sentinel_.all[sentinel_.next].text + ": ";
  sentinel_.next = (sentinel_.next + 1) % sentinel_.all.size();
  if (++sentinel_.asked == sentinel_.all.size())
    close("no sentinel tells where it is; " + of_last + sentinel_.failure);
  else
    ask_sentinel();
}

/// The server was the primary, and sentinels know which one is now.
bool remote_store::is_replica(const remote::finished_command& told) const {
  return told.result == remote::command_result::refused && told.why.code == errc::unsupported &&
         !sentinel_.all.empty();
}

void remote_store::on_ready() {
  phase_ = phase::ready;
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_succeeded(remote_now());
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
  for (store_link* link : links())
    link->end();
  book_.forget_all();
  realm_.token.ask_again();
  for (const auto& [id, space] : spaces_)
    space->epoch.token.ask_again();
  for (const auto& [fingerprint, space] : owed_)
    space->epoch.token.ask_again();
  auto lost = std::exchange(asked_, {});
  for (auto& question : std::exchange(questions_, {}))
    lost.push_back(std::move(question.replies));
  for (const expected_replies& replies : lost)
    replies.told(nullptr);
  lose();
}

void remote_store::lose() {
  const auto idle = [](const store_link* link) { return link->idle(); };
  if (phase_ != phase::closing || !std::ranges::all_of(links(), idle))
    return;
  phase_ = phase::down;
  const bool refused = std::ranges::any_of(links(), [](const store_link* link) { return link->refused(); });
  for (store_link* link : links())
    link->forget();
  for (lane* each : {&reads_, &writes_}) {
    each->window.restart();
    for (auto* steps : {&each->sent, &each->waiting})
      for (auto lost = std::exchange(*steps, {}); !lost.empty(); lost.pop_front()) {
        if (lost.front()->reads())
          with_.counts->missed(metrics::remote_miss::unanswered);
        end(*lost.front(), move_outcome::away);
      }
  }
  auto now = remote_now();
  using trial = remote::breaker::trial;
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_failed(refused ? trial::refused : trial::no_answer, now, random_());
  else
    breaker_.failed(now, random_());
  after(breaker_.retry_at() - now, retry_timer);
}

/// Begins what there is room for, sends and receives.
void remote_store::pump() {
  if (phase_ == phase::closing)
    return lose();
  if (sentinel_.leaves && sentinel_.link.idle())
    after_sentinel();
  sentinel_.link.pump(nullptr);
  take_invalidated();
  while (!questions_.empty() && questions_link_.ready() &&
         questions_link_.server()->has_room(questions_.front().replies.left)) {
    auto next = std::move(questions_.front());
    questions_.pop_front();
    asked_.push_back(std::move(next.replies));
    next.ask(*questions_link_.server());
  }
  questions_link_.pump(nullptr);
  for (lane* each : {&reads_, &writes_}) {
    while (phase_ == phase::ready && begin_next(*each)) {
    }
    each->link.pump(each->sent.empty() ? nullptr : each->sent.front());
  }
}

void remote_store::ask_store(std::function<void(remote::valkey_connection&)> ask, said told, size_t replies) {
  assert(replies <= slice_objects);
  auto timed = [this, told = std::move(told), asked = remote_now()](const remote::finished_command* reply) {
    if (reply != nullptr)
      with_.counts->answered(remote_now() - asked);
    told(reply);
  };
  questions_.push_back({std::move(ask), {std::move(timed), replies}});
}

void remote_store::on_told(const remote::finished_command& finished) {
  if (--asked_.front().left != 0)
    return asked_.front().told(&finished);
  auto last = std::move(asked_.front());
  asked_.pop_front();
  last.told(&finished);
}

void remote_store::run(task<> work, uint64_t number) {
  auto& progress = tasks_[number];
  progress = std::move(work);
  progress.start();
}

void remote_store::on_io_done(const runtime::io_done& done) {
  if (done.tag >= first_link_tag)
    links()[(done.tag - first_link_tag) / store_link::tags]->on_io_done(done.tag, done.result);
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
