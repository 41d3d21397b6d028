// Which values in a store nobody finds any more, because a clear has replaced the token of their space or of their realm.
//
//   stale_values found(prefix);
//   for (key : all keys) found.see(key);          // first pass: the names of tokens
//   for (key : found.tokens()) found.token_is(key, text or none);
//   for (key : all keys) if (found.of(key) == standing::stale) candidates...   // second pass
//   read all tokens again, and remove those candidates that are still stale
//
// The epoch in a key combines the tokens of the space and of its realm (realm.hpp). Nobody has to know which token is a realm's:
// a value is current if its epoch combines the token of its space with any other one. A token that was replaced never comes back.
// So whoever reads the tokens after it has seen a value knows whether the value is stale for ever. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace terrace::remote {

class stale_values {
 public:
  static constexpr size_t tokens_max = 65'536; ///< spaces beyond are left as they are

  enum class standing : uint8_t {
    other,    ///< no value of a realm
    current,  ///< daemons find it
    no_token, ///< its space has no token: a value of a Redis client, or of a space that nobody has used since its token was lost
    stale,
  };

  explicit stale_values(std::string prefix) : prefix_(std::move(prefix) + "t1/") {}

  /// All keys that are looked at match it.
  std::string pattern() const { return prefix_ + "*"; }

  void see(std::string_view key);
  /// The keys of tokens that were seen.
  std::vector<std::string> tokens() const;
  /// None: the store has no such token. Every call replaces what was known of that token.
  void token_is(const std::string& key, std::optional<std::string_view> text);
  /// All tokens are read anew from here on.
  void forget_tokens() { values_.clear(); }

  standing of(std::string_view key) const;

 private:
  std::string prefix_;
  std::map<std::string, uint64_t, std::less<>> tokens_; ///< by space or realm; 0: there is none
  std::unordered_set<uint64_t> values_;                 ///< of all tokens
};

} // namespace terrace::remote
