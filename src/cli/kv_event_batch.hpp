// Events in the form that vLLM publishes: a batch in msgpack.
//
// Pure; used by one thread at a time.
#pragma once

#include "cli/kv_blocks.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace terrace::cli {

/// A batch is an array in both.
enum class kv_event_form : uint8_t {
  map,   ///< its events are maps, as of vLLM 0.25 and later
  array, ///< its events are arrays, as before
};

struct kv_event_options {
  kv_event_form form = kv_event_form::map;
  uint32_t block_size = 256;   ///< tokens of a chunk, which subscribers take for a block
  bool integer_hashes = false; ///< the last 64 bits of a digest instead of its bytes
};

/// Stored and removed blocks, in order, those of one kind together. `begins`: everything that was told before is void. Empty:
/// there is nothing to tell. `seconds`: since 1970.
std::string encode_kv_events(std::span<const block_change> changes, bool begins, double seconds,
                             const kv_event_options& with);

} // namespace terrace::cli
