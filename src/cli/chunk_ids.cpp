#include "cli/chunk_ids.hpp"

#include "cli/random_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace terrace::cli {

outcome<void> check_chunk_tokens(uint32_t chunk_tokens) {
  if (chunk_tokens == 0 || (chunk_tokens % trace_block_tokens != 0 && trace_block_tokens % chunk_tokens != 0))
    return bad_usage(
        fmt::format("--chunk-tokens: expected a multiple of {0} (the trace's blocks) or a whole part of "
                    "it such as {1}, found {2}",
                    trace_block_tokens, trace_block_tokens / 2, chunk_tokens));
  return {};
}

std::vector<uint64_t> chunk_ids(const trace_request& request, uint32_t chunk_tokens) {
  size_t named_tokens = std::min<size_t>(request.input_length, request.hash_ids.size() * trace_block_tokens);
  size_t chunks = named_tokens / chunk_tokens; // the id of a block that is not full may be missing
  std::vector<uint64_t> ids(chunks);
  for (size_t i = 0; i < chunks; ++i) {
    size_t last_token = (i + 1) * chunk_tokens - 1;
    uint64_t block = request.hash_ids[last_token / trace_block_tokens];
    if (request.space > 1)
      block = splitmix64(block + splitmix64_step * (uint64_t{request.space} << 32));
    ids[i] = chunk_tokens >= trace_block_tokens
                 ? block
                 : splitmix64(block + splitmix64_step * (1 + last_token % trace_block_tokens));
  }
  return ids;
}

} // namespace terrace::cli
