#include "remote/stale_values.hpp"

#include "remote/realm.hpp"

#include <algorithm>

namespace terrace::remote {

namespace {

constexpr std::string_view of_tokens = "epoch/";
constexpr size_t name_digits = 2 * sizeof(realm_space), epoch_digits = 16;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Takes `digits` hexadecimal digits from the begin; empty: there are fewer.
std::string_view take_hex(std::string_view& from, size_t digits) {
  auto taken = from.substr(0, digits);
  if (taken.size() != digits || !is_hex(taken))
    return {};
  from.remove_prefix(digits);
  return taken;
}

} // namespace

void stale_values::see(std::string_view key) {
  if (!key.starts_with(prefix_) || tokens_.size() == tokens_max)
    return;
  key.remove_prefix(prefix_.size());
  if (!key.starts_with(of_tokens))
    return;
  key.remove_prefix(of_tokens.size());
  if (auto name = take_hex(key, name_digits); !name.empty() && key.empty())
    tokens_.emplace(name, 0);
}

std::vector<std::string> stale_values::tokens() const {
  std::vector<std::string> keys;
  for (const auto& [name, value] : tokens_)
    keys.push_back(prefix_ + std::string(of_tokens) + name);
  return keys;
}

void stale_values::token_is(const std::string& key, std::optional<std::string_view> text) {
  auto known = tokens_.find(std::string_view(key).substr(prefix_.size() + of_tokens.size()));
  if (known == tokens_.end())
    return;
  auto value = text ? parse_epoch(*text) : result<uint64_t>(0);
  known->second = value ? *value : 0; // what cannot be read is no token
  if (known->second != 0)
    values_.insert(known->second);
}

stale_values::standing stale_values::of(std::string_view key) const {
  if (!key.starts_with(prefix_))
    return standing::other;
  key.remove_prefix(prefix_.size());
  auto space = take_hex(key, name_digits);
  if (space.empty() || !key.starts_with('/'))
    return standing::other;
  key.remove_prefix(1);
  auto epoch = parse_epoch(take_hex(key, epoch_digits));
  if (!epoch || !key.starts_with('/'))
    return standing::other;
  auto token = tokens_.find(space);
  if (token == tokens_.end() || token->second == 0)
    return standing::no_token;
  const uint64_t own = token->second;
  const bool is_current = *epoch == own || values_.contains(*epoch ^ own);
  return is_current ? standing::current : standing::stale;
}

} // namespace terrace::remote
