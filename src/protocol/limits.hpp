// Limits of everything on the wire, checked before use; documented in docs/protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::protocol {

constexpr size_t header_bytes = 16;
constexpr size_t frame_alignment = 8;
constexpr uint64_t frame_bytes_max = 16ULL << 20; ///< header, body and padding
constexpr uint64_t hello_bytes_max = 64ULL << 10; ///< for a frame before the handshake is complete
constexpr size_t descriptors_max = 8;             ///< per frame
constexpr uint32_t tokens_max = 2'097'152;        ///< per prefix
constexpr uint32_t chunks_max = 65'536;           ///< per request
constexpr uint32_t digests_max = 131'072;         ///< per prefix, in either unit
constexpr uint32_t chunk_tokens_max = 65'536;
constexpr uint64_t run_skipped = UINT64_MAX;      ///< offset of a run whose bytes are not loaded
constexpr uint32_t pools_max = 16;                ///< declared by a client
constexpr uint32_t open_pools_max = 128;          ///< per space, including one per layer group
constexpr uint32_t tensors_max = 16;              ///< per object
constexpr uint32_t status_spaces_max = 64;        ///< listed in a status
constexpr uint64_t logits_bytes_max = 8ULL << 20; ///< per prompt
constexpr uint32_t sessions_listed_max = 1'024;
constexpr uint32_t leases_listed_max = 1'024;
constexpr uint32_t events_told_max = 8'192; ///< per answer
constexpr uint32_t world_size_max = 1'024;
constexpr uint32_t items_max = 4'096;
constexpr uint32_t tags_max = 16;
constexpr uint32_t runs_max = 1'048'576; ///< pieces per request: the sum of the runs' counts
constexpr uint32_t resumes_max = 1'024;
constexpr size_t string_bytes_max = 4'096;
constexpr size_t pool_name_bytes_max = 64;
constexpr size_t name_bytes_max =
    256; ///< names of clients, pools, models, dtypes, layouts, traces, LoRA, items and tags
constexpr size_t answer_tables_max = 262'144; ///< per answer (status lists clients and tiers)
constexpr size_t request_tables_max = 8'192;  ///< per request
constexpr uint64_t region_bytes_max = 1ULL << 44;
constexpr uint32_t region_events_max = 1024;
constexpr uint64_t region_event_bytes = sizeof(uint32_t) + 64; ///< a generation, and the handle of its event
constexpr uint64_t object_bytes_max = 1ULL << 30;  ///< no object crosses a registered slot of 1 GiB
constexpr uint32_t socket_buffer_bytes = 1U << 20; ///< requested on both ends

} // namespace terrace::protocol
