// What a daemon says of itself when all clients have gone.
#include "daemon_run.hpp"

#include "tests/support/raw_client.hpp"

#include <memory>

namespace terrace::simulation {

using protocol::kind;

namespace {

/// An operator, who asks one thing after another.
class operator_client {
 public:
  using step = std::function<bool()>; ///< false: nothing moves any more

  operator_client(const std::string& socket, step advance) : client_(socket), advance_(std::move(advance)) {
    (void) ask(kind::hello,
               [](auto& b) { return wire::CreateHelloDirect(b, protocol::version, "operator"); });
  }

  template <class Build>
  test::received ask(kind verb, Build&& build) {
    client_.send(verb, ++last_, std::forward<Build>(build));
    simulated_sockets::touch();
    for (;;) {
      if (auto answer = client_.next())
        return *answer;
      if (!advance_())
        return {kind::error, last_, {}};
    }
  }

 private:
  test::raw_client client_;
  step advance_;
  uint64_t last_ = 0;
};

} // namespace

void daemon_run::check_empty(uint32_t group) {
  say("an operator looks at group " + std::to_string(group));
  auto until = events_.now() + std::chrono::minutes(5);
  operator_client by(world_.sockets[group], [&] {
    simulated_sockets::touch();
    return events_.now() < until && daemon_->step();
  });
  auto broke = [&](const std::string& what) {
    model_.broke("after the last client of group " + std::to_string(group) + ": " + what);
  };
  // Pins and kept sessions outlive their clients.
  auto leases = by.ask(kind::leases, [](auto& b) { return wire::CreateLeases(b); });
  if (leases.is_error())
    return broke("the leases are not told: " + leases.text());
  for (const auto* each : *leases.as<wire::LeasesAnswer>().leases()) {
    if (each->connection() != 0)
      broke("a lease of connection " + std::to_string(each->connection()) + " is left");
    std::vector<uint8_t> id(each->lease()->begin(), each->lease()->end());
    (void) by.ask(kind::revoke, [&](auto& b) { return wire::CreateRevoke(b, b.CreateVector(id)); });
  }
  auto sessions = by.ask(kind::sessions, [](auto& b) { return wire::CreateSessions(b); });
  for (const auto* each : *sessions.as<wire::SessionsAnswer>().sessions()) {
    if (each->connection() != 0)
      broke("a session of connection " + std::to_string(each->connection()) + " is left");
    std::vector<uint8_t> id(each->session()->begin(), each->session()->end());
    (void) by.ask(kind::close_session,
                  [&](auto& b) { return wire::CreateCloseSession(b, b.CreateVector(id)); });
  }
  auto check = by.ask(kind::check, [](auto& b) { return wire::CreateCheck(b); });
  // What ends in another group meanwhile is not this group's.
  for (int again = 0; again < 5 && !check.is_error() && !check.as<wire::CheckAnswer>().idle(); ++again)
    check = by.ask(kind::check, [](auto& b) { return wire::CreateCheck(b); });
  if (check.is_error())
    return broke("no check is possible: " + check.text());
  const auto& counted = check.as<wire::CheckAnswer>();
  if (counted.count() != 0)
    broke(counted.differences()->Get(0)->str());
  else if (!counted.idle())
    broke("some request is still in progress");
  for (const auto* each : *counted.references())
    if (each->count() != 0)
      broke(std::to_string(each->count()) + " references of " + each->kind()->str() + " are left");
  auto status = by.ask(kind::status, [](auto& b) { return wire::CreateStatus(b); });
  const auto& told = status.as<wire::StatusAnswer>();
  if (told.clients()->size() != 1)
    broke(std::to_string(told.clients()->size()) + " clients are left");
  const auto& of = *told.groups()->Get(0);
  if (of.leases() != 0 || of.sessions() != 0 || of.region_bytes() != 0)
    broke("leases, sessions or regions are left");
  for (const auto* tier : *of.tiers())
    if (tier->leased_objects() != 0 || tier->waiting_requests() != 0 ||
        tier->used_bytes() + tier->free_bytes() != tier->capacity_bytes())
      broke("objects of " + tier->tier()->str() + " are leased, or its bytes do not add up");
  auto cleared = by.ask(kind::clear, [](auto& b) { return wire::CreateClear(b, 0); });
  if (cleared.is_error())
    return;
  auto after = by.ask(kind::status, [](auto& b) { return wire::CreateStatus(b); });
  for (const auto* tier : *after.as<wire::StatusAnswer>().groups()->Get(0)->tiers())
    if (tier->state()->str() == "ready" && (tier->objects() != 0 || tier->used_bytes() != 0))
      broke(std::to_string(tier->used_bytes()) + " bytes of " + tier->tier()->str() +
            " are used after a clear");
}

} // namespace terrace::simulation
