// Generates synthetic multi-turn traces in the format of trace.hpp.
#pragma once

#include "cli/trace.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace terrace::cli {

// Groups the requests of a trace into conversations, and assigns them to the clients of a replay.

/// Returns the conversation of each request, numbered from 0 in order of first appearance. A session_id
/// determines the conversation. Without one, a request continues the conversation whose latest prompt it
/// extends: the last whole block of that prompt is among its own (the deepest such block decides). All other
/// requests begin a new conversation.
std::vector<size_t> conversations_of(const trace& requests);

/// Returns, for each of `clients`, the indices of its requests, in trace order. A conversation stays with one
/// client, so that its turns keep their order; conversations are assigned, in order of appearance, to the
/// client with the fewest blocks so far.
std::vector<std::vector<size_t>> distribute(const trace& requests, size_t clients);

/// Keeps only the requests of the first `count` conversations.
trace first_conversations(const trace& requests, size_t count);

enum class arrival_kind {
  poisson, ///< sessions start independently
  bursty,  ///< during a tenth of the time sessions start `burst_factor` times as often; the mean rate stays
};

constexpr size_t trace_requests_max =
    10'000'000; ///< a generated trace is held in memory: about 200 bytes a request

/// Parameters of the generated users. Lengths are lognormal with the given means, like the conversations in
/// published traces.
struct trace_options {
  uint64_t seed = 1;
  size_t requests = 1000;  ///< lines to write
  size_t sessions = 0;     ///< maximum number of conversations; 0: as many as the requests need
  double session_rate = 1; ///< mean number of conversations started per second
  arrival_kind arrivals = arrival_kind::poisson;
  double burst_factor = 10;
  double burst_seconds = 10; ///< mean length of a burst
  size_t system_prompts = 8; ///< shared prefixes with popularity 1 / rank; 0: none
  double system_prompt_tokens = 2048;
  double user_tokens = 1024;   ///< mean length of each turn's new input
  double output_tokens = 384;  ///< mean length of each answer; it is part of the next turn's context
  double turns = 5;            ///< mean turns of a conversation (geometric)
  double think_seconds = 20;   ///< mean time between an answer and the next turn (lognormal, heavy tail)
  double token_seconds = 0.02; ///< decoding time of one token of an answer
  double branch = 0.1;         ///< probability that a turn continues an earlier turn instead of the last
  double agents = 0;        ///< fraction of conversations whose answers call tools before they reach the user
  double tool_calls = 6;    ///< mean calls before an answer; each is a turn of its own
  double tool_seconds = 5;  ///< mean time from a call to its turn (lognormal, heavy tail)
  double tool_tokens = 800; ///< mean length of a tool's result, the new input of its turn
  double call_tokens = 80;  ///< mean length of an answer that calls a tool
  /// Share of the conversations whose clients report how each request ended: why, whether the conversation is
  /// over, and (roughly) when the next turn is due.
  double hints = 0;
  uint32_t context_tokens_max = 131'072; ///< a conversation ends before its context exceeds this

  /// A failure names the option as on the command line.
  outcome<void> validate() const;
};

/// Equal options give equal traces. Timestamps do not decrease. Returns fewer than `requests` only if
/// `sessions` conversations end before.
outcome<trace> generate_trace(const trace_options& options);

} // namespace terrace::cli
