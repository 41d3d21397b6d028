// What a remote store has to do for 10, 100 and 1,000 daemons, and where it stops. Simulated: every daemon has a real presence book and,
// in a cluster, the real slot map; keys and commands are those that daemons send. Only the servers are played.
//
// Each daemon looks up a document of 64 chunks twice a second. Documents are as popular as their rank says, and grow: a lookup asks for
// a part of one. What its own host memory has costs the store nothing. Behind that it asks the store, reads what is there, and
// writes the rest. Half way, one server is lost: the daemons forget what they knew, connect to whoever has its keys now, and ask again.
//
// Replicas send payloads as well: each is read where the daemon has the fewest bytes under way (actors/remote/remote_moves.cpp). What is
// written goes to all of them.
//
// A bucket is asked in slices, a request for each object that is not known, and loses nothing half way.
#include "bench/benchmark.hpp"

#include "remote/presence_book.hpp"
#include "remote/realm.hpp"
#include "remote/slot_map.hpp"
#include "remote/valkey_connection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace terrace::bench {

namespace {

using remote::belief;
using scale_clock = std::chrono::steady_clock;

enum class store_kind { single, sentinel, cluster, bucket };
struct store_shape {
  store_kind kind;
  const char* name;
  size_t servers;      ///< that have keys
  size_t replicas = 0; ///< of each, which payloads are read from as well
};
constexpr std::array<store_shape, 7> shapes{{{store_kind::single, "single", 1},
                                             {store_kind::sentinel, "sentinel", 1},
                                             {store_kind::cluster, "cluster_3", 3},
                                             {store_kind::cluster, "cluster_3_replicas_1", 3, 1},
                                             {store_kind::cluster, "cluster_32", 32},
                                             {store_kind::cluster, "cluster_32_replicas_1", 32, 1},
                                             {store_kind::bucket, "bucket", 1}}};
constexpr std::array<size_t, 3> crowds{10, 100, 1'000};

constexpr double simulated_s = 20, lookups_per_s = 2;
constexpr std::chrono::milliseconds tick{50};
constexpr size_t document_chunks = 64, documents = 50'000, host_documents = 64;
constexpr uint64_t object_bytes = 1 << 20;
constexpr uint64_t store_objects = 1 << 20; ///< of the whole store, which evicts the oldest
constexpr uint64_t book_keys = 1 << 14;     ///< so that 1,000 books fit a machine; a daemon's has a million
constexpr size_t connections_of_daemon = 3;

/// As daemons ask a bucket (actors/remote/remote_presence.cpp, remote/epoch_token.hpp).
constexpr size_t connections_of_bucket = 32; ///< for each purpose
constexpr size_t tokens_of_space = 2;        ///< its own and that of the realm
constexpr std::chrono::seconds token_holds{5};
constexpr size_t transfers_of_bucket = 3 * connections_of_bucket; ///< for questions, reads and writes

/// What one server can do: the first two as redis-server 7.0 has done here on one core (docs/scale.md), the last its default.
struct server_limits {
  double messages_per_s =
      800'000; ///< keys that it is asked for and notes for CLIENT TRACKING; a push costs no more
  double bytes_per_s = 1.6e9;
  double connections = 10'000; ///< maxclients
};

struct server_load {
  uint64_t commands = 0, pushes = 0, reads = 0, writes = 0, connections_made = 0;
  uint64_t bytes_in = 0, bytes_out = 0;
  uint64_t tracked_now = 0, tracked_most = 0; ///< pairs of a key and a daemon
  uint64_t lookups = 0, questions = 0, tokens = 0;
  uint64_t rounds = 0, rounds_most = 0; ///< questions of a lookup that wait for each other
  uint64_t messages() const { return commands + pushes; }
};

uint64_t scale_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Bytes of commands and replies, as the client of the daemon makes them.
struct message_bytes {
  uint64_t exists = 0, exists_reply = 4, read = 0, read_reply = 0, write = 0, write_reply = 5, push = 0,
           slots_reply = 0;
};

uint64_t taken(remote::valkey_connection& server) {
  uint64_t bytes = 0;
  while (!server.outgoing().empty()) {
    auto part = server.outgoing().begin();
    bytes += part.bytes;
    server.outgoing().sent(part.bytes);
  }
  return bytes;
}

message_bytes measure_messages(const std::string& key, size_t servers) {
  remote::valkey_connection server({});
  const std::string_view greeting = "%1\r\n+proto\r\n:3\r\n";
  std::memcpy(server.receive_area().data(), greeting.data(), greeting.size());
  if (!server.received(greeting.size()) || !server.ready())
    give_up("remote_scale: the connection is not ready");
  taken(server);
  message_bytes made;
  server.exists(1, key);
  made.exists = taken(server);
  server.read(2, key, {}, {});
  made.read = taken(server);
  const std::vector<std::byte> value(object_bytes + 256);
  server.write(3, key, std::span(value).first(256), std::span(value).subspan(256), nullptr,
               std::chrono::hours(24));
  made.write = taken(server);
  made.read_reply = value.size() + 12;
  made.push = std::string(">2\r\n$10\r\ninvalidate\r\n*1\r\n$100\r\n\r\n").size() + key.size();
  constexpr uint64_t range_of_one_replica = 180;
  made.slots_reply = servers * range_of_one_replica;
  return made;
}

class simulated_stores {
 public:
  simulated_stores(const store_shape& shape, size_t daemons)
      : shape_(shape), daemons_(daemons), load_(shape.servers * (1 + shape.replicas)), random_(7) {
    std::vector<remote::slot_range> ranges;
    for (size_t i = 0; i < shape.servers; ++i)
      ranges.push_back({static_cast<uint32_t>(i * remote::cluster_slots / shape.servers),
                        static_cast<uint32_t>((i + 1) * remote::cluster_slots / shape.servers - 1),
                        "10.0.0." + std::to_string(i) + ":6379"});
    map_ = remote::slot_map(ranges);
    bytes_ = measure_messages(key_of(0), shape.servers);
    books_.resize(daemons);
    for (auto& book : books_)
      book = std::make_unique<remote::presence_book>(remote::presence_options{.keys_max = book_keys});
    hosts_.resize(daemons);
    tokens_read_.resize(daemons);
    double sum = 0;
    for (size_t i = 0; i < documents; ++i)
      popularity_.push_back(sum += 1 / std::pow(static_cast<double>(i + 1), 0.9));
  }

  void run() {
    for (size_t i = 0; i < load_.size(); ++i)
      load_[i].connections_made = daemons_ * (i < shape_.servers ? connections_of_daemon : 1);
    const auto ticks = static_cast<uint64_t>(simulated_s * 1'000 / static_cast<double>(tick.count()));
    const double lookups =
        static_cast<double>(daemons_) * lookups_per_s * static_cast<double>(tick.count()) / 1'000;
    double owed = 0;
    for (uint64_t i = 0; i < ticks; ++i) {
      now_ += tick;
      if (i == ticks / 2 && shape_.kind != store_kind::bucket)
        lose_a_server();
      const uint64_t before = messages_of_busiest();
      for (owed += lookups; owed >= 1; --owed)
        look_up(random_() % daemons_);
      const uint64_t in_tick = messages_of_busiest() - before;
      if (i > ticks / 4 && i < ticks / 2)
        steady_most_ = std::max(steady_most_, in_tick);
      if (i >= ticks / 2)
        after_loss_most_ = std::max(after_loss_most_, in_tick);
    }
  }

  const server_load& busiest() const {
    return *std::max_element(load_.begin(), load_.end(),
                             [](const auto& a, const auto& b) { return a.messages() < b.messages(); });
  }
  uint64_t most_bytes() const {
    uint64_t most = 0;
    for (const server_load& server : load_)
      most = std::max({most, server.bytes_in, server.bytes_out});
    return most;
  }
  static double per_s(uint64_t count) { return static_cast<double>(count) / simulated_s; }
  static double per_s_of_tick(uint64_t count) {
    return static_cast<double>(count) * 1'000 / static_cast<double>(tick.count());
  }
  double steady_most() const { return per_s_of_tick(steady_most_); }
  double after_loss_most() const { return per_s_of_tick(after_loss_most_); }

 private:
  struct stored_key {
    bool there = false;
    std::vector<uint32_t> tracked_by;
  };

  static std::string key_of(uint64_t chunk) {
    static const auto names = remote::realm::make("terrace/", std::vector<uint8_t>(32, 1)).value();
    remote::remote_identity object{.epoch = 0x1234567812345678};
    for (size_t i = 0; i < 4; ++i) {
      const uint64_t part = scale_mix(chunk * 4 + i);
      std::memcpy(object.chunk.bytes.data() + 8 * i, &part, sizeof part);
    }
    return names.key_of(object);
  }
  size_t server_of(const std::string& key) const {
    return shape_.kind == store_kind::cluster ? *map_.owner(remote::slot_of(key)) : 0;
  }
  uint64_t messages_of_busiest() const { return busiest().messages(); }

  size_t pick_document() {
    const double at = std::uniform_real_distribution<>(0, popularity_.back())(random_);
    return static_cast<size_t>(std::lower_bound(popularity_.begin(), popularity_.end(), at) -
                               popularity_.begin());
  }

  void look_up(size_t daemon) {
    const size_t document = pick_document();
    auto& host = hosts_[daemon];
    if (std::find(host.begin(), host.end(), document) != host.end())
      return; // answered by its own memory
    host.push_back(document);
    if (host.size() > host_documents)
      host.pop_front();
    remote::presence_book& book = *books_[daemon];
    const size_t chunks = document_chunks / 2 + random_() % (document_chunks / 2);
    std::vector<std::string> keys;
    for (size_t i = 0; i < chunks; ++i)
      keys.push_back(key_of(document * document_chunks + i));
    auto beliefs = book.of(keys, now_);
    if (shape_.kind == store_kind::bucket)
      probe_prefix(keys, beliefs, daemon);
    bool prefix = true;
    std::vector<size_t> under_way(load_.size());
    for (size_t i = 0; i < chunks; ++i) {
      const size_t primary = server_of(keys[i]);
      server_load& server = load_[primary];
      if (beliefs[i] == belief::unknown)
        beliefs[i] = ask(server, keys[i], daemon);
      prefix &= beliefs[i] == belief::present;
      if (prefix)
        read(load_[least_busy(primary, under_way)]);
      else if (write(server, keys[i], keys_[keys[i]], daemon, beliefs[i]))
        replicate(primary);
    }
  }

  size_t replica_of(size_t primary, size_t number) const {
    return shape_.servers + primary * shape_.replicas + number;
  }
  size_t replicas_of(size_t primary) const { return primary == 0 && lost_ ? 0 : shape_.replicas; }

  size_t least_busy(size_t primary, std::vector<size_t>& under_way) const {
    size_t least = primary;
    for (size_t i = 0; i < replicas_of(primary); ++i)
      if (const size_t replica = replica_of(primary, i); under_way[replica] <= under_way[least])
        least = replica;
    ++under_way[least];
    return least;
  }

  void replicate(size_t primary) {
    for (size_t i = 0; i < replicas_of(primary); ++i) {
      load_[primary].bytes_out += bytes_.write;
      load_[replica_of(primary, i)].bytes_in += bytes_.write;
    }
  }

  belief ask(server_load& server, const std::string& key, size_t daemon) {
    stored_key& stored = keys_[key];
    ++server.commands;
    ++server.questions;
    server.bytes_in += bytes_.exists;
    server.bytes_out += bytes_.exists_reply;
    if (shape_.kind != store_kind::bucket)
      track(server, stored, static_cast<uint32_t>(daemon));
    remote::presence_book& book = *books_[daemon];
    stored.there ? book.is_present(key, now_) : book.is_absent(key, now_);
    return stored.there ? belief::present : belief::absent;
  }

  /// What is before a chunk that is there is believed to be there, and what is behind one that is missing to be missing.
  void probe_prefix(const std::vector<std::string>& keys, std::vector<belief>& beliefs, size_t daemon) {
    server_load& bucket = load_.front();
    ++bucket.lookups;
    if (auto& read_at = tokens_read_[daemon];
        read_at == scale_clock::time_point() || now_ - read_at > token_holds) {
      read_at = now_;
      bucket.commands += tokens_of_space;
      bucket.tokens += tokens_of_space;
    }
    uint64_t rounds = 0;
    remote::prefix_probe plan(keys.size());
    for (auto asked = plan.next(); !asked.empty(); asked = plan.next()) {
      std::vector<belief> what;
      bool waits = false;
      for (size_t chunk : asked) {
        if (beliefs[chunk] == belief::unknown) {
          waits = true;
          beliefs[chunk] = ask(bucket, keys[chunk], daemon);
        }
        what.push_back(beliefs[chunk]);
      }
      rounds += waits ? 1 : 0;
      plan.answered(what);
      for (size_t chunk = 0; chunk < plan.found(); ++chunk)
        if (beliefs[chunk] == belief::absent)
          plan.is_missing(chunk);
    }
    for (size_t chunk = 0; chunk < keys.size(); ++chunk)
      if (beliefs[chunk] == belief::unknown) {
        beliefs[chunk] = chunk < plan.found() ? belief::present : belief::absent;
        if (chunk >= plan.found())
          books_[daemon]->is_absent(keys[chunk], now_);
      }
    bucket.rounds += rounds;
    bucket.rounds_most = std::max(bucket.rounds_most, rounds);
  }

  void read(server_load& server) {
    ++server.commands;
    ++server.reads;
    server.bytes_in += bytes_.read;
    server.bytes_out += bytes_.read_reply;
  }

  /// Returns false if it is there.
  bool write(server_load& server, const std::string& key, stored_key& stored, size_t daemon, belief known) {
    if (known == belief::present)
      return false;
    ++server.commands;
    ++server.writes;
    server.bytes_in += bytes_.write;
    server.bytes_out += bytes_.write_reply;
    tell_change(server, key, stored);
    books_[daemon]->is_present(key, now_);
    if (stored.there)
      return true;
    stored.there = true;
    if (shape_.kind == store_kind::bucket)
      return true; // it evicts nothing
    order_.push_back(key);
    if (order_.size() <= store_objects)
      return true;
    stored_key& evicted = keys_[order_.front()];
    evicted.there = false;
    tell_change(load_[server_of(order_.front())], order_.front(), evicted);
    order_.pop_front();
    return true;
  }

  /// As a server does: whoever has asked is told once.
  static void track(server_load& server, stored_key& stored, uint32_t daemon) {
    if (std::find(stored.tracked_by.begin(), stored.tracked_by.end(), daemon) != stored.tracked_by.end())
      return;
    stored.tracked_by.push_back(daemon);
    server.tracked_most = std::max(server.tracked_most, ++server.tracked_now);
  }
  void tell_change(server_load& server, const std::string& key, stored_key& stored) {
    for (const uint32_t daemon : stored.tracked_by) {
      ++server.pushes;
      server.bytes_out += bytes_.push;
      books_[daemon]->forget(key);
    }
    server.tracked_now -= stored.tracked_by.size();
    stored.tracked_by.clear();
  }

  /// A replica takes over what the first server had.
  void lose_a_server() {
    server_load& server = load_.front();
    lost_ = true;
    for (auto& [key, stored] : keys_)
      if (server_of(key) == 0) {
        server.tracked_now -= stored.tracked_by.size();
        stored.tracked_by.clear();
      }
    for (auto& book : books_)
      book->forget_all();
    server.connections_made += daemons_ * connections_of_daemon;
    if (shape_.kind == store_kind::single)
      return;
    // Each daemon asks a sentinel, or some node of the cluster for its slots.
    for (size_t i = 0; i < daemons_; ++i) {
      server_load& guide = load_[shape_.kind == store_kind::cluster ? random_() % shape_.servers : 0];
      ++guide.connections_made;
      ++guide.commands;
      guide.bytes_out += bytes_.slots_reply;
    }
  }

  store_shape shape_;
  size_t daemons_;
  std::vector<server_load> load_;
  std::mt19937_64 random_;
  remote::slot_map map_;
  message_bytes bytes_;
  std::vector<std::unique_ptr<remote::presence_book>> books_;
  std::vector<std::deque<size_t>> hosts_; ///< documents in the memory of each daemon
  std::vector<scale_clock::time_point> tokens_read_;
  std::vector<double> popularity_;
  std::unordered_map<std::string, stored_key> keys_;
  std::deque<std::string> order_;
  scale_clock::time_point now_{};
  bool lost_ = false; ///< the first server: its replica has taken over, and has none
  uint64_t steady_most_ = 0, after_loss_most_ = 0;
};

} // namespace

void remote_scale(const settings&, const reporter& report) {
  const server_limits limits;
  const double book_bytes = static_cast<double>(remote::presence_book().bytes());
  for (const store_shape& shape : shapes)
    for (const size_t daemons : crowds) {
      simulated_stores stores(shape, daemons);
      stores.run();
      const server_load& busiest = stores.busiest();
      const auto of_daemons = static_cast<double>(daemons);
      const std::string name = std::string(" ") + shape.name + " " + std::to_string(daemons);
      auto tell = [&](const char* what, const char* unit, double value, double limit = 0) {
        report({.name = what + name,
                .unit = unit,
                .value = value,
                .limit = limit,
                .rounds = 1,
                .bounded = false});
      };
      if (shape.kind == store_kind::bucket) {
        const auto each = [&](uint64_t count) {
          return static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(busiest.lookups, 1));
        };
        tell("remote_scale_daemon_connections", "per daemon, at most",
             static_cast<double>(transfers_of_bucket));
        tell("remote_scale_questions", "HEAD per lookup that asks", each(busiest.questions));
        tell("remote_scale_question_rounds", "HEADs one after the other per lookup that asks",
             each(busiest.rounds));
        tell("remote_scale_question_rounds_most", "of one lookup", static_cast<double>(busiest.rounds_most));
        tell("remote_scale_reads", "GET per lookup that asks", each(busiest.reads));
        tell("remote_scale_writes", "PUT per lookup that asks", each(busiest.writes));
        tell("remote_scale_tokens", "GET of tokens per lookup that asks", each(busiest.tokens));
        tell("remote_scale_requests", "1/s of the bucket", simulated_stores::per_s(busiest.commands));
        tell("remote_scale_bytes", "MB/s of the bucket",
             simulated_stores::per_s(std::max(busiest.bytes_in, busiest.bytes_out)) / 1e6);
        continue;
      }
      const double connections = of_daemons * connections_of_daemon;
      const double bytes = simulated_stores::per_s(stores.most_bytes());
      const double messages = simulated_stores::per_s(busiest.messages());
      tell("remote_scale_connections", "per server", connections, limits.connections);
      tell("remote_scale_daemon_connections", "per daemon",
           static_cast<double>(shape.servers * (connections_of_daemon + shape.replicas)));
      tell("remote_scale_messages", "1/s of the busiest server", messages, limits.messages_per_s);
      tell("remote_scale_pushes", "1/s of these", simulated_stores::per_s(busiest.pushes));
      tell("remote_scale_bytes", "MB/s of the busiest server", bytes / 1e6, limits.bytes_per_s / 1e6);
      tell("remote_scale_tracked", "keys x daemons at the busiest server",
           static_cast<double>(busiest.tracked_most));
      tell("remote_scale_books", "MiB in all daemons", of_daemons * book_bytes / (1 << 20));
      tell("remote_scale_after_loss", "messages/s of the busiest server", stores.after_loss_most(),
           stores.steady_most());
      tell("remote_scale_stops_by_bytes", "daemons", of_daemons * limits.bytes_per_s / bytes);
      tell("remote_scale_stops_by_messages", "daemons", of_daemons * limits.messages_per_s / messages);
      tell("remote_scale_stops_by_connections", "daemons", of_daemons * limits.connections / connections);
    }
}

} // namespace terrace::bench
