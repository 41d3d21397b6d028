#include "cli/kv_event_batch.hpp"

#include "base/tier_properties.hpp"
#include "cli/digest_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <msgpack.hpp>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

namespace terrace::cli {

namespace {

using packer = msgpack::packer<msgpack::sbuffer>;

struct block_run {
  bool stored = false;
  tier_kind tier = tier_kind::none;
  std::vector<const digest*> chunks;
};

std::vector<block_run> runs_of(std::span<const block_change> changes) {
  std::vector<block_run> runs;
  for (const block_change& one : changes) {
    if (runs.empty() || runs.back().stored != one.stored || runs.back().tier != one.tier)
      runs.push_back({one.stored, one.tier, {}});
    runs.back().chunks.push_back(&one.chunk);
  }
  return runs;
}

const char* medium_of(tier_kind tier) {
  return tier == tier_kind::gpu ? "GPU" : tier == tier_kind::host ? "CPU" : "STORAGE";
}

/// Routers take REMOTE blocks for nobody's own. Without the field they take all blocks for those of the publisher's machine.
const char* locality_of(tier_kind tier) { return shared_by_machines(tier) ? "REMOTE" : "LOCAL"; }

void pack_hashes(packer& to, const block_run& run, bool integers) {
  to.pack_array(static_cast<uint32_t>(run.chunks.size()));
  for (const digest* chunk : run.chunks) {
    size_t width = width_of(*chunk);
    if (integers) {
      uint64_t last = 0;
      for (size_t i = width - sizeof last; i < width; ++i)
        last = last << 8 | chunk->bytes[i];
      to.pack(last);
    } else {
      to.pack_bin(static_cast<uint32_t>(width));
      to.pack_bin_body(reinterpret_cast<const char*>(chunk->bytes.data()), width);
    }
  }
}

/// Packs fields by name, or in their order after the name of the event.
class event_packer {
 public:
  event_packer(packer& to, kv_event_form form, const char* type, uint32_t fields) : to_(to), form_(form) {
    if (form == kv_event_form::map) {
      to.pack_map(fields + 1);
      to.pack("type");
    } else {
      to.pack_array(fields + 1);
    }
    to.pack(type);
  }
  packer& field(const char* name) {
    if (form_ == kv_event_form::map)
      to_.pack(name);
    return to_;
  }

 private:
  packer& to_;
  kv_event_form form_;
};

} // namespace

std::string encode_kv_events(std::span<const block_change> changes, bool begins, double seconds,
                             const kv_event_options& with) {
  auto runs = runs_of(changes);
  if (runs.empty() && !begins)
    return {};
  msgpack::sbuffer buffer;
  packer to(buffer);
  to.pack_array(2);
  to.pack(seconds);
  to.pack_array(static_cast<uint32_t>(runs.size() + (begins ? 1 : 0)));
  if (begins)
    event_packer(to, with.form, "AllBlocksCleared", 0);
  for (const block_run& run : runs) {
    const bool placed = with.form == kv_event_form::map; // arrays are older than the field
    const uint32_t fields = (run.stored ? 7 : 2) + (placed ? 1 : 0);
    event_packer event(to, with.form, run.stored ? "BlockStored" : "BlockRemoved", fields);
    event.field("block_hashes");
    pack_hashes(to, run, with.integer_hashes);
    if (run.stored) {
      event.field("parent_block_hash").pack_nil();
      event.field("token_ids").pack_array(0); // the daemon does not know the tokens
      event.field("block_size").pack(with.block_size);
      event.field("lora_id").pack_nil();
    }
    event.field("medium").pack(medium_of(run.tier));
    if (run.stored)
      event.field("lora_name").pack_nil();
    if (placed)
      event.field("locality").pack(locality_of(run.tier));
  }
  return {buffer.data(), buffer.size()};
}

namespace {

constexpr uint8_t bit_of(tier_kind tier) { return static_cast<uint8_t>(1U << static_cast<unsigned>(tier)); }

/// Subscribers cannot tell the stores of a group apart: a chunk is in all of them or in none.
uint8_t as_told(uint8_t tiers) {
  uint8_t told = tiers;
  for (tier_kind tier : remote_tiers)
    told = static_cast<uint8_t>(told & ~bit_of(tier));
  return told == tiers ? told : static_cast<uint8_t>(told | bit_of(remote_tiers.front()));
}

} // namespace

size_t kv_blocks::hash_of_name::operator()(const chunk_name& name) const {
  uint64_t first = 0; // digests are evenly distributed
  std::memcpy(&first, name.chunk.bytes.data(), sizeof first);
  return first ^ name.space;
}

uint8_t kv_blocks::tiers_of(const chunk_parts& chunk, uint32_t chunk_objects) {
  if (chunk.objects.size() < chunk_objects)
    return 0;
  uint8_t all = 0xff, slowest = 0;
  for (const auto& [object, tiers] : chunk.objects) {
    all &= tiers;
    auto fastest = static_cast<uint8_t>(1U << std::countr_zero(tiers));
    slowest = std::max(slowest, fastest);
  }
  return all != 0 ? all : slowest;
}

void kv_blocks::add(const client::event& event, std::vector<block_change>& changes) {
  if (event.chunk_objects == 0 || event.tier > all_tiers.back())
    return;
  if (shared_by_machines(event.tier) && !tells_remote_)
    return;
  bool stored = event.what == client::event_kind::admit;
  if (event.chunk_objects == 1 && !shared_by_machines(event.tier)) {
    changes.push_back({stored, event.tier, event.chunk});
    return;
  }
  auto at = chunks_.try_emplace({event.space, event.chunk}).first;
  chunk_parts& chunk = at->second;
  uint32_t object = static_cast<uint32_t>(event.pool) << 16 | event.rank;
  auto place = std::lower_bound(chunk.objects.begin(), chunk.objects.end(), std::pair(object, uint8_t{0}));
  if (place == chunk.objects.end() || place->first != object)
    place = chunk.objects.insert(place, {object, uint8_t{0}});
  place->second =
      static_cast<uint8_t>(stored ? place->second | bit_of(event.tier) : place->second & ~bit_of(event.tier));
  if (place->second == 0)
    chunk.objects.erase(place);
  uint8_t now = as_told(tiers_of(chunk, event.chunk_objects));
  uint8_t before = std::exchange(chunk.told, now);
  for (tier_kind tier : all_tiers)
    if ((now & ~before & bit_of(tier)) != 0)
      changes.push_back({true, tier, event.chunk});
  for (tier_kind tier : all_tiers)
    if ((before & ~now & bit_of(tier)) != 0)
      changes.push_back({false, tier, event.chunk});
  if (chunk.objects.empty())
    chunks_.erase(at);
}

namespace {

constexpr int high_water_mark = 100'000; ///< messages that wait for a slow subscriber; it misses further ones
constexpr int linger_ms = 0;
constexpr size_t number_bytes = 8;

std::array<char, number_bytes> to_bytes(uint64_t number) {
  std::array<char, number_bytes> bytes{};
  for (size_t i = 0; i < number_bytes; ++i)
    bytes[i] = static_cast<char>(number >> 8 * (number_bytes - 1 - i));
  return bytes;
}

std::optional<uint64_t> to_number(const zmq::message_t& frame) {
  if (frame.size() != number_bytes)
    return std::nullopt;
  uint64_t number = 0;
  for (size_t i = 0; i < number_bytes; ++i)
    number = number << 8 | static_cast<unsigned char>(static_cast<const char*>(frame.data())[i]);
  return number;
}

void send(zmq::socket_t& to, std::string_view frame, bool more) {
  (void) to.send(zmq::buffer(frame.data(), frame.size()),
                 more ? zmq::send_flags::sndmore : zmq::send_flags::none);
}
void send_batch(zmq::socket_t& to, std::string_view topic, uint64_t number, std::string_view batch) {
  auto bytes = to_bytes(number);
  send(to, topic, true);
  send(to, {bytes.data(), bytes.size()}, true);
  send(to, batch, false);
}

} // namespace

struct kv_event_publisher::sockets {
  zmq::context_t context;
  zmq::socket_t publisher{context, zmq::socket_type::pub};
  zmq::socket_t router{context, zmq::socket_type::router};
  std::string topic;
  std::mutex mutex;
  std::deque<std::pair<uint64_t, std::shared_ptr<const std::string>>> kept;
  size_t kept_bytes = 0;
  uint64_t next = 0;
  std::thread replays;

  /// Runs until the context ends.
  void serve_replays() {
    try {
      while (true)
        serve_replay();
    } catch (const zmq::error_t&) { // ETERM: the context has ended
    }
    router.close();
  }
  void serve_replay() {
    std::vector<zmq::message_t> request;
    do {
      request.emplace_back();
      (void) router.recv(request.back());
    } while (request.back().more() && request.size() < 4);
    while (request.back().more()) // drops frames beyond those of a request
      (void) router.recv(request.back());
    auto first = to_number(request.back());
    if (request.size() != 3 || !first)
      return;
    auto address = request.front().to_string();
    auto answer = [&](std::string_view text, uint64_t number, std::string_view batch) {
      send(router, address, true);
      send(router, {}, true);
      send_batch(router, text, number, batch);
    };
    decltype(kept) all;
    {
      std::lock_guard lock(mutex);
      all = kept;
    }
    for (const auto& [number, batch] : all)
      if (number >= *first)
        answer(topic, number, *batch);
    answer({}, UINT64_MAX, {});
  }
};

kv_event_publisher::kv_event_publisher(std::unique_ptr<sockets> bound) : sockets_(std::move(bound)) {}

kv_event_publisher::~kv_event_publisher() {
  sockets_->context.shutdown();
  if (sockets_->replays.joinable())
    sockets_->replays.join();
}

outcome<std::unique_ptr<kv_event_publisher>> kv_event_publisher::open(const publisher_options& options) {
  auto made = std::make_unique<sockets>();
  made->topic = options.topic;
  std::string endpoint = options.publish;
  try {
    made->publisher.set(zmq::sockopt::sndhwm, high_water_mark);
    made->publisher.set(zmq::sockopt::linger, linger_ms);
    made->router.set(zmq::sockopt::linger, linger_ms);
    made->publisher.bind(endpoint);
    if (!options.replay.empty()) {
      endpoint = options.replay;
      made->router.bind(endpoint);
      made->replays = std::thread([all = made.get()] { all->serve_replays(); });
    }
  } catch (const zmq::error_t& why) {
    return failed("binding " + endpoint + ": " + why.what());
  }
  return std::unique_ptr<kv_event_publisher>(new kv_event_publisher(std::move(made)));
}

void kv_event_publisher::publish(std::string batch) {
  sockets& all = *sockets_;
  uint64_t number = all.next++;
  auto kept = std::make_shared<const std::string>(std::move(batch));
  {
    std::lock_guard lock(all.mutex);
    all.kept.emplace_back(number, kept);
    all.kept_bytes += kept->size();
    while (all.kept.size() > batches_kept || (all.kept_bytes > bytes_kept && all.kept.size() > 1)) {
      all.kept_bytes -= all.kept.front().second->size();
      all.kept.pop_front();
    }
  }
  send_batch(all.publisher, all.topic, number, *kept);
}

} // namespace terrace::cli
