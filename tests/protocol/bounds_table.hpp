// All bounds of requests in one table. docs/protocol.md lists the same rows, and a test compares them with each other and
// with what the code does at the bound and one beyond.
#pragma once

#include "base/digest.hpp"
#include "protocol/descriptors.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace terrace::protocol {

enum class consequence : uint8_t {
  ends,    ///< the connection ends with an error of request 0
  refused, ///< the request is answered with `bad_request`, and the connection continues
};

struct bound {
  std::string_view text;
  uint64_t least = 0;
  uint64_t most = 0;
  std::string_view unit; ///< empty: a plain number
  consequence beyond = consequence::refused;
};

inline constexpr std::array bounds_table{
    bound{"length of a frame", header_bytes, frame_bytes_max, "bytes", consequence::ends},
    bound{"length of a frame before the handshake", header_bytes, hello_bytes_max, "bytes",
          consequence::ends},
    bound{"descriptors of a frame", 0, descriptors_max, "", consequence::ends},
    bound{"`client_name`", 1, name_bytes_max, "bytes", consequence::ends},
    bound{"`resumes`", 0, resumes_max, "", consequence::ends},
    bound{"`model`", 1, name_bytes_max, "bytes"},
    bound{"`dtype`", 1, name_bytes_max, "bytes"},
    bound{"`layout`", 1, name_bytes_max, "bytes"},
    bound{"`revision`", 0, string_bytes_max, "bytes"},
    bound{"`salt` of a space", 0, string_bytes_max, "bytes"},
    bound{"`seed`", 0, string_bytes_max, "bytes"},
    bound{"`chunk_tokens`", 1, chunk_tokens_max, ""},
    bound{"`world_size`", 1, world_size_max, ""},
    bound{"`pools` of an `OpenSpace`, with different names", 1, pools_max, ""},
    bound{"`name` of a pool", 1, pool_name_bytes_max, "bytes"},
    bound{"`object_bytes` of a pool", 1, object_bytes_max, "bytes"},
    bound{"`trailing`", 1, chunks_max, ""},
    bound{"`layer_groups`", 1, open_pools_max, ""},
    bound{"`tensors` of a pool", 1, tensors_max, ""},
    bound{"`tokens` of a prefix, with `parent_tokens`", 0, tokens_max, ""},
    bound{"`digest_width`, `parent`", digest::min_size, digest::max_size, "bytes"},
    bound{"`digests` of chunks", 1, chunks_max, ""},
    bound{"`digests` of hash blocks", 1, digests_max, ""},
    bound{"`lora`", 0, name_bytes_max, "bytes"},
    bound{"`salt` of a prefix", 0, name_bytes_max, "bytes"},
    bound{"`items`", 0, items_max, ""},
    bound{"`identifier` of an item", 1, name_bytes_max, "bytes"},
    bound{"`tags`", 0, tags_max, ""},
    bound{"a tag", 1, name_bytes_max, "bytes"},
    bound{"`first_chunk` + `chunks`", 0, chunks_max, ""},
    bound{"pieces of all runs", 0, runs_max, ""},
    bound{"`bytes` of a run", 1, object_bytes_max, "bytes"},
    bound{"`bytes` of a region", 1, region_bytes_max, "bytes"},
    bound{"`events` of a region", 0, region_events_max, ""},
    bound{"`trace`", 0, name_bytes_max, "bytes"},
    bound{"`lease`", 16, 16, "bytes"},
    bound{"`lookup_id` of `AwaitLookup`", 16, 16, "bytes"},
    bound{"`name` of `Announce`", 16, 16, "bytes"},
    bound{"`name` of `Follow`", 16, 16, "bytes"},
    bound{"`tier` of `SetPolicy`", 1, name_bytes_max, "bytes"},
    bound{"`policy` of `SetPolicy`", 1, name_bytes_max, "bytes"},
};

} // namespace terrace::protocol
