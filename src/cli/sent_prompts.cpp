#include "cli/sent_prompts.hpp"

#include "cli/random_source.hpp"

#include <algorithm>
#include <utility>

namespace terrace::cli {

std::vector<uint32_t> tokens_of(std::span<const uint64_t> chunk_ids, uint32_t chunk_tokens) {
  std::vector<uint32_t> tokens;
  tokens.reserve(chunk_ids.size() * chunk_tokens);
  for (uint64_t id : chunk_ids)
    for (uint32_t i = 0; i < chunk_tokens; ++i)
      tokens.push_back(static_cast<uint32_t>(splitmix64(id + splitmix64_step * (i + 1)) >> 32));
  return tokens;
}

void sent_prompts::begin(uint64_t number, std::vector<uint32_t> tokens) {
  now_ = &conversations_[number];
  const auto& before = now_->prompt;
  size_t most = std::min(before.size(), tokens.size());
  auto end = before.begin() + static_cast<ptrdiff_t>(most);
  unchanged_ =
      static_cast<uint64_t>(std::mismatch(before.begin(), end, tokens.begin()).first - before.begin());
  now_->prompt = std::move(tokens);
}

result<client::lookup_result> sent_prompts::lookup(client::connection& by, client::lookup_request request,
                                                   client::deadline until) {
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
  return by.lookup(now_->session, now_->prompt, unchanged_, request, until);
}

client::prefix sent_prompts::named(uint64_t first, uint64_t tokens) {
  auto part = std::span(now_->prompt).first(tokens);
  auto prompt = sessions_ ? now_->session.continued(part, first) : client::prefix::of_tokens(part);
  sent_tokens_ += prompt.tokens.size();
  return prompt;
}

} // namespace terrace::cli
