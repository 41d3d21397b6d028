// The prompts of a replay's conversations as tokens, for requests that name them by tokens instead of
// digests.
#pragma once

#include "cli/random_source.hpp"
#include "client/client.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
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

inline std::vector<uint32_t> tokens_of(std::span<const uint64_t> chunk_ids, uint32_t chunk_tokens) {
  std::vector<uint32_t> tokens;
  tokens.reserve(chunk_ids.size() * chunk_tokens);
  for (uint64_t id : chunk_ids)
    for (uint32_t i = 0; i < chunk_tokens; ++i)
      tokens.push_back(static_cast<uint32_t>(splitmix64(id + splitmix64_step * (i + 1)) >> 32));
  return tokens;
}

inline void sent_prompts::begin(uint64_t number, std::vector<uint32_t> tokens) {
  now_ = &conversations_[number];
  const auto& before = now_->prompt;
  size_t most = std::min(before.size(), tokens.size());
  auto end = before.begin() + static_cast<ptrdiff_t>(most);
  unchanged_ =
      static_cast<uint64_t>(std::mismatch(before.begin(), end, tokens.begin()).first - before.begin());
  now_->prompt = std::move(tokens);
}

inline result<client::lookup_result>
sent_prompts::lookup(client::connection& by, client::lookup_request request, client::deadline until) {
  if (!sessions_) {
    request.what = client::prefix::of_tokens(now_->prompt);
    sent_tokens_ += now_->prompt.size();
    return by.lookup(request, until);
  }
  if (!now_->session) {
    auto opened = by.open_session(request.in, {}, until);
    if (!opened)
      return tl::unexpected(opened.error());
    now_->session = std::move(*opened);
  }
  sent_tokens_ += now_->session.continued(now_->prompt, unchanged_).tokens.size();
  return now_->session.lookup(now_->prompt, unchanged_, request, until);
}

inline client::prefix sent_prompts::named(uint64_t first, uint64_t tokens) {
  auto part = std::span(now_->prompt).first(tokens);
  auto prompt = sessions_ ? now_->session.continued(part, first) : client::prefix::of_tokens(part);
  sent_tokens_ += prompt.tokens.size();
  return prompt;
}

} // namespace terrace::cli
