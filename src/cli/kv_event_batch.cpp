#include "cli/kv_event_batch.hpp"

#include "cli/digest_text.hpp"

#include <msgpack.hpp>

#include <vector>

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
    event_packer event(to, with.form, run.stored ? "BlockStored" : "BlockRemoved", run.stored ? 7 : 2);
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
  }
  return {buffer.data(), buffer.size()};
}

} // namespace terrace::cli
