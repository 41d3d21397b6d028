// A client of sessions whose turns store and save their partial chunk, with contents that can be checked.
#pragma once

#include "pool_client.hpp"

#include <numeric>
#include <span>
#include <vector>

namespace terrace::e2e {

/// Returns tokens that no other seed has.
inline std::vector<uint32_t> prompt_of(uint32_t seed, size_t tokens) {
  std::vector<uint32_t> prompt(tokens);
  std::iota(prompt.begin(), prompt.end(), seed * 100'000);
  return prompt;
}

inline std::vector<uint32_t> joined(std::vector<uint32_t> prompt, const std::vector<uint32_t>& more) {
  prompt.insert(prompt.end(), more.begin(), more.end());
  return prompt;
}

/// Names the KV of the last chunk of these tokens, whole or partial.
inline digest kv_of(std::span<const uint32_t> tokens) {
  uint64_t hash = 14'695'981'039'346'656'037ULL; // FNV-1a
  for (uint32_t token : tokens)
    hash = (hash ^ token) * 1'099'511'628'211ULL;
  return chain_of(hash, 1)[0];
}

/// Returns the names of all chunks of a prompt, including its tail.
inline std::vector<digest> kv_chain(std::span<const uint32_t> prompt) {
  std::vector<digest> names;
  for (size_t end = space_chunk_tokens; end <= prompt.size(); end += space_chunk_tokens)
    names.push_back(kv_of(prompt.first(end)));
  if (prompt.size() % space_chunk_tokens != 0)
    names.push_back(kv_of(prompt));
  return names;
}

class tail_client : public pool_client {
 public:
  using pool_client::pool_client;

  client::session open(const client::session_options& options = {}) {
    auto opened = (*this)->open_session((**this).space(), options, patiently());
    EXPECT_TRUE(opened) << opened.error().text;
    return opened ? std::move(*opened) : client::session();
  }

  /// Stores the chunks of the prompt from `first` on, including the tail, in these pools.
  result<client::store_result> store_turn(const client::session& of, std::span<const uint32_t> prompt,
                                          uint64_t unchanged, uint32_t first, std::vector<uint8_t> pools) {
    return store_tail(of.continued(prompt, unchanged), prompt, first, std::move(pools));
  }
  /// Stores all of a prompt in these pools, without a session.
  result<client::store_result> store_prompt(std::span<const uint32_t> prompt, std::vector<uint8_t> pools) {
    return store_tail(client::prefix::of_tokens(prompt), prompt, 0, std::move(pools));
  }

  result<client::saved_session> save(client::session& of, std::span<const uint32_t> prompt,
                                     uint64_t unchanged, std::span<const uint64_t> cursors = {}) {
    return of.save_with_tail(prompt, unchanged, cursors, {}, {}, patiently());
  }

  /// Stores everything new of the prompt, and saves the turn.
  client::saved_session turn(client::session& of, std::span<const uint32_t> prompt, uint64_t unchanged = 0,
                             std::span<const uint64_t> cursors = {}) {
    std::vector<uint8_t> all(pools().size());
    std::iota(all.begin(), all.end(), uint8_t{0});
    auto stored =
        store_turn(of, prompt, unchanged, static_cast<uint32_t>(unchanged / space_chunk_tokens), all);
    EXPECT_TRUE(stored) << stored.error().text;
    auto saved = save(of, prompt, unchanged, cursors);
    EXPECT_TRUE(saved) << saved.error().text;
    return saved ? *saved : client::saved_session();
  }

  client::lookup_result find(client::session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                             bool lease = false, uint32_t tiers = 0) {
    client::lookup_request request;
    request.what.tail = true;
    request.lease = lease;
    request.tiers = tiers;
    auto found = of.lookup(prompt, unchanged, request, patiently());
    EXPECT_TRUE(found) << found.error().text;
    return found ? std::move(*found) : client::lookup_result();
  }

  /// Reads what is found of the prompt in place, and checks every byte. Returns what was found.
  client::lookup_result find_and_check(client::session& of, std::span<const uint32_t> prompt,
                                       uint64_t unchanged) {
    auto found = find(of, prompt, unchanged, true);
    check(found.held.id(), prompt, found);
    return found;
  }
  void check(const lease_id& under, std::span<const uint32_t> prompt, const client::lookup_result& found) {
    if (found.found_chunks == 0)
      return;
    auto names = kv_chain(prompt.first(found.found_tokens));
    ASSERT_EQ(names.size(), found.found_chunks);
    std::vector<uint8_t> whole;
    for (size_t pool = 0; pool < pools().size(); ++pool)
      if (!trailing(pool))
        whole.push_back(static_cast<uint8_t>(pool));
    compare(under, names, {}, whole);
    for (size_t pool = 0; pool < pools().size(); ++pool)
      if (trailing(pool))
        compare(under, names, {found.found_chunks - 1, 1}, {static_cast<uint8_t>(pool)});
  }
  bool trailing(size_t pool) { return pools()[pool].name.starts_with("state"); }

 private:
  result<client::store_result> store_tail(client::prefix what, std::span<const uint32_t> prompt,
                                          uint32_t first, std::vector<uint8_t> pools) {
    auto names = kv_chain(prompt);
    auto count = static_cast<uint32_t>(names.size()) - first;
    auto objects = lay_out(names, {first, count}, pools);
    for (size_t i = 0; i < objects.size(); ++i)
      fill_content(objects[i].first, piece(i, objects[i].second));
    auto request = (**this).store_of(names, {first, count});
    request.what = what;
    request.what.tail = true;
    request.runs = runs();
    request.pools = pools;
    return (*this)->store(request, patiently());
  }
  void compare(const lease_id& under, const std::vector<digest>& names, client::chunk_range range,
               const std::vector<uint8_t>& wanted) {
    auto places = (*this)->read_lease(under, range, patiently(), wanted);
    ASSERT_TRUE(places) << places.error().text;
    size_t count = range.count != 0 ? range.count : names.size();
    ASSERT_EQ(places->objects.size(), count * wanted.size());
    for (size_t i = 0; i < places->objects.size(); ++i)
      EXPECT_TRUE(has_content(content_of(names[range.first + i / wanted.size()], wanted[i % wanted.size()]),
                              places->objects[i]))
          << "object " << i;
  }
};

} // namespace terrace::e2e
