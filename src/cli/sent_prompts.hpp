// The prompts of a replay's conversations as tokens, for requests that name them by tokens instead of
// digests.
#pragma once

#include "client/client.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace terrace::cli {

/// Returns `chunk_tokens` tokens for each id. Requests with equal chunk ids have equal tokens, up to the
/// first chunk that differs.
std::vector<uint32_t> tokens_of(std::span<const uint64_t> chunk_ids, uint32_t chunk_tokens);

/// Belongs to one connection; used by one thread at a time.
class sent_prompts {
 public:
  /// `sessions`: each conversation has a session, so that its turns send only their new tokens.
  explicit sent_prompts(bool sessions) : sessions_(sessions) {}

  /// Makes this prompt, the next one of the conversation with this number, the subject of the following
  /// calls.
  void begin(uint64_t number, std::vector<uint32_t> tokens);

  /// `request` gives everything but the prompt. Errors: those of a lookup, and of opening a session.
  result<client::lookup_result> lookup(client::connection& by, client::lookup_request request,
                                       client::deadline until);

  /// Returns the prompt's first `tokens` tokens, for a request after `lookup` whose range selects chunks from
  /// the token `first` on. The result refers to this object.
  client::prefix named(uint64_t first, uint64_t tokens);

  uint64_t sent_tokens() const { return sent_tokens_; } ///< the daemon hashes all of them

 private:
  struct conversation {
    client::session session;      ///< none before the first turn, or without sessions
    std::vector<uint32_t> prompt; ///< prompt of the last turn
  };
  bool sessions_;
  std::unordered_map<uint64_t, conversation> conversations_;
  conversation* now_ = nullptr;
  uint64_t unchanged_ = 0; ///< tokens of the turn before
  uint64_t sent_tokens_ = 0;
};

} // namespace terrace::cli
