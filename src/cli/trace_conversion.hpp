// Converts public traces of other formats into traces in Mooncake's.
#pragma once

#include "cli/trace.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace terrace::cli {

enum class trace_source : uint8_t {
  azure,    ///< Azure's LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens
  burstgpt, ///< BurstGPT: CSV with Timestamp, Request tokens, Response tokens, and perhaps Session ID
  bailian,  ///< Qwen-Bailian: JSON lines whose hash_ids are those of blocks of 16 tokens, and not of prefixes
  sharegpt, ///< conversations as text: a JSON array, or one a line
};
std::optional<trace_source> trace_source_named(std::string_view name);

struct conversion_options {
  std::optional<trace_source> from; ///< otherwise what the beginning of the file looks like
  uint32_t block_tokens = 0;        ///< 0: 16 of bailian, otherwise 512
  uint64_t limit = 0;               ///< requests; 0: all
  // ShareGPT's files have neither tokens nor times.
  uint32_t bytes_per_token = 4;
  double rate = 1;          ///< conversations that begin per second
  double turn_seconds = 30; ///< between the requests of a conversation
};

struct conversion {
  trace made; ///< in the order of time, which begins at 0
  trace_source from = trace_source::azure;
  uint32_t block_tokens = trace_block_tokens;
  std::string assumed; ///< what the file does not say, and what was taken instead; empty: nothing
};

/// Reads a plain or gzipped file. Failures name the file and line, and what was expected.
outcome<conversion> convert_trace(const std::string& path, const conversion_options& options);

} // namespace terrace::cli
