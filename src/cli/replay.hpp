// Runs a trace against a cache and checks every returned byte.
//
// Per request of the trace: look up its whole chunks under a lease, load the found ones and compare them with
// the content implied by their digests, release them, then store the rest. The client's next request begins
// when the last store has been answered, so that with one client the hits depend only on the trace and the
// cache.
#pragma once

#include "cli/console.hpp"
#include "cli/replay_report.hpp"
#include "cli/replay_target.hpp"
#include "cli/trace.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace terrace::cli {

/// Returns the digests of a request's whole chunks. Each is a hash of its parent's digest and
/// the chunk's id, so that an id that occurs after two different prefixes has two digests.
std::vector<digest> chain_digests(const trace_request& request, uint32_t chunk_tokens = trace_block_tokens);

struct replay_options {
  uint32_t chunk_tokens = trace_block_tokens; ///< checked by check_chunk_tokens
  double speed = 0; ///< 0: as fast as answers come; 1: at the trace's timestamps; 2: twice as fast
  std::chrono::milliseconds
      prefetch{}; ///< for paced replays: a request is prefetched this long before its time; 0: never
  std::chrono::nanoseconds
      token_time{}; ///< an inference ends this long after its begin for each token of its answer
};

/// Replays the trace with one thread per target; conversations are distributed over them (sent_prompts.hpp).
/// The thread of a lost target ends; an interruption ends all after the current request. Errors are counted,
/// not returned; loads and stores are divided into pieces of the target's buffer. The end of an inference is
/// reported when the trace's clock reaches it, before the client's next request, or after its last. `done` is
/// called after each request, from any thread, with the counts of its client.
replay_counts replay_trace(const trace& requests, std::span<const std::unique_ptr<replay_target>> targets,
                           const replay_options& options, const interruption& stop,
                           const std::function<void(const replay_counts&)>& done);

} // namespace terrace::cli
