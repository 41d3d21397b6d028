// Operators ask this of a remote store, and change this about it.
#include "actors/remote/remote_store.hpp"
#include "actors/remote/store_inspector.hpp"
#include "runtime/ask.hpp"

#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

const char* state_name(bool ready, bool connecting) {
  return ready ? "ready" : connecting ? "connecting" : "down";
}

} // namespace

/// The store is asked for its memory if it is in service.
caf::result<remote::store_status> remote_store::on_status() {
  auto reply = make_answer<remote::store_status>(self_);
  auto promise = reply.promise();
  remote::store_status status;
  const bool ready = phase_ == phase::ready;
  status.address = with_.plan.address.text;
  status.prefix = with_.plan.names.prefix();
  status.state = state_name(ready, phase_ == phase::connecting);
  status.since = with_.service->since();
  status.reason = with_.service->reason();
  status.notice = with_.service->notice();
  const auto recent = with_.counts->recent();
  status.answers = recent.count;
  status.mean_answer = recent.mean;
  status.slowest_answer = recent.slowest;
  status.read_bytes = with_.counts->read_bytes();
  status.written_bytes = with_.counts->written_bytes();
  for (size_t why = 0; why < metrics::remote_misses.size(); ++why)
    if (uint64_t count = with_.counts->misses(why); count != 0)
      status.misses.emplace_back(metrics::remote_misses[why], count);
  if (!ready) {
    status.memory_refused = "the store is not in service";
    reply.deliver(std::move(status));
    return promise;
  }
  status.told = told_;
  status.server = questions_link_.server()->server_name();
  status.version = questions_link_.server()->server_version();
  ask_store([](remote::valkey_connection& server) { server.info(0, "memory"); },
            [reply, status](const remote::finished_command* told) mutable {
              if (told == nullptr)
                status.memory_refused = "the connection was lost";
              else if (told->result != remote::command_result::done)
                status.memory_refused = told->why.text;
              else
                status.memory = remote::parse_memory(told->text);
              if (status.memory)
                if (auto warning = remote::memory_warning(*status.memory); !warning.empty())
                  status.warnings.push_back(std::move(warning));
              reply.deliver(std::move(status));
            });
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

} // namespace terrace::actors
