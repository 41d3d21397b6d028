// Values of Redis clients in the tiers of their trust group: finds them, brings them into host memory,
// replaces and removes them.
//
// A key has one value, which a later one replaces, so a store is more than a publication: earlier values in
// all tiers are removed first, and nothing in progress may bring them back. Only the request that has
// reserved the key in host memory writes it; see `reserve_values`.
#pragma once

#include "actors/resp/value_turns.hpp"
#include "actors/transfer/transfer_arguments.hpp"
#include "base/digest.hpp"
#include "index/sha256.hpp"
#include "index/space_spec.hpp"
#include "runtime/task.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_hold.hpp"

#include <caf/actor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace terrace::resp {

// The space of the values of Redis clients, and the names of values in it.

constexpr std::string_view reserved_layout = "terrace.resp";
constexpr uint64_t value_bytes_most = space_spec::object_bytes_max / 2; ///< as in Redis: 512 MiB

/// Returns the spec; there is one such space per trust group. Its objects have sizes of their own, which no
/// client of another protocol knows.
inline space_spec value_space() {
  space_spec spec;
  spec.model = "resp";
  spec.dtype = "bytes";
  spec.layout = reserved_layout;
  spec.chunk_tokens = 1;
  spec.hash_block_tokens = 1;
  spec.algorithm = hash_algorithm::sha256;
  spec.pools = {{.name = "value", .object_bytes = value_bytes_most}};
  return spec;
}

/// True for a space that only this protocol may open: a request from another protocol would name wrong sizes.
inline bool is_value_space(const space_spec& spec) { return spec.layout == reserved_layout; }

/// Returns the SHA-256 of the key, whatever its length. No two keys with one digest are known, so the key is
/// not stored with the value.
inline digest name_of(sha256& with, std::string_view key) {
  with.begin();
  with.update(key);
  return with.finish();
}

} // namespace terrace::resp

namespace terrace::actors {

/// The subject of these functions: some keys of one client.
struct value_subject {
  group_ptr group;
  space_ptr space;
  batch_ptr objects; ///< with the sizes of the values, if they are stored
  context_ptr context;
};

/// The places where values were found and are held. Each of `holds` is parallel to the objects.
struct found_values {
  tier_holds holds; ///< fastest tier first

  /// Returns the fastest tier that has the value; null if none does.
  const tier_hold* of(size_t value) const {
    for (const tier_hold& one : holds)
      if (one.held->places()[value].present())
        return &one;
    return nullptr;
  }
};

/// A value in host memory, as long as `owner` exists.
struct held_value {
  object_place place;
  keep_alive owner;
};

/// Space for values of which no tier has an earlier one.
struct reserved_values {
  acquire_answer space; ///< every object is `reserved`
  struct credit_of {
    write_through_actor to;
    credit_ptr credit;
  };
  std::vector<credit_of> credits;
  std::unique_ptr<resp::value_turns::place> turn; ///< if others want to replace the same value
};

} // namespace terrace::actors
