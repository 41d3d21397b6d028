// What a daemon says of itself when all clients have gone.
#include "daemon_run.hpp"

#include "daemon_heap.hpp"

#include "index/object_header.hpp"
#include "tests/support/raw_client.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>

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
  test::received ask(kind verb, Build&& build, int descriptor = -1) {
    send(verb, std::forward<Build>(build), descriptor);
    return answer_to(last_);
  }

  /// For `answer_to`, later. Returns its number.
  template <class Build>
  uint64_t send(kind verb, Build&& build, int descriptor = -1) {
    client_.send(verb, ++last_, std::forward<Build>(build), descriptor);
    simulated_sockets::touch();
    return last_;
  }
  /// True if it is answered. The answer is kept for `answer_to`.
  bool has_answer(uint64_t request) {
    while (auto answer = client_.next())
      early_.emplace(answer->id, *answer);
    return early_.contains(request);
  }
  test::received answer_to(uint64_t request) {
    for (;;) {
      if (auto early = early_.extract(request))
        return early.mapped();
      if (auto answer = client_.next())
        early_.emplace(answer->id, *answer);
      else if (!advance_())
        return {kind::error, request, {}};
    }
  }

 private:
  test::raw_client client_;
  step advance_;
  uint64_t last_ = 0;
  std::map<uint64_t, test::received> early_; ///< answers that nobody has asked about yet
};

} // namespace

/// A space of the group, opened by an operator.
class daemon_run::end_check {
 public:
  end_check(daemon_run& run, operator_client& by, uint32_t group, uint32_t space)
      : run_(run), world_(run.world_), by_(by), group_(group), space_(space) {
    auto opened = by.ask(kind::open_space, [&](auto& b) { return world_.open_space(b, group, space); });
    if (opened.is_error())
      throw std::runtime_error("an operator cannot open a space: " + opened.text());
    number_ = opened.as<wire::OpenSpaceAnswer>().space();
  }

  /// Nobody holds anything, so nothing that has moved down stays above.
  void move_down() {
    for (uint32_t root = 0; root < world_.prompts; ++root) {
      auto some_stay = [&] {
        auto moved = move_down({space_, root, world_.chunks});
        return !moved.is_error() && moved.as<wire::MoveAnswer>().held()->chunks() != 0;
      };
      if (!some_stay())
        continue;
      // What came from a GPU is written to the remote store from memory, and held for so long.
      pass(std::chrono::milliseconds(500));
      if (some_stay())
        broke("chunks that have moved to the disk stay in memory, and nobody holds them");
    }
  }

  /// Tails to which no session and no prompt refers any more have left all tiers.
  void find_no_tails() {
    for (uint32_t root = 0; root < world_.prompts; ++root)
      for (uint32_t chunks = 1; chunks <= world_.chunks; ++chunks) {
        client_world::prompt of{space_, root, chunks, true};
        auto tail = world_.objects_of(group_, of, chunks).front();
        if (world_.saved_tails.contains(tail))
          continue;
        if (saves_tail_of(of))
          broke("nobody refers to a tail any more, and it is there: " + tail.text());
      }
  }

  /// Everything can be evicted, so memory takes a prompt after the other.
  void fill_memory(uint64_t capacity) {
    uint64_t region = make_region();
    for (uint32_t root = 0; root < chunks_of(capacity) + 2 && run_.broken().empty(); ++root)
      if (auto stored = by_.answer_to(store(region, root));
          stored.is_error() && !is_over_quota(stored.text()))
        broke("a store is refused although everything can be evicted: " + stored.text());
  }

  /// Two values of Redis clients, which are still being sent, have all memory. A store that waits for it is served once one of
  /// these clients has gone, although nobody else comes who would wake it.
  void wait_for_reserved(uint64_t capacity, const redis_door& door) {
    constexpr uint32_t store_waits = 20'000; // milliseconds
    uint64_t half = capacity / 2 / page_bytes * page_bytes;
    unique_fd first = begin_value(door, 1, half), second = begin_value(door, 2, capacity - half);
    auto full_after = std::chrono::milliseconds(500);
    pass(full_after);
    uint64_t waiting = store(make_region(), 9000, store_waits);
    pass(full_after);
    auto freed = world_.events.now();
    second.reset();
    simulated_sockets::touch();
    auto stored = by_.answer_to(waiting);
    auto waited = world_.events.now() - freed;
    if ((stored.is_error() && !is_over_quota(stored.text())) || waited > world_.answers_within)
      broke("a store that waits for memory does not get what a client that has gone gives back: " +
            (stored.is_error() ? stored.text() : std::string("it takes too long")));
  }

  /// What is removed while it comes up from the disk, and goes down again, is away afterwards. `other` loads and moves it.
  void remove_while_loading(end_check& other) {
    constexpr uint32_t root = 4000;
    constexpr uint64_t events_most = 60;
    auto let_some_happen = [this] {
      for (uint64_t left = run_.random_.below(events_most); left > 0 && run_.advance(); --left) {
      }
    };
    client_world::prompt of = stored_as(root);
    uint64_t region = other.make_region();
    if (by_.answer_to(store(make_region(), root)).is_error() || move_down(of).is_error())
      return;
    if (run_.random_.coin())
      (void) other.load(region, of);
    let_some_happen();
    // An eviction takes less time, so less often something comes in between.
    bool clears = run_.random_.below(4) == 0;
    uint64_t removal = clears ? by_.send(kind::clear, [&](auto& b) { return wire::CreateClear(b, number_); })
                              : by_.send(kind::evict, [&](auto& b) {
                                  auto prefix = world_.write_prefix(b, of);
                                  return wire::CreateEvict(b, number_, prefix);
                                });
    // One follows the other until it is answered, so that some are on their way wherever it comes by.
    uint64_t load = other.load(region, of), move = other.begin_to_move_down(of);
    while (!by_.has_answer(removal) && run_.advance()) {
      if (other.by_.has_answer(load) && run_.random_.coin())
        load = other.load(region, of);
      if (other.by_.has_answer(move) && run_.random_.coin())
        move = other.begin_to_move_down(of);
    }
    auto removed = by_.answer_to(removal);
    (void) other.by_.answer_to(load);
    (void) other.by_.answer_to(move);
    pass(std::chrono::milliseconds(500)); // it is written down
    if (!removed.is_error() && find(of) != 0)
      broke(std::string("what was ") + (clears ? "cleared" : "evicted") + " while it was loaded is found");
  }

  /// What another machine clears in the remote store is away here as well.
  void clear_elsewhere() {
    constexpr uint32_t root = 6000;
    if (by_.answer_to(store(make_region(), root)).is_error())
      return;
    client_world::prompt of = stored_as(root);
    of.chunks = 2; // the store is asked for the second one
    (void) find(of);
    auto read_again = std::chrono::seconds(6); // if the store does not tell of changes
    pass(read_again);
    if (!run_.clear_as_other_machine())
      return;
    pass(read_again);
    (void) find(of);
    pass(read_again);
    if (find(of) != 0)
      broke("what another machine has cleared is found");
  }

  /// Stores a prompt and moves it down; nullopt: it cannot.
  std::optional<client_world::prompt> leave_on_disk() {
    constexpr uint32_t root = 8000;
    client_world::prompt of = stored_as(root);
    if (by_.answer_to(store(make_region(), root)).is_error() || move_down(of).is_error())
      return std::nullopt;
    pass(std::chrono::seconds(6)); // it is written down, and so is the token of its space
    return of;
  }

 private:
  /// Time passes, even if nothing else is to happen.
  void pass(std::chrono::nanoseconds time) {
    auto until = world_.events.now() + time;
    world_.events.after(time, [] {});
    run_.advance_until([&] { return world_.events.now() >= until; }, time);
  }

  /// A Redis client that sends the beginning of a value, which has so many bytes of memory.
  unique_fd begin_value(const redis_door& door, uint32_t number, uint64_t physical) {
    std::string name = "terrace-last-" + std::to_string(group_) + "-" + std::to_string(number);
    unique_fd socket = world_.connect({.name = name + "-" + std::to_string(::getpid()),
                                       .uid = simulated_calls::user,
                                       .ends = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC))},
                                      door.path);
    auto command = [](const std::vector<std::string>& words) {
      std::string made = "*" + std::to_string(words.size()) + "\r\n";
      for (const std::string& word : words)
        made += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
      return made;
    };
    std::string text = door.password.empty() ? "" : command({"AUTH", door.password});
    text += command({"SET", name, std::string(physical - physical_bytes_for(0), 'v')});
    text.resize(text.size() - physical / 2);
    (void) !::send(socket.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    simulated_sockets::touch();
    return socket;
  }

  /// The prompt that `store` stores.
  client_world::prompt stored_as(uint32_t root) const { return {space_, 1000 + root, 1}; }

  uint64_t begin_to_move_down(const client_world::prompt& of) {
    return by_.send(kind::move, [&](auto& b) {
      auto prefix = world_.write_prefix(b, of);
      return wire::CreateMove(b, number_, prefix, 2);
    });
  }
  test::received move_down(const client_world::prompt& of) { return by_.answer_to(begin_to_move_down(of)); }

  /// A session can be saved with this tail, which nobody has stored for it. That is so while others have it.
  bool saves_tail_of(const client_world::prompt& of) {
    auto opened = by_.ask(kind::open_session, [&](auto& b) { return wire::CreateOpenSession(b, number_); });
    if (opened.is_error())
      return false;
    const auto* given = opened.template as<wire::OpenSessionAnswer>().session();
    std::vector<uint8_t> session(given->begin(), given->end());
    auto saved = by_.ask(kind::save_session, [&](auto& b) {
      auto sent = b.CreateVector(world_.tokens_of(of, 0));
      auto id = b.CreateVector(session);
      auto prefix =
          wire::CreatePrefix(b, sent, 0, 0, 0, 32, wire::DigestUnit::chunk, 0, 0, 0, 0, 0, id, true);
      return wire::CreateSaveSession(b, number_, prefix);
    });
    (void) by_.ask(kind::close_session,
                   [&](auto& b) { return wire::CreateCloseSession(b, b.CreateVector(session)); });
    return !saved.is_error();
  }

  /// Chunks that are found.
  uint32_t find(const client_world::prompt& of) {
    auto found = by_.ask(kind::lookup, [&](auto& b) {
      auto prefix = world_.write_prefix(b, of);
      return wire::CreateLookup(b, number_, prefix);
    });
    return found.is_error() ? 0 : found.template as<wire::LookupAnswer>().found_chunks();
  }

  /// The chunk alone is more than its tenant may have.
  static bool is_over_quota(const std::string& why) { return why.find(" at once") != std::string::npos; }

  /// As many as memory has room for, at most.
  uint64_t chunks_of(uint64_t capacity) const {
    uint64_t physical = 0;
    for (uint32_t pool : world_.pools)
      physical += physical_bytes_for(pool);
    return capacity / physical;
  }

  /// With the bytes of a chunk.
  uint64_t make_region() {
    uint64_t bytes = std::accumulate(world_.pools.begin(), world_.pools.end(), uint64_t{0});
    unique_fd memory(::memfd_create("region", MFD_CLOEXEC));
    (void) !::ftruncate(memory.get(), static_cast<off_t>(bytes));
    auto made = by_.ask(
        kind::register_region,
        [&](auto& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, bytes); }, memory.get());
    return made.as<wire::RegisterRegionAnswer>().region();
  }

  uint64_t store(uint64_t region, uint32_t root, uint32_t deadline = 0) {
    client_world::prompt of = stored_as(root);
    return by_.send(kind::store, [&](auto& b) {
      auto prefix = world_.write_prefix(b, of);
      auto places = b.CreateVectorOfStructs(runs_of_chunk());
      return wire::CreateStore(b, number_, prefix, 0, 1, static_cast<uint32_t>(region), places, 0, deadline);
    });
  }

  /// Of a prompt with one chunk.
  uint64_t load(uint64_t region, const client_world::prompt& of) {
    return by_.send(kind::load, [&](auto& b) {
      auto prefix = world_.write_prefix(b, of);
      auto places = b.CreateVectorOfStructs(runs_of_chunk());
      return wire::CreateLoad(b, number_, prefix, 0, 0, 0, static_cast<uint32_t>(region), places);
    });
  }

  /// One object of each pool.
  std::vector<wire::Run> runs_of_chunk() const {
    std::vector<wire::Run> runs;
    uint64_t at = 0;
    for (uint32_t pool : world_.pools) {
      runs.emplace_back(at, pool, 0, 1);
      at += pool;
    }
    return runs;
  }

  void broke(const std::string& what) {
    run_.model_.broke("after the last client of group " + std::to_string(group_) + ": " + what);
  }

  daemon_run& run_;
  const client_world& world_;
  operator_client& by_;
  uint32_t group_, space_, number_ = 0;
};

/// Nothing is recovered twice, and no space of it is free.
void daemon_run::check_recovered(uint32_t group) {
  operator_client by(world_.sockets[group], [&] {
    simulated_sockets::touch();
    return daemon_->step();
  });
  auto check = by.ask(kind::check, [](auto& b) { return wire::CreateCheck(b); });
  if (check.is_error()) // a client checks, too
    return;
  const auto& counted = check.as<wire::CheckAnswer>();
  if (counted.count() != 0)
    model_.broke("after a crash: " + counted.differences()->Get(0)->str());
}

/// Another machine clears while the daemon is away: when it is back, its disk has nothing of what it had.
void daemon_run::check_away() {
  say("another machine clears while the daemon is away");
  forget_daemon();
  for (auto& store : stores_)
    store->lose_daemon();
  forget_gpus();
  daemon_.reset();
  if (!clear_as_other_machine())
    return;
  for (auto& store : stores_)
    store->serve_daemon();
  disk_->end_process();
  boot();
  disk_->set_faults({});
  advance_until([] { return false; }, std::chrono::seconds(10)); // it reads the tokens again
  operator_client by(world_.sockets[*world_.remote_group], [&] {
    simulated_sockets::touch();
    return daemon_->step();
  });
  auto opened =
      by.ask(kind::open_space, [&](auto& b) { return world_.open_space(b, *world_.remote_group, 0); });
  auto found = by.ask(kind::lookup, [&](auto& b) {
    auto prefix = world_.write_prefix(b, *left_on_disk_);
    return wire::CreateLookup(b, opened.template as<wire::OpenSpaceAnswer>().space(), prefix);
  });
  if (!found.is_error() && found.template as<wire::LookupAnswer>().found_chunks() != 0)
    model_.broke("what another machine has cleared while the daemon was away is found");
  daemon_->drain();
  if (!advance_until([&] { return daemon_->ended(); }, std::chrono::minutes(10)))
    model_.broke("the daemon does not end");
}

/// What was stored before is found.
void daemon_run::check_restarted(uint32_t group) {
  operator_client by(world_.sockets[group], [&] {
    simulated_sockets::touch();
    return daemon_->step();
  });
  for (uint32_t space = 0; space < world_.spaces; ++space) {
    auto opened = by.ask(kind::open_space, [&](auto& b) { return world_.open_space(b, group, space); });
    if (opened.is_error())
      return model_.broke("an operator cannot open a space: " + opened.text());
    for (uint32_t root = 0; root < world_.prompts; ++root) {
      client_world::prompt of{space, root, world_.chunks};
      auto expected = model_.expects(world_.objects_of(group, of));
      if (expected.because.empty())
        continue;
      auto found = by.ask(kind::lookup, [&](auto& b) {
        auto prefix = world_.write_prefix(b, of);
        return wire::CreateLookup(b, opened.template as<wire::OpenSpaceAnswer>().space(), prefix);
      });
      if (found.is_error())
        return model_.broke("an operator cannot look up: " + found.text());
      model_.found(found.template as<wire::LookupAnswer>().found_chunks() * world_.pools.size(), expected);
    }
  }
}

/// Whatever clients did: what the daemon has on the heap is small, and nearly all of it is gone when they have left.
void daemon_run::check_heap() {
  if (!daemon_heap::is_counted() || !broken().empty())
    return;
  constexpr uint64_t own = 3 * mebibyte / 2, of_group = own, of_remote_tier = 17 * mebibyte;
  constexpr uint64_t of_requests = mebibyte; // of a group
  constexpr uint64_t of_gpu = mebibyte;      // and its process
  uint64_t groups = world_.sockets.size();
  uint64_t most =
      own + of_group * groups + of_remote_tier * life_.with.remote.size() + (world_.gpu ? of_gpu : 0);
  auto check = [&](const char* when, uint64_t bytes, uint64_t bound) {
    if (bytes > bound)
      model_.broke(std::string("the daemon has ") + std::to_string(bytes) + " bytes on the heap " + when +
                   ": expected at most " + std::to_string(bound) + "; when it had started it had " +
                   std::to_string(heap_at_start_));
  };
  check("while it serves", daemon_heap::peak(), most + of_requests * groups);
  check("when all clients have left", daemon_heap::bytes(), most);
}

/// Removals race with loads, each time with connections of their own, which are slow or fast.
void daemon_run::check_removals(uint32_t group, uint32_t space) {
  constexpr int rounds = 64;
  for (int round = 0; round < rounds && broken().empty(); ++round) {
    auto step = [this] { return advance(); };
    operator_client one(world_.sockets[group], step), other(world_.sockets[group], step);
    end_check removes(*this, one, group, space), loads(*this, other, group, space);
    removes.remove_while_loading(loads);
  }
}

/// No client has memory of a device any more, so a process has the arenas of tiers alone.
void daemon_run::check_gpu(const wire::StatusAnswer& told) {
  if (!world_.gpu)
    return;
  for (const auto* tier : *told.groups()->Get(0)->tiers())
    if (tier->tier()->str() == "gpu")
      gpu_bytes_ += tier->bytes_read();
  for (const auto* device : *told.devices()) {
    uint64_t each = life_.with.gpu.tier_bytes, groups = world_.sockets.size();
    bool arenas_alone = device->region_bytes() % each == 0 &&
                        device->region_bytes() / each == device->regions() &&
                        device->regions() <= (device->pid() == 0 ? 0 : groups);
    if (!arenas_alone)
      model_.broke("after the last client: a device has " + std::to_string(device->regions()) +
                   " regions of " + std::to_string(device->region_bytes()) + " bytes, and tiers have " +
                   std::to_string(each) + " each");
  }
}

void daemon_run::check_empty(uint32_t group) {
  constexpr uint64_t small_memory = 2 * mebibyte; // which is filled in no time
  say("an operator looks at group " + std::to_string(group));
  auto until = events_.now() + std::chrono::hours(1);
  operator_client by(world_.sockets[group], [&] {
    simulated_sockets::touch();
    look_at_sockets();
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
  for (int again = 0; again < 5 && !check.is_error() && !check.as<wire::CheckAnswer>().idle(); ++again) {
    advance_until([] { return false; }, std::chrono::seconds(1));
    check = by.ask(kind::check, [](auto& b) { return wire::CreateCheck(b); });
  }
  if (check.is_error())
    return broke("no check is possible: " + check.text());
  const auto& counted = check.as<wire::CheckAnswer>();
  if (counted.count() != 0)
    broke(counted.differences()->Get(0)->str());
  else if (!counted.idle())
    broke("some request is still in progress");
  auto is_of_prompts = [](const std::string& kind) { return kind.find("prompts") != std::string::npos; };
  for (const auto* each : *counted.references())
    if (each->count() != 0 && !is_of_prompts(each->kind()->str())) // which are kept like objects
      broke(std::to_string(each->count()) + " references of " + each->kind()->str() + " are left");
  auto status = by.ask(kind::status, [](auto& b) { return wire::CreateStatus(b); });
  const auto& told = status.as<wire::StatusAnswer>();
  if (told.clients()->size() != 1)
    broke(std::to_string(told.clients()->size()) + " clients are left");
  const auto& of = *told.groups()->Get(0);
  if (of.leases() != 0 || of.sessions() != 0 || of.region_bytes() != 0)
    broke("leases, sessions or regions are left");
  check_gpu(told);
  for (const auto* tier : *of.tiers())
    if (tier->tier()->str() == "remote" && tier->state()->str() != "ready")
      broke("the remote store is there again, and is not used: " +
            (tier->reason() ? tier->reason()->str() : tier->state()->str()));
  for (const auto* tier : *of.tiers())
    if (tier->leased_objects() != 0 || tier->waiting_requests() != 0 ||
        tier->used_bytes() + tier->free_bytes() != tier->capacity_bytes())
      broke("objects of " + tier->tier()->str() + " are leased, or its bytes do not add up");
  for (uint32_t space = 0; space < world_.spaces && broken().empty(); ++space) {
    end_check of_space(*this, by, group, space);
    uint64_t capacity = of.tiers()->Get(0)->capacity_bytes();
    // A restart forgets who has referred to what the disk has.
    if (hot_ == hot_spot::tails && world_.healthy && crashes_ + restarts_ == 0 &&
        world_.remote_group != group)
      of_space.find_no_tails();
    bool small = capacity <= small_memory && world_.healthy;
    if (life_.with.disk.enabled())
      of_space.move_down();
    if (small)
      of_space.fill_memory(capacity);
    const auto& doors = redis_.world().doors;
    auto door =
        std::find_if(doors.begin(), doors.end(), [&](const auto& each) { return each.first == group; });
    // With a tier below, a store also waits for what those values are to write there.
    bool only_host = !life_.with.disk.enabled() && world_.remote_group != group;
    if (small && only_host && world_.quotas.empty() && door != doors.end())
      of_space.wait_for_reserved(capacity, door->second);
    if (world_.remote_group == group && world_.healthy && broken().empty())
      of_space.clear_elsewhere();
    if (hot_ == hot_spot::clears && world_.healthy)
      check_removals(group, space);
  }
  if (!broken().empty())
    return;
  advance_until([] { return false; }, std::chrono::minutes(1)); // what was stored is written down
  auto cleared = by.ask(kind::clear, [](auto& b) { return wire::CreateClear(b, 0); });
  if (cleared.is_error())
    return;
  advance_until([] { return false; },
                std::chrono::seconds(1)); // tails that nobody refers to any more are looked for
  auto after = by.ask(kind::status, [](auto& b) { return wire::CreateStatus(b); });
  for (const auto* tier : *after.as<wire::StatusAnswer>().groups()->Get(0)->tiers())
    if (tier->state()->str() == "ready" && (tier->objects() != 0 || tier->used_bytes() != 0))
      broke(std::to_string(tier->used_bytes()) + " bytes of " + tier->tier()->str() +
            " are used after a clear");
  if (broken().empty() && world_.remote_group == group && world_.healthy && life_.with.disk.enabled())
    left_on_disk_ = end_check(*this, by, group, 0).leave_on_disk();
}

} // namespace terrace::simulation
