// Requests wait for what transfers hold, but not for the leases that hold it afterwards.
#include "actors/tier/tier_actor.hpp"

#include "index/object_header.hpp"
#include "objects.hpp"
#include "tests/support/actor_fixture.hpp"

#include <optional>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace waits_for_transfers_test {

constexpr uint64_t page = 4096;
constexpr uint64_t small = physical_bytes_for(page); // of an object of one page

/// Counts how often it is asked, and names nothing: everything is held.
caf::behavior without_victims(const std::shared_ptr<size_t>& asked) {
  return {
      [](const policy_notes&) {},
      [](notes_mark mark) { return mark; },
      [asked](const victim_request&) {
        ++*asked;
        return victim_answer{};
      },
  };
}

/// A tier in which a tenant may have eight small objects: `quota` says whether a quota or the tier ends there.
struct WaitsForTransfers : terrace::test::actor_fixture {
  static constexpr size_t room = 8; // objects
  std::shared_ptr<size_t> asked = std::make_shared<size_t>(0);
  ledger_ptr ledger = std::make_shared<lease_ledger>();
  account_ptr client = ledger->open();
  tier_actor tier;

  void start(bool quota) {
    const uint64_t bytes = (quota ? 64 : room) * small;
    tier_arguments arguments;
    arguments.config.kind = tier_kind::host;
    arguments.start.space =
        make_allocator("free_list", {.capacity_bytes = bytes, .boundary_bytes = bytes}).value();
    arguments.policy = caf::actor_cast<policy_actor>(sys.spawn(without_victims, asked));
    arguments.leases = ledger;
    if (quota)
      arguments.quotas =
          std::make_shared<tenant_quotas>(tier_kind::host, with_quota(), [bytes] { return bytes; });
    arguments.probe = std::make_shared<metrics::tier_probe>();
    tier = spawn_tier(sys, std::move(arguments));
  }
  static std::shared_ptr<tenant_directory> with_quota() {
    auto directory = std::make_shared<tenant_directory>();
    tenant_quota rule{"all", "", true, {}};
    rule.in(tier_kind::host).max = quota_part{room * small, false};
    directory->set_quotas({rule});
    directory->opened(key_of(0).space, "salt");
    return directory;
  }
  void TearDown() override {
    caf::anon_send_exit(caf::actor_cast<caf::actor>(tier), caf::exit_reason::user_shutdown);
    settle();
    tier = nullptr;
  }

  template <class R, class M>
  std::shared_ptr<std::optional<R>> ask(M message) {
    auto answer = std::make_shared<std::optional<R>>();
    sys.spawn(
        [this, answer, message = std::make_shared<M>(std::move(message))](caf::event_based_actor* self) {
          self->request(tier, caf::infinite, std::move(*message)).then([answer](const R& value) {
            *answer = value;
          });
        });
    settle();
    return answer;
  }
  std::shared_ptr<std::optional<acquire_answer>> acquire(uint64_t first, size_t count) {
    acquire_request request;
    request.objects = chain(first, count);
    return ask<acquire_answer>(std::move(request));
  }
  /// Objects that a transfer holds.
  hold_ptr transferred(uint64_t first, size_t count) {
    auto acquired = acquire(first, count);
    return (*ask<publish_answer>(publish_request{(*acquired)->places, true, 0}))->held;
  }
  hold_ptr found(uint64_t first, size_t count) {
    return (*ask<probe_answer>(probe_request{chain(first, count), true, false}))->held;
  }
  hold_ptr lease(hold_ptr held) {
    auto charged = client->charge(std::move(held));
    settle();
    return charged;
  }

  /// A transfer's hold becomes a lease, as that of a `ReadLease` does.
  void expect_refused_when_a_transfer_becomes_a_lease() {
    auto held = transferred(0, room);
    auto waiting = acquire(100, 1);
    ASSERT_FALSE(*waiting) << "the transfer ends soon";
    held = lease(std::move(held));
    ASSERT_TRUE(*waiting);
    EXPECT_EQ((*waiting)->failure.code, errc::no_space);
  }
  /// A lookup takes a lease on what a transfer still holds.
  void expect_refused_when_a_lease_has_what_a_transfer_holds() {
    auto held = transferred(0, room);
    auto waiting = acquire(100, 1);
    auto leased = found(0, room);
    ASSERT_FALSE(*waiting) << "the lookup may give it back";
    leased = lease(std::move(leased));
    ASSERT_TRUE(*waiting) << "the end of the transfer releases nothing any more";
    EXPECT_EQ((*waiting)->failure.code, errc::no_space);
    held.reset();
    settle();
  }
  void expect_rounds_only_once_leases_hold_everything() {
    auto one = transferred(0, room / 2);
    auto other = transferred(10, room / 2);
    auto waiting = acquire(100, 1);
    const size_t before = *asked;
    one = lease(std::move(one));
    EXPECT_FALSE(*waiting) << "the other transfer ends soon";
    EXPECT_EQ(*asked, before);
    other = lease(std::move(other));
    EXPECT_TRUE(*waiting);
    EXPECT_EQ(*asked, before + 1);
    auto again = lease(found(0, room / 2));
    EXPECT_EQ(*asked, before + 1) << "nobody waits";
  }
};

TEST_F(WaitsForTransfers, InAQuotaEndsWhenATransferBecomesALease) {
  start(true);
  expect_refused_when_a_transfer_becomes_a_lease();
}

TEST_F(WaitsForTransfers, InAQuotaEndsWhenALeaseHasWhatATransferHolds) {
  start(true);
  expect_refused_when_a_lease_has_what_a_transfer_holds();
}

TEST_F(WaitsForTransfers, InAQuotaLooksAgainOnceLeasesHoldEverything) {
  start(true);
  expect_rounds_only_once_leases_hold_everything();
}

TEST_F(WaitsForTransfers, ForSpaceEndsWhenATransferBecomesALease) {
  start(false);
  expect_refused_when_a_transfer_becomes_a_lease();
}

TEST_F(WaitsForTransfers, ForSpaceEndsWhenALeaseHasWhatATransferHolds) {
  start(false);
  expect_refused_when_a_lease_has_what_a_transfer_holds();
}

TEST_F(WaitsForTransfers, ForSpaceLooksAgainOnceLeasesHoldEverything) {
  start(false);
  expect_rounds_only_once_leases_hold_everything();
}

} // namespace waits_for_transfers_test
