// The daemon's memory, mapped: the client reads under a lease and writes into a reservation.
#include "scripted_daemon.hpp"

#include <sys/mman.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

/// A file of the daemon in which every byte is the number of its page.
unique_fd numbered_pages(size_t pages) {
  unique_fd memory(::memfd_create("arena", MFD_CLOEXEC));
  std::vector<uint8_t> page(4096);
  for (size_t i = 0; i < pages; ++i) {
    page.assign(4096, static_cast<uint8_t>(i));
    EXPECT_EQ(::pwrite(memory.get(), page.data(), page.size(), static_cast<off_t>(i * 4096)), 4096);
  }
  return memory;
}

void answer_locations(peer& client, const std::vector<wire::Location>& places) {
  client.answer(client.expect(kind::read_lease), [&](body_builder& body) {
    return wire::CreateReadLeaseAnswer(body, body.CreateVectorOfStructs(places));
  });
}

void answer_reserve(peer& client, uint64_t id, const std::vector<wire::Location>& places) {
  client.answer(client.expect(kind::reserve), [&](body_builder& body) {
    return wire::CreateReserveAnswer(body, id, 3, body.CreateVectorOfStructs(places));
  });
}

void answer_map(peer& client, uint32_t expected, const unique_fd& memory, uint64_t bytes, bool writable) {
  auto asked = client.expect(kind::map_segment);
  EXPECT_EQ(asked.as<wire::MapSegment>().segment(), expected);
  client.answer(
      asked,
      [&](body_builder& body) { return wire::CreateMapSegmentAnswer(body, expected, bytes, writable); },
      {memory.get()});
}

} // namespace

TEST(ReadLease, MapsASegmentOnceAndReadsInPlace) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto memory = numbered_pages(4);
    answer_locations(client, {{4096, 4096, 3, 0}, {8192, 100, 3, 0}});
    answer_map(client, 3, memory, 4 * 4096, false);
    answer_locations(client, {{3 * 4096, 4096, 3, 0}});
    client.expect(kind::release);
  });
  auto connected = daemon.connect();
  auto held = connected.adopt(lease_of(1));
  auto first = connected.read_lease(held.id());
  ASSERT_FINE(first);
  ASSERT_EQ(first->objects.size(), 2U);
  EXPECT_EQ(first->objects[0][4095], 1);
  EXPECT_EQ(first->objects[1].size(), 100U);
  EXPECT_EQ(first->objects[1][0], 2);
  auto second = connected.read_lease(held.id());
  ASSERT_FINE(second);
  EXPECT_EQ(second->objects[0][0], 3);
}

TEST(ReadLease, ObjectsStayReadableWhenTheDaemonAndTheConnectionAreGone) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto memory = numbered_pages(4);
    answer_locations(client, {{4096, 4096, 3, 0}});
    answer_map(client, 3, memory, 4 * 4096, false);
  });
  located_objects located;
  {
    auto connected = daemon.connect();
    auto read = connected.read_lease(lease_of(1));
    ASSERT_FINE(read);
    located = std::move(*read);
  }
  EXPECT_EQ(located.objects[0][17], 1);
}

TEST(ReadLease, CopiesIntoTheCallersMemory) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto memory = numbered_pages(4);
    answer_locations(client, {{4096, 4096, 3, 0}, {8192, 4096, 3, 0}});
    answer_map(client, 3, memory, 4 * 4096, false);
    answer_locations(client, {{4096, 4096, 3, 0}, {8192, 4096, 3, 0}});
    answer_locations(client, {{4096, 4096, 3, 0}});
    client.drain();
  });
  auto connected = daemon.connect();
  auto held = connected.adopt(lease_of(1));
  std::vector<uint8_t> memory(8192);
  std::vector<std::span<uint8_t>> into{std::span(memory).first(4096), std::span(memory).last(4096)};
  auto copied = connected.load_under_lease(held, {0, 2}, into);
  ASSERT_FINE(copied);
  EXPECT_EQ(*copied, 8192U);
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[8191], 2);
  into[1] = into[1].first(4000);
  EXPECT_FAILS(connected.load_under_lease(held, {0, 2}, into), errc::bad_request,
               "4096 bytes for object 1, got 4000");
  EXPECT_FAILS(connected.load_under_lease(held, {0, 1}, into), errc::bad_request,
               "one destination an object");
}

TEST(ReadLease, ALocationOutsideItsSegmentIsRefused) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto memory = numbered_pages(1);
    answer_locations(client, {{4096, 1, 3, 0}});
    answer_map(client, 3, memory, 4096, false);
  });
  auto connected = daemon.connect();
  EXPECT_FAILS(connected.read_lease(lease_of(1)), errc::internal, "inside segment 3");
}

TEST(ReadLease, ASegmentShorterThanItClaimsIsRefused) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto memory = numbered_pages(1);
    answer_locations(client, {{4096, 1, 3, 0}});
    answer_map(client, 3, memory, 8192, false);
  });
  auto connected = daemon.connect();
  EXPECT_FAILS(connected.read_lease(lease_of(1)), errc::internal, "got a file of 4096");
}

TEST(ReadLease, ASegmentWithoutADescriptorIsRefused) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    answer_locations(client, {{0, 1, 3, 0}});
    client.answer(client.expect(kind::map_segment),
                  [](body_builder& body) { return wire::CreateMapSegmentAnswer(body, 3, 4096, false); });
  });
  auto connected = daemon.connect();
  EXPECT_FAILS(connected.read_lease(lease_of(1)), errc::internal, "expected a descriptor");
}

TEST(Reservation, IsWrittenInStagingMemoryAndCommitted) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto memory = numbered_pages(2);
    answer_reserve(client, 11, {{4096, 4096, 3, 0}, {0, 0, 0, 0}});
    answer_map(client, 3, memory, 8192, true);
    auto commit = client.expect(kind::commit);
    EXPECT_EQ(commit.as<wire::Commit>().reservation(), 11U);
    uint8_t byte = 0;
    EXPECT_EQ(::pread(memory.get(), &byte, 1, 4096 + 5), 1);
    EXPECT_EQ(byte, 99);
    client.answer(commit, [](body_builder& body) { return wire::CreateCommitAnswer(body, 1, 1, 4096); });
    EXPECT_EQ(client.receive().kind, protocol::kind{}) << "a committed reservation is not aborted";
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(2);
  auto reserved = connected.reserve({.in = *space, .what = prefix::of_digests(digests)});
  ASSERT_FINE(reserved);
  ASSERT_EQ(reserved->objects().size(), 2U);
  EXPECT_TRUE(reserved->objects()[1].empty()) << "it is present already";
  reserved->objects()[0][5] = 99;
  auto committed = connected.commit(std::move(*reserved));
  ASSERT_FINE(committed);
  EXPECT_EQ(committed->stored_chunks, 1U);
  EXPECT_EQ(committed->present_chunks, 1U);
  EXPECT_FAILS(connected.commit(reservation{}), errc::bad_request, "an empty handle");
}

TEST(Reservation, IsAbortedAtItsDestruction) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto memory = numbered_pages(2);
    answer_reserve(client, 11, {{4096, 4096, 3, 0}});
    answer_map(client, 3, memory, 8192, true);
    EXPECT_EQ(client.expect(kind::abort).as<wire::Abort>().reservation(), 11U);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(1);
  ASSERT_FINE(connected.reserve({.in = *space, .what = prefix::of_digests(digests)}));
}

TEST(Reservation, ThatCannotBeMappedIsAborted) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    answer_reserve(client, 11, {{4096, 4096, 3, 0}});
    client.refuse(client.expect(kind::map_segment).id, errc::gone, "no such segment");
    EXPECT_EQ(client.expect(kind::abort).as<wire::Abort>().reservation(), 11U);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(1);
  EXPECT_FAILS(connected.reserve({.in = *space, .what = prefix::of_digests(digests)}), errc::gone,
               "no such segment");
}

TEST(Reservation, NeedsAWritableSegment) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto memory = numbered_pages(2);
    answer_reserve(client, 11, {{4096, 4096, 3, 0}});
    answer_map(client, 3, memory, 8192, false);
    client.expect(kind::abort);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(1);
  EXPECT_FAILS(connected.reserve({.in = *space, .what = prefix::of_digests(digests)}), errc::internal,
               "writable segment");
}
