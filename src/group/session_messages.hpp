// Sessions of a trust group, by id.
#pragma once

#include "base/error.hpp"
#include "group/group_messages.hpp"
#include "group/prompt_book.hpp"
#include "group/session_table.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

struct open_session_request {
  session_opening what;
};
struct open_session_answer {
  error failure;
};

/// What a held session keeps between turns.
struct session_hold {
  lease_ptr what;           ///< of no connection; null: nothing
  uint64_t host_bytes = 0;  ///< physical
  uint64_t bytes_max = 0;   ///< of host memory, that all sessions may hold together
  uint32_t host_chunks = 0; ///< the first ones of `what`, which it holds in host memory
};

/// A turn begins that will end at `tokens`; 0: it is only looked at.
struct use_session_request {
  session_id id;
  uint64_t tokens = 0;
};
struct use_session_answer {
  error failure;
  session_use found;
};

/// A partial chunk is about to be stored, or saved: until it is saved, or the connection ends, nobody removes it.
struct refer_tail_request {
  space_ptr in;
  digest key;
  connection_id owner{};
};
struct refer_tail_answer {
  error failure; ///< always `ok`
};

struct save_session_request {
  session_id id;
  uint64_t generation = 0;
  session_state_ptr
      after; ///< its saved turn is this one, if `hold` is given and the turn is saved with its end
  std::optional<session_hold>
      hold; ///< what it holds from now on; none: only a lookup, and what was saved stays
};
struct save_session_answer {
  error failure; ///< always `ok`: what became of the turn is an outcome
  turn_outcome outcome = turn_outcome::saved;
  std::string unheld; ///< why the session holds nothing of the lease; empty: it holds it
};

/// What `session` is to hold was cut short, because sessions may hold no more beside the leases of clients: colder ones
/// give up so many bytes.
struct yield_holds_request {
  session_id session;
  uint64_t bytes = 0; ///< of host memory
};
struct yield_holds_answer {
  error failure;      ///< always `ok`
  uint64_t bytes = 0; ///< that they gave up, or more than that; 0: there is no colder one
};

/// What a held session gave up because it was the coldest one.
struct demoted_chunks {
  space_ptr in;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before; ///< the chunk before the first, if known
};

struct close_session_request {
  session_id id;
};
struct close_session_answer {
  error failure;
  bool closed = false;
  bool held = false; ///< it held something
};

/// The prompt's entry, instead of another one for the same prompt.
struct save_prompt_request {
  prompt_entry_ptr what;
};
struct save_prompt_answer {
  error failure; ///< `no_space`
  uint64_t prompts = 0;
  uint64_t bytes = 0; ///< of all entries
};

struct find_prompt_request {
  space_id in{};
  digest key; ///< of all its tokens
};
struct find_prompt_answer {
  error failure;          ///< always `ok`
  prompt_entry_ptr found; ///< null: there is none
};

/// Their space is cleared; 0: all are.
struct forget_prompts_request {
  space_id in{};
};
struct forget_prompts_answer {
  error failure; ///< always `ok`
  uint64_t prompts = 0;
};

struct sessions_request {
  size_t count_max = 0;           ///< of `listed`
  std::optional<session_id> only; ///< none: all
};
struct listed_session {
  session_report what;
  uint64_t held_tokens = 0, held_bytes = 0; ///< in all tiers
};
struct sessions_answer {
  error failure;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  uint64_t held = 0;       ///< sessions that hold something
  uint64_t held_bytes = 0; ///< of host memory, an object once
  std::vector<listed_session> listed;
};

} // namespace terrace
