#include "hungry_client.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace terrace::e2e {

namespace {

constexpr size_t half_pieces = 41; ///< pieces in half of the region: as many as the longest chain has chunks

client::space_spec hungry_space() {
  auto spec = test_space();
  spec.pools = {{.name = "kv", .object_bytes = hungry_client::piece_bytes}};
  return spec;
}

client::connection connected(const std::string& socket, size_t number) {
  auto made =
      client::connection::connect({.path = socket, .name = "hungry " + std::to_string(number)}, patiently());
  if (!made)
    throw std::runtime_error("connecting: " + made.error().text);
  return std::move(*made);
}

} // namespace

static_assert(std::accumulate(std::begin(hungry_client::chain_lengths),
                              std::end(hungry_client::chain_lengths),
                              size_t{0}) == hungry_client::chunks_in_all);

hungry_client::hungry_client(const std::string& socket, size_t number, hungry_course& course)
    : course_(course), random_(course.seed + number), daemon_(connected(socket, number)) {
  space_ = daemon_.open_space(hungry_space(), patiently()).value();
  memory_ = client::region::create("hungry", 2 * half_pieces * piece_bytes).value();
  region_ = daemon_.register_region(memory_, patiently()).value();
  for (size_t length : chain_lengths)
    chains_.push_back(chain_of(1000 * (number + 1) + length, length));
}

void hungry_client::work(const std::function<void()>& between) {
  while (!course_.over && !failed_) {
    size_t next = random_() % chains_.size();
    size_t other = (next + 1 + random_() % (chains_.size() - 1)) % chains_.size();
    turn(chains_[next], chains_[other]);
    if (between)
      between();
    bool enough = course_.chunks_wanted != 0 ? moved_ >= course_.chunks_wanted
                                             : std::chrono::steady_clock::now() >= course_.until;
    if (enough)
      course_.over = true;
  }
}

/// Acts mostly as an engine does: looks up, loads what is there, computes and stores the rest.
void hungry_client::turn(const chain& next, const chain& other) {
  uint64_t kind = random_() % 16;
  if (kind == 0 || (course_.prefetches && kind <= 3))
    return prefetch_and_load(next);
  if (kind <= 5)
    return all_at_once(next, other);
  client::lookup_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(next);
  request.lease = true;
  auto found = asked("lookup", [&] { return daemon_.lookup(request, patiently()); });
  if (!found)
    return;
  if (found->found_chunks != 0) {
    if (kind <= 8)
      map_under_lease(next, *found);
    else
      load_under_lease(next, *found);
  }
  uint32_t there = found->found_chunks;
  found->held.release();
  if (there != next.size())
    store_rest(next, there);
}

void hungry_client::took(const char* what, std::chrono::duration<double> time) {
  if (time <= longest_)
    return;
  longest_ = time;
  longest_of_ = what;
}

void hungry_client::failed(const char* what, const error& why) {
  failed_ = true;
  ADD_FAILURE() << what << ": " << to_string(why.code) << ": " << why.text;
}

void hungry_client::load_under_lease(const chain& of, const client::lookup_result& found) {
  client::load_request request;
  request.in = space_;
  request.lease = found.held.id();
  request.region = &region_;
  request.runs = runs(found.found_chunks, 0);
  auto loaded = asked("load under a lease", [&] { return daemon_.load(request, patiently()); });
  if (!loaded)
    return;
  EXPECT_EQ(loaded->delivered_chunks, found.found_chunks) << "of a lease";
  compare(of, loaded->delivered_chunks);
}

/// Reads in place, as much at a time as there is room for.
void hungry_client::map_under_lease(const chain& of, const client::lookup_result& found) {
  auto earlier = client::earlier_places::kept;
  for (uint32_t first = 0; first < found.found_chunks;) {
    client::chunk_range rest{first, found.found_chunks - first};
    auto located = asked(
        "read in place", [&] { return daemon_.read_lease(found.held.id(), rest, patiently(), {}, earlier); },
        errc::no_space);
    if (!located) { // leases leave no room, which a load does not need
      if (!failed_)
        load_under_lease(of, found);
      return;
    }
    EXPECT_FALSE(located->objects.empty());
    for (size_t i = 0; i < located->objects.size(); ++i)
      EXPECT_TRUE(has_content(of[first + i], located->objects[i])) << "in place: wrong bytes";
    if (located->objects.empty())
      return;
    first += static_cast<uint32_t>(located->objects.size());
    add(located->objects.size(), true);
    earlier = client::earlier_places::given_up;
  }
}

void hungry_client::store_rest(const chain& of, uint32_t first) {
  auto count = static_cast<uint32_t>(of.size()) - first;
  for (uint32_t i = 0; i < count; ++i)
    fill_content(of[first + i], piece(i));
  client::store_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(of);
  request.range = {first, count};
  request.region = &region_;
  request.runs = runs(count, 0);
  auto stored = asked("store", [&] { return daemon_.store(request, patiently()); });
  if (!stored)
    return;
  EXPECT_EQ(stored->stored_chunks + stored->present_chunks, count) << "a store was dropped";
  add(stored->stored_chunks, false);
}

void hungry_client::prefetch_and_load(const chain& of) {
  client::prefetch_request ahead;
  ahead.in = space_;
  ahead.what = client::prefix::of_digests(of);
  ahead.rule = random_() % 2 == 0 ? client::stop_rule::best_effort : client::stop_rule::wait;
  auto ticket = asked("prefetch", [&] { return daemon_.async().prefetch(ahead, patiently()); });
  if (!ticket)
    return;
  if (random_() % 2 == 0) {
    ++cancelled_;
    asked("cancel", [&] { return ticket->cancel(patiently()); });
  }
  auto done = asked(
      "prefetch", [&] { return ticket->wait(patiently()); }, errc::cancelled);
  if (done)
    prefetched_ += done->delivered_chunks;
  client::load_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(of);
  request.region = &region_;
  request.runs = runs(of.size(), 0);
  auto loaded = asked("load", [&] { return daemon_.load(request, patiently()); });
  if (loaded)
    compare(of, loaded->delivered_chunks);
}

/// Keeps requests of all kinds in flight together: a store of one chain, a load of the other, and a prefetch
/// and a lease of both.
void hungry_client::all_at_once(const chain& stored, const chain& loaded) {
  for (size_t i = 0; i < stored.size(); ++i)
    fill_content(stored[i], piece(i));
  client::store_request store;
  store.in = space_;
  store.what = client::prefix::of_digests(stored);
  store.region = &region_;
  store.runs = runs(stored.size(), 0);
  client::load_request load;
  load.in = space_;
  load.what = client::prefix::of_digests(loaded);
  load.region = &region_;
  load.runs = runs(loaded.size(), half_pieces);
  client::prefetch_request ahead;
  ahead.in = space_;
  ahead.what = client::prefix::of_digests(stored);
  client::lookup_request lookup;
  lookup.in = space_;
  lookup.what = client::prefix::of_digests(loaded);
  lookup.lease = true;
  auto storing = asked("store", [&] { return daemon_.async().store(store, patiently()); });
  auto loading = asked("load", [&] { return daemon_.async().load(load, patiently()); });
  auto coming = asked("prefetch", [&] { return daemon_.async().prefetch(ahead, patiently()); });
  auto finding = asked("lookup", [&] { return daemon_.async().lookup(lookup, patiently()); });
  if (failed_)
    return;
  asked("lookup beside others", [&] { return finding->wait(patiently()); }); // its lease ends at once
  ++cancelled_;
  asked("cancel", [&] { return coming->cancel(patiently()); });
  auto there = asked("load beside others", [&] { return loading->wait(patiently()); });
  if (there)
    compare(loaded, there->delivered_chunks, half_pieces);
  auto written = asked("store beside others", [&] { return storing->wait(patiently()); });
  if (written) {
    EXPECT_EQ(written->stored_chunks + written->present_chunks, stored.size()) << "a store was dropped";
    add(written->stored_chunks, false);
  }
  auto brought = asked(
      "prefetch", [&] { return coming->wait(patiently()); }, errc::cancelled);
  if (brought)
    prefetched_ += brought->delivered_chunks;
}

void hungry_client::compare(const chain& of, uint32_t count, size_t first_piece) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!has_content(of[i], piece(first_piece + i))) {
      failed_ = true;
      ADD_FAILURE() << "chunk " << i << " of " << of.size() << " has wrong bytes";
    }
    std::memset(piece(first_piece + i).data(), 0, 64); // so that the next load must write it
  }
  add(count, true);
}

void hungry_client::add(uint64_t chunks, bool by_a_load) {
  moved_ += chunks;
  if (by_a_load)
    loaded_ += chunks;
}

std::span<const client::run> hungry_client::runs(size_t count, size_t first_piece) {
  auto& kept = runs_[first_piece == 0 ? 0 : 1];
  kept.clear();
  for (size_t i = 0; i < count; ++i)
    kept.push_back({.offset = (first_piece + i) * piece_bytes, .bytes = piece_bytes});
  return kept;
}

} // namespace terrace::e2e
