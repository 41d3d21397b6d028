// Messages about the sessions of a trust group, by id.
#pragma once

#include "base/error.hpp"
#include "group/group_messages.hpp"
#include "group/prompt_registry.hpp"
#include "group/session_table.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

struct open_session_request {
  session_opening opening;
};
struct open_session_answer {
  error failure;
};

/// From the group to a session that has an actor: the session is parked. The actor gives everything back and
/// ends.
struct park_session_request {};
struct park_session_answer {
  session turns;
};

/// Announces that a partial chunk is about to be stored or saved. Nobody removes it until it is saved or the
/// connection ends.
struct refer_tail_request {
  space_ptr space;
  digest key;
  connection_id owner{};
};
struct refer_tail_answer {
  error failure; ///< always `ok`
};

/// The hold of `session` was cut short, because the leases of clients leave sessions no more room. Asks
/// colder sessions to give up this many bytes.
struct yield_holds_request {
  session_id session;
  uint64_t bytes = 0; ///< bytes of host memory
};
struct yield_holds_answer {
  error failure;      ///< always `ok`
  uint64_t bytes = 0; ///< bytes given up, possibly more than asked for; 0: no session is colder
};

/// Chunks that the coldest held session gave up.
struct demoted_chunks {
  space_ptr space;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before; ///< digest of the chunk before the first, if known
};

struct close_session_request {
  session_id id;
};
struct close_session_answer {
  error failure;
  bool closed = false;
  bool held = false; ///< the session held something
};

/// Adds the prompt's entry and replaces the one for the same prompt.
struct save_prompt_request {
  prompt_entry_ptr prompt;
};
struct save_prompt_answer {
  error failure; ///< `no_space`
  uint64_t prompts = 0;
  uint64_t bytes = 0; ///< bytes of all entries
};

struct find_prompt_request {
  space_id space{};
  digest key; ///< digest of all tokens of the prompt
};
struct find_prompt_answer {
  error failure;          ///< always `ok`
  prompt_entry_ptr found; ///< null: there is none
};

/// Forgets the prompts of a space that is being cleared. 0: forgets all prompts.
struct forget_prompts_request {
  space_id space{};
};
struct forget_prompts_answer {
  error failure; ///< always `ok`
  uint64_t prompts = 0;
};

struct sessions_request {
  size_t count_max = 0;           ///< most entries in `listed`
  std::optional<session_id> only; ///< set: lists this session only
};
struct listed_session {
  session_report report;
  uint64_t held_tokens = 0, held_bytes = 0; ///< sums over all tiers
};
struct sessions_answer {
  error failure;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  uint64_t held = 0;       ///< sessions that hold something
  uint64_t held_bytes = 0; ///< bytes of host memory; an object counts once
  std::vector<listed_session> listed;
};

} // namespace terrace
