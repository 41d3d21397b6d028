#include "tests/fuzz/verb_group.hpp"

#include "index/object_header.hpp"
#include "tests/fuzz/promise.hpp"

#include <sys/socket.h>

#include <optional>

namespace terrace::fuzz {

namespace {

constexpr uint64_t physical = physical_bytes_for(verb_group::payload);

group_plan plan_of(const verb_group::options& chosen) {
  group_plan plan;
  plan.name = "fuzz";
  plan.isolated = chosen.isolated;
  plan.spaces_max = 4;
  plan.policy_time = clock_source::told; // a run depends on its input alone
  plan.host.bytes = verb_group::host_objects * physical;
  plan.host.policy = "lru";
  plan.host.waiting_max = 8;
  plan.detached = false;
  if (chosen.shadows)
    plan.shadows.push_back({.policy = "arc", .capacity_bytes = 8 * physical});
  return plan;
}

/// Small, so that inputs of a few hundred bytes reach them.
connection_limits small_limits() {
  connection_limits limits;
  limits.credit_requests = 4;
  limits.credit_bytes = 64 << 10;
  limits.staging_bytes = 8 * physical;
  limits.reservations_max = 3;
  limits.spaces_max = 3;
  limits.regions_max = 3;
  limits.region_bytes = 1 << 20;
  limits.leases_max = 4;
  limits.lease_objects_max = 24;
  limits.group_bytes = 128 << 10;
  limits.connections_max = 3;
  return limits;
}

} // namespace

verb_group::verb_group(const options& chosen) : simulated_actors(chosen.shuffled ? 7 : 0) {
  copiers_ = std::make_shared<actors::copier_pool>(std::vector{actors::copier_pool::member{
      actors::spawn_copier(sys, {.piece_bytes = 1024, .detached = false}), nullptr}});
  auto built = actors::build_group(sys, plan_of(chosen), probes_, copiers_);
  if (!built)
    broken(built.error().text);
  group_ = *built;
  regions_ = region_budget::make({"the trust group", 2 << 20});
  environment_ = std::make_shared<actors::connection_environment>();
  environment_->group = group_;
  environment_->limits = small_limits();
  environment_->started = now_;
  environment_->now = [this] { return now_; };
  environment_->set_log_level = [](const std::string&) -> result<std::string> { return "info"; };
  environment_->shut_down = [] {}; // each run ends anyway
  environment_->clients = std::make_shared<actors::connected_clients>();
  environment_->memory = std::make_shared<request_memory>(environment_->limits.group_bytes);
  environment_->regions = regions_;
  environment_->client_probe = probes_.clients;
  environment_->request_probe = probes_.requests;
  environment_->spaces = std::make_shared<metrics::space_table>(4);
  environment_->log = [](const std::string&) {};
  settle();
  running_ = sys.registry().running();
}

verb_group::~verb_group() {
  for (const caf::actor& one : actors::actors_of(*group_))
    stop(one);
  for (const auto& one : copiers_->all())
    stop(one.copier);
}

unique_fd verb_group::connect(pid_t pid, uid_t uid, std::shared_ptr<unique_fd> process) {
  int ends[2];
  promise(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
  peer who;
  who.pid = pid;
  who.uid = uid;
  who.pidfd = std::move(process);
  actors::spawn_connection(sys, home(), unique_fd(ends[1]), std::move(who), connection_id{++connections_},
                           environment_);
  return unique_fd(ends[0]);
}

void verb_group::pass(std::chrono::milliseconds by) {
  now_ += by;
  advance(by);
}

template <class Answer, class Handle, class Message>
Answer verb_group::ask(const Handle& who, Message message) {
  auto answer = std::make_shared<std::optional<Answer>>();
  sys.spawn([answer, who, message](caf::event_based_actor* self) {
    self->request(who, caf::infinite, message)
        .then([answer](const Answer& value) { *answer = value; }, [](const caf::error&) {});
  });
  settle();
  promise(answer->has_value(), "the group's actors answer");
  return std::move(**answer);
}

void verb_group::check_empty() {
  promise_equal(environment_->clients->size(), 0U, "connections that ended are gone");
  auto kept = ask<sessions_answer>(group_->group, sessions_request{1'000'000, {}}).listed;
  for (const listed_session& one :
       kept) { // they outlive their clients, each with an actor if it was used last
    promise_equal(static_cast<uint64_t>(one.report.owner), 0U, "sessions of ended connections");
    promise(ask<close_session_answer>(group_->group, close_session_request{one.report.id}).closed,
            "sessions end");
  }
  promise_equal(sys.registry().running(), running_, "actors of ended connections are gone");
  promise_equal(ring.in_flight(), 0U, "operations of ended connections are gone");
  promise_equal(environment_->memory->bytes(), 0U, "bytes of requests");
  promise_equal(environment_->memory->waiting(), 0U, "connections that wait for memory");
  promise_equal(regions_->bytes(), 0U, "bytes of regions");
  auto left = ask<leases_answer>(group_->group, leases_request{0, 1'000'000}).listed;
  for (const lease_report& one : left) { // pins outlive their clients
    promise_equal(static_cast<uint64_t>(one.owner), 0U, "leases of ended connections");
    auto ended = ask<mark_revoked_answer>(group_->group, mark_revoked_request{one.id});
    promise(ended.failure.code == errc::ok, "pins end");
  }
  promise_equal(group_->leases->bytes(), 0U, "bytes that leases hold");
  promise_equal(ask<group_report>(group_->group, group_status_request{}).leases, 0U, "leases");

  auto before = ask<tier_report>(group_->host, tier_status_request{});
  promise_equal(before.held_objects, 0U, "held objects");
  promise_equal(before.waiting, 0U, "requests that wait for memory");
  promise_equal(before.usage.used_bytes + before.usage.free_bytes, before.usage.capacity_bytes,
                "used and free bytes");
  promise_equal(before.objects, findable(), "objects in the index");
  auto cleared = ask<clear_answer>(group_->host, clear_request{});
  promise_equal(cleared.objects, before.objects, "objects that a clear removes");
  promise_equal(cleared.bytes, before.usage.used_bytes, "bytes that belong to published objects");
  promise_equal(findable(), 0U, "objects that are found after a clear");
  auto after = ask<tier_report>(group_->host, tier_status_request{});
  promise_equal(after.objects, 0U, "objects after a clear");
  promise_equal(after.usage.allocations, 0U, "extents after a clear");
  promise_equal(after.usage.free_bytes, after.usage.capacity_bytes, "free bytes after a clear");
}

} // namespace terrace::fuzz
