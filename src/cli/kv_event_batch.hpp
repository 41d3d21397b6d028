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

/// The form of events. A batch is an array in both.
enum class kv_event_form : uint8_t {
  map,   ///< events are maps, as of vLLM 0.25 and later
  array, ///< events are arrays, as before
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
