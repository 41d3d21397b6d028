// Resolves what a client sent, tokens or digests, into the digests of its chunks.
#pragma once

#include "index/prefix_hasher.hpp"

#include <memory>
#include <optional>
#include <string>

namespace terrace {

enum class digest_unit : uint8_t { chunk = 0, hash_block = 1 };

/// The request as received: exactly one of `tokens` and `digests` is given. The caller owns the spans.
struct prefix_input {
  static constexpr uint64_t tokens_max = 2'097'152; ///< largest prompt, including its parent
  static constexpr size_t chunks_max = 65'536;
  /// largest product of chunks, pools and ranks in one request
  static constexpr uint64_t objects_max = 1'048'576;

  std::span<const uint32_t> tokens;
  std::span<const uint8_t> parent; ///< digest that the tokens continue; empty: the tokens begin the prompt
  uint64_t parent_tokens = 0;      ///< where the tokens or digests begin; a multiple of the chunk size

  std::span<const uint8_t> digests; ///< count x width bytes
  size_t digest_width = digest::max_size;
  digest_unit unit = digest_unit::chunk;
  std::span<const uint32_t> end_offsets; ///< where each digest ends, in tokens from the start, if not regular

  /// With tokens: the keys that are hashed with them. With digests, which already include them: a LoRA name
  /// and a salt where the first digest does not tell them apart (prefix_hasher.hpp).
  extra_keys extra;
  std::vector<std::string> tags;
  bool tail =
      false; ///< with tokens only: the tokens after the last whole chunk are a chunk, too (prefix_hasher.hpp)
  /// a session continues the chain, so the first chunk is returned by its digest, not by its key
  bool of_session = false;
};

/// Cuts a prefix that has more chunks or objects than one request may have to the leading part that fits. For questions of
/// how much is there: a part is a better answer than none.
void keep_leading_part(const space_spec& spec, prefix_input& input);

/// The chunks of a request, by their keys.
struct chunk_prefix {
  std::vector<digest> chunks;
  std::optional<digest> parent; ///< digest of the chunk before the first, if it exists and is known
  uint64_t first_token = 0;     ///< where the first chunk begins
  uint64_t prompt_tokens = 0; ///< the end of the prompt as far as sent, including a tail that fills no chunk
  uint32_t tail_tokens = 0;   ///< not 0: the last of `chunks` is a partial one with this many tokens

  size_t whole_chunks() const { return chunks.size() - (tail_tokens != 0 ? 1 : 0); }
};

/// Returns the tokens of the first `count` of `chunks` chunks. The last chunk has only `tail_tokens`, unless
/// these are 0.
constexpr uint64_t tokens_of_chunks(uint64_t count, uint64_t chunks, uint32_t tail_tokens,
                                    uint32_t chunk_tokens) {
  return count * chunk_tokens -
         (tail_tokens != 0 && count != 0 && count == chunks ? chunk_tokens - tail_tokens : 0);
}

/// Validates first, then hashes tokens or reads digests in steps. A `parent` at
/// token 0 is a seed chosen by the client, for engines that do not derive theirs from the space's seed.
class prefix_resolver {
 public:
  /// `spec`, `hasher`, `memo` and the input's spans must outlive the resolver; `hasher` is used only in
  /// `step`. `memo` is that of the space; null: none. Errors: `bad_request`.
  static result<prefix_resolver> make(const space_spec& spec, token_hasher& hasher, prefix_input input,
                                      digest_memo* memo = nullptr);

  /// Hashes tokens or reads digests, then hashes tags, for about `work_at_most` units of work (prefix_hasher.hpp).
  /// Returns true once the chunks can be taken. Errors: `bad_request`, for digests that do not end where they should.
  result<bool> step(size_t work_at_most);

  /// Call once, after `step` returned true.
  chunk_prefix take();

 private:
  struct work; ///< at a fixed address, because the hasher refers to the extra keys in it
  struct work_deleter {
    void operator()(work* w) const;
  };
  explicit prefix_resolver(std::unique_ptr<work, work_deleter> w) : work_(std::move(w)) {}

  std::unique_ptr<work, work_deleter> work_;
};

} // namespace terrace
