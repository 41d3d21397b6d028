// Request traces in the format that Mooncake published: JSON lines, plain or gzipped.
#pragma once

#include "base/eviction_types.hpp"
#include "cli/failure.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cli {

/// The number of tokens per id of a trace; defined by the format.
constexpr uint32_t trace_block_tokens = 512;

/// One line: {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [...]}. An id
/// identifies a block of 512 tokens and the whole prefix before it: two requests share a prefix exactly as
/// far as their ids agree. The last id is a partial block unless input_length is a multiple of 512.
struct trace_request {
  uint64_t timestamp_ms = 0;
  uint32_t input_length = 0;
  uint32_t output_length = 0;
  std::vector<uint64_t> hash_ids;
  std::string session_id;                        ///< optional extra key, empty when absent
  uint32_t turn = 0;                             ///< optional extra key, from 1; 0 when absent
  finish_reason reason = finish_reason::unknown; ///< optional extra key "finish_reason"
  bool session_closed = false;                   ///< optional extra key
  std::optional<uint32_t>
      think_ms;       ///< optional extra key: the client's estimate of the time until the next turn
  uint32_t space = 1; ///< space of the ids; not a key, because one file is one space

  /// Number of ids of whole blocks, which a cache can share.
  size_t full_blocks() const { return input_length / trace_block_tokens; }

  /// A number for the session; 0 when it has none.
  uint64_t session_number() const;

  friend bool operator==(const trace_request&, const trace_request&) = default;
};

struct trace {
  std::vector<trace_request> requests; ///< in file order
};

/// Parses one line; on failure the text states what was expected and found, without file and line. Unknown
/// keys are ignored. Information on a request's end takes effect once its answer is complete.
outcome<trace_request> parse_trace_line(std::string_view line);

/// Reads at most `limit` requests (0: all). Failures read "file:line: expected ...". Empty lines are skipped;
/// a file without any request is a failure.
outcome<trace> load_trace(const std::string& path, size_t limit = 0);

/// Formats the line of a request, with a newline. Optional keys are written when present.
std::string format_trace_line(const trace_request& request);

} // namespace terrace::cli
