// Events in the form that vLLM publishes: a batch in msgpack.
//
// Pure; used by one thread at a time.
#pragma once

#include "base/tier_properties.hpp"
#include "cli/failure.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace::cli {

// Publishes batches of events over ZeroMQ as vLLM does: a PUB socket, and a ROUTER socket at which subscribers ask for batches
// that they missed.

struct publisher_options {
  std::string publish; ///< ZeroMQ endpoint, such as tcp://127.0.0.1:5557
  std::string replay;  ///< empty: subscribers cannot ask for earlier batches
  std::string topic;
};

/// Messages: topic, sequence number (8 bytes, big-endian, from 0 on), batch. The answer to a replay request
/// with a number has one message for each kept batch from that number on, each behind an empty frame, and
/// then one with the number -1 and an empty batch. Used by one thread; another thread serves replays.
class kv_event_publisher {
 public:
  static constexpr size_t batches_kept = 10'000;
  static constexpr size_t bytes_kept = 64 << 20;

  /// Errors: an endpoint cannot be bound.
  static outcome<std::unique_ptr<kv_event_publisher>> open(const publisher_options& options);
  ~kv_event_publisher();

  void publish(std::string batch);

 private:
  struct sockets;
  explicit kv_event_publisher(std::unique_ptr<sockets> bound);
  std::unique_ptr<sockets> sockets_;
};

// Blocks as routers see them: a chunk becomes a block once engines can load it.
//
// Pure; used by one thread at a time.

struct block_change {
  bool stored = false; ///< false: it was removed
  tier_kind tier = nowhere;
  digest chunk;
  friend bool operator==(const block_change&, const block_change&) = default;
};

/// Makes blocks of objects. A block is stored in a tier while the tier has every object that a prefix needs
/// of the chunk, those of all ranks and pools. If no tier has all of them but several tiers together do, it
/// is stored in the slowest of these.
///
/// Memory: about 150 bytes for each chunk with an object in the tiers, if its space has several objects per
/// chunk. No memory is kept for other chunks.
class kv_blocks {
 public:
  /// The objects of the remote tier count only if `tells_remote`: every machine of the realm reads them, so they tell a router
  /// nothing about this one.
  explicit kv_blocks(bool tells_remote = false) : tells_remote_(tells_remote) {}

  /// Call it before a new snapshot.
  void clear() { chunks_.clear(); }
  /// Appends the changes that the event causes. An event may repeat what is known.
  void add(const client::event& event, std::vector<block_change>& changes);
  size_t chunks() const { return chunks_.size(); }

 private:
  struct chunk_name {
    uint32_t space = 0;
    digest chunk;
    friend bool operator==(const chunk_name&, const chunk_name&) = default;
  };
  struct hash_of_name {
    size_t operator()(const chunk_name& name) const;
  };
  struct chunk_parts {
    std::vector<std::pair<uint32_t, uint8_t>>
        objects;      ///< pool and rank, with one bit for each tier that has the object; sorted
    uint8_t told = 0; ///< tiers in which the block is stored
  };
  static uint8_t tiers_of(const chunk_parts& chunk, uint32_t chunk_objects);

  bool tells_remote_;
  std::unordered_map<chunk_name, chunk_parts, hash_of_name> chunks_;
};

/// The form of events. A batch is an array in both.
enum class kv_event_form : uint8_t {
  map,   ///< events are maps, as of vLLM 0.25 and later
  array, ///< events are arrays, as before; they have no locality
};

struct kv_event_options {
  kv_event_form form = kv_event_form::map;
  uint32_t block_size = 256;   ///< tokens per chunk; subscribers take a chunk for a block
  bool integer_hashes = false; ///< sends the last 64 bits of a digest instead of its bytes
};

/// Encodes stored and removed blocks in order; changes of one kind that follow each other form one event.
/// `begins`: subscribers must forget everything sent before. Returns an empty string if there is nothing to
/// send. `seconds`: since 1970.
std::string encode_kv_events(std::span<const block_change> changes, bool begins, double seconds,
                             const kv_event_options& with);

} // namespace terrace::cli
