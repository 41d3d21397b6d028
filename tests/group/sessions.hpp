// Runs a turn in tests as the daemon does.
#pragma once

#include "group/session_turn.hpp"
#include "tests/index/spaces.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::test {

inline std::vector<uint32_t> tokens_from(uint32_t first, size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct turn_result {
  chunk_prefix whole;
  session_state_ptr after;
  size_t hashed = 0; ///< number of tokens hashed
};

inline result<turn_result> run_turn(const space_spec& spec, token_hasher& hasher, session_state_ptr from,
                                    turn_request asked, session_root_ptr root = nullptr,
                                    saved_turn_ptr saved = nullptr) {
  auto turn =
      session_turn::begin(spec, hasher, std::move(from), std::move(root), std::move(asked), std::move(saved));
  if (!turn)
    return tl::unexpected(turn.error());
  chunk_prefix chunks;
  size_t hashed = 0;
  if (turn->has_to_hash()) {
    auto resolver = prefix_resolver::make(spec, hasher, turn->input());
    if (!resolver)
      return tl::unexpected(resolver.error());
    while (!resolver->step(1000).value()) {
    }
    chunks = resolver->take();
    hashed = turn->tokens() - turn->first_token();
  }
  auto whole = turn->finish(chunks, hasher);
  return turn_result{std::move(whole), turn->after(), hashed};
}

} // namespace terrace::test
