#include "actors/remote/remote_store.hpp"

#include "base/random_id.hpp"
#include "runtime/ask.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

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

// ---- what operators ask, and change ----

namespace {

const char* state_name(bool ready, bool connecting) {
  return ready ? "ready" : connecting ? "connecting" : "down";
}

} // namespace

/// The servers that are in service are asked for their memory.
caf::result<remote::store_status> remote_store::on_status() {
  struct asking {
    answer<remote::store_status> reply;
    remote::store_status status;
    size_t left = 1;
    void one_less() {
      if (--left == 0)
        reply.deliver(std::move(status));
    }
  };
  auto all = std::make_shared<asking>();
  all->reply = make_answer<remote::store_status>(self_);
  auto promise = all->reply.promise();
  remote::store_status& status = all->status;
  const auto connects = [](const auto& each) {
    return each.second->now == phase::connecting && !each.second->is_replica();
  };
  const bool ready = with_.service->reads();
  status.address = in_cluster() ? with_.plan.address.text : nodes_.begin()->second->address.text;
  status.prefix = with_.plan.names.prefix();
  status.encrypted = cipher_ != nullptr;
  status.compressed = with_.plan.compress;
  status.state = state_name(ready, std::ranges::any_of(nodes_, connects) || guides_.asks);
  status.since = with_.service->since();
  status.reason = with_.service->reason();
  status.notice = with_.service->notice();
  const auto recent = with_.counts->recent();
  status.answers = recent.count;
  status.mean_answer = recent.mean;
  status.slowest_answer = recent.slowest;
  if (auto warning = remote::budget_warning(recent.count, recent.mean, with_.plan.lookup_budget);
      !warning.empty())
    status.warnings.push_back(std::move(warning));
  status.read_bytes = with_.counts->read_bytes();
  status.written_bytes = with_.counts->written_bytes();
  status.stored_bytes = with_.counts->stored_bytes();
  for (size_t why = 0; why < metrics::remote_misses.size(); ++why)
    if (uint64_t count = with_.counts->misses(why); count != 0)
      status.misses.emplace_back(metrics::remote_misses[why], count);
  const auto replica_reads = [this](metrics::replica_answer how) {
    return with_.counts->replica_answers_of(how);
  };
  for (const auto& [of, space] : all_tokens())
    status.owed_clears += of->token.owes_clear() ? 1 : 0;
  if (is_bucket())
    status.hedges = {with_.counts->hedges(), with_.counts->hedges_won()};
  if (with_.plan.address.reads_replicas)
    status.replica_reads = {replica_reads(metrics::replica_answer::read),
                            replica_reads(metrics::replica_answer::asked_primary),
                            replica_reads(metrics::replica_answer::damaged)};
  if (!ready)
    status.memory_refused = "the store is not in service";
  status.told = ready;
  for (const auto& [number, each] : nodes_) {
    if (in_cluster() && !each->leaves)
      status.nodes.push_back({each->address.text, state_name(each->ready(), each->now == phase::connecting),
                              each->why, each->slots, each->is_replica()});
    if (!each->ready() || each->is_replica())
      continue;
    status.told &= each->told;
    status.server = each->questions_link->server()->server_name();
    status.version = each->questions_link->server()->server_version();
    ++all->left;
    ask_store(
        *each, [](remote::store_commands& server) { server.info(0, "memory"); },
        [all, node = in_cluster() ? "the node at " + each->address.text + ": "
                                  : std::string()](const remote::finished_command* told) {
          remote::store_status& known = all->status;
          if (told == nullptr || told->result != remote::command_result::done) {
            known.memory_refused = node + (told == nullptr ? "the connection was lost" : told->why.text);
          } else {
            const auto memory = remote::parse_memory(told->text);
            if (auto warning = remote::memory_warning(memory); !warning.empty())
              known.warnings.push_back(node + warning);
            known.memory = known.memory ? remote::sum_of(*known.memory, memory) : memory;
          }
          all->one_less();
        });
  }
  all->one_less();
  pump();
  return promise;
}

/// The inspector ends with this actor at the latest.
store_inspector_actor remote_store::spawn_inspector() {
  auto inspector = spawn_store_inspector(self_->system(), self_->where(), with_.plan);
  self_->link_to(inspector);
  return inspector;
}

template <class Answer, class Request>
caf::result<Answer> remote_store::inspect(const Request& request) {
  return self_->delegate(spawn_inspector(), request);
}
template caf::result<remote::store_probe> remote_store::inspect(const remote::store_probe_request& request);
template caf::result<remote::store_sweep> remote_store::inspect(const remote::store_sweep_request& request);

/// New credentials are for the next connection. They are tried at once, so that a mistake is told while the operator looks.
void remote_store::on_credentials(const remote::store_credentials& with) {
  const bool same_login = with.login == with_.plan.credentials.login;
  with_.plan.credentials = with;
  if (same_login && !with.tls)
    return;
  auto inspector = spawn_inspector();
  self_->request(inspector, caf::infinite, remote::store_probe_request{})
      .then(
          [this, what = same_login ? "certificates as they are now"
                                   : "new password of password_file"](const remote::store_probe& tried) {
            if (tried.works())
              with_.log(std::string("accepts the ") + what + "; the next connection uses what was read");
            else if (!tried.steps.empty())
              with_.warn(std::string("does not accept the ") + what +
                         ", and the open connections stay: " + tried.steps.back().failure);
          },
          [](const caf::error&) {});
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
      [self](volume_joined_notice) { self->state.work->on_volume_joined(); },
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
