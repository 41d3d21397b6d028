// Groups the requests of a trace into conversations, and assigns them to the clients of a replay.
#pragma once

#include "cli/trace.hpp"

#include <cstddef>
#include <vector>

namespace terrace::cli {

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

} // namespace terrace::cli
