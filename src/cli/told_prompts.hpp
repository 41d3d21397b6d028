// The prompts of a replay's conversations as tokens, for requests that name them so instead of by digests.
#pragma once

#include "client/client.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace terrace::cli {

/// Requests with the same chunk ids have the same tokens, up to the chunk that differs: `chunk_tokens` for each id.
std::vector<uint32_t> tokens_of(std::span<const uint64_t> chunk_ids, uint32_t chunk_tokens);

/// Belongs to one connection; used by one thread at a time.
class told_prompts {
 public:
  /// `sessions`: each conversation has a session, so that its turns send only their new tokens.
  explicit told_prompts(bool sessions) : sessions_(sessions) {}

  /// All that follows concerns this prompt, the next one of the conversation with this number.
  void begin(uint64_t number, std::vector<uint32_t> tokens);

  /// `request` gives everything but the prompt. Errors: those of a lookup, and of opening a session.
  result<client::lookup_result> lookup(client::connection& by, client::lookup_request request,
                                       client::deadline until);

  /// The prompt's first `tokens`, for a request behind `lookup` whose range selects among their chunks those from the token
  /// `first` on. Refers to this object.
  client::prefix named(uint64_t first, uint64_t tokens);

  uint64_t sent_tokens() const { return sent_tokens_; } ///< all of which the daemon hashes

 private:
  struct conversation {
    client::session session;      ///< none before the first turn, or without sessions
    std::vector<uint32_t> prompt; ///< of the last turn
  };
  bool sessions_;
  std::unordered_map<uint64_t, conversation> conversations_;
  conversation* now_ = nullptr;
  uint64_t unchanged_ = 0; ///< tokens of the turn before
  uint64_t sent_tokens_ = 0;
};

} // namespace terrace::cli
