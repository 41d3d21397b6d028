// A recount of a client's holdings names each wrong sum.
#include "connection/client_holdings.hpp"
#include "connection/request_table.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

namespace terrace {

/// Damages what is kept, as bugs would.
struct damaged_holdings {
  static void counts_region_bytes(client_holdings& of) { of.regions_.bytes_ += 5; }
  static void counts_lease_objects(client_holdings& of) { of.lease_objects_ += 1; }
  static void counts_reading_bytes(client_holdings& of) { of.reading_bytes_ += 5; }
  static void counts_revoked_bytes(client_holdings& of) { of.revoked_bytes_ += 5; }
  static void counts_objects_of_the_lease(client_holdings& of) {
    of.leases_.begin()->second.objects += 1;
    of.lease_objects_ += 1;
  }
};
struct damaged_staging {
  static allocator& space(staging& of) { return *of.space_; }
};
struct damaged_requests {
  static void counts_bytes(request_table& of) { of.bytes_ += 5; }
  static void counts_apart(request_table& of) { of.apart_ += 5; }
  static void counts_objects(request_table& of) { of.objects_ += 5; }
};

} // namespace terrace

using namespace terrace;
using namespace terrace::test;
using namespace std::chrono_literals;

namespace {

struct ClientCheck : ::testing::Test {
  client_holdings holdings{{.staging_bytes = 1 << 20,
                            .reservations = 4,
                            .spaces = 2,
                            .regions = 2,
                            .leases = 3,
                            .lease_objects = 10}};

  void take_lease(size_t objects) {
    std::vector<object_place> places(objects);
    for (size_t i = 0; i < objects; ++i)
      places[i].id = static_cast<object_id>(i + 1);
    auto taken = std::make_shared<lease>();
    taken->id.bytes[0] = 1;
    taken->held.push_back({tier_kind::host, hold_ptr(new object_hold({}, std::move(places)))});
    holdings.add(taken);
  }
  std::string only() {
    auto all = holdings.check();
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " differences";
  }
};

} // namespace

TEST_F(ClientCheck, FindsNothingThatIsWrong) {
  EXPECT_TRUE(holdings.check().empty());
  take_lease(3);
  ASSERT_TRUE(holdings.staging_memory());
  EXPECT_TRUE(holdings.check().empty()) << holdings.check().front();
  EXPECT_EQ(holdings.kept_leases().size(), 1u);
  EXPECT_EQ(holdings.owned().size(), 1u);
  EXPECT_TRUE(holdings.readings().empty());
}

TEST_F(ClientCheck, NamesEachSumThatIsWrong) {
  take_lease(3);
  damaged_holdings::counts_region_bytes(holdings);
  EXPECT_EQ(only(), "0 bytes of regions were counted, and 5 are kept");
}

TEST_F(ClientCheck, NamesObjectsOfLeases) {
  take_lease(3);
  damaged_holdings::counts_lease_objects(holdings);
  EXPECT_EQ(only(), "3 objects of leases were counted, and 4 are kept");
}

TEST_F(ClientCheck, NamesObjectsOfALease) {
  take_lease(3);
  damaged_holdings::counts_objects_of_the_lease(holdings);
  EXPECT_EQ(only(), "3 objects of a lease were counted, and 4 are kept");
}

TEST_F(ClientCheck, NamesBytesThatAreRead) {
  damaged_holdings::counts_reading_bytes(holdings);
  EXPECT_EQ(only(), "0 bytes that the client may be reading were counted, and 5 are kept");
}

TEST_F(ClientCheck, NamesBytesOfRevokedLeases) {
  damaged_holdings::counts_revoked_bytes(holdings);
  EXPECT_EQ(only(), "0 bytes of revoked leases that the client may be reading were counted, and 5 are kept");
}

TEST_F(ClientCheck, NamesExtentsOfStagingMemory) {
  staging& memory = **holdings.staging_memory();
  staged what;
  what.objects = chain(0, 2);
  auto id = memory.reserve(std::move(what), {4096, 4096});
  ASSERT_TRUE(id);
  EXPECT_TRUE(memory.check().empty());
  auto taken = *memory.take(*id);
  EXPECT_TRUE(memory.check().empty()) << "it is being committed";
  auto leaked = damaged_staging::space(memory).allocate(std::vector<uint64_t>{4096});
  EXPECT_EQ(only(), "3 extents of staging memory are in use, and reservations have 2");
  damaged_staging::space(memory).free(*leaked);
  memory.put_back(*taken);
  EXPECT_TRUE(memory.check().empty());
}

TEST_F(ClientCheck, NamesAReservationWhoseMemoryIsFree) {
  staging& memory = **holdings.staging_memory();
  staged what;
  what.objects = chain(0, 1);
  auto id = memory.reserve(std::move(what), {4096});
  ASSERT_TRUE(id);
  damaged_staging::space(memory).free(memory.find(*id)->extents);
  auto all = memory.check();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0],
            "reservation 1 has 4096 bytes of staging memory at 0, which the allocator did not give out");
  (void) damaged_staging::space(memory).allocate(std::vector<uint64_t>{4096});
}

TEST_F(ClientCheck, NamesWhatRequestsTake) {
  request_table::clock::time_point now{};
  auto found = [&](auto&& damage) {
    request_table table{connection_id{7}, {.requests = 4, .bytes = 1'000, .deadline = 1000ms}};
    table.begin(1, protocol::kind::store, 10, now);
    table.charge(1, 20, true);
    table.took_objects(1, 30);
    EXPECT_TRUE(table.check().empty());
    damage(table);
    auto all = table.check();
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " differences";
  };
  EXPECT_EQ(found(damaged_requests::counts_bytes),
            "requests in progress take 30 bytes of credit, and 35 are kept");
  EXPECT_EQ(found(damaged_requests::counts_apart),
            "requests in progress take 20 bytes that the trust group counts separately, and 25 are kept");
  EXPECT_EQ(found(damaged_requests::counts_objects),
            "requests in progress take 30 bytes for objects, and 35 are kept");
}
