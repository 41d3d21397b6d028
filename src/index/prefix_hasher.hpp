// Computes the digest chain of a prompt in slices.
#pragma once

#include "index/digest_memo.hpp"
#include "index/extra_keys.hpp"
#include "index/space_spec.hpp"
#include "index/token_hasher.hpp"

#include <optional>
#include <span>
#include <vector>

namespace terrace {

// The digest of a partial chunk (the tokens after the last whole chunk of a prompt), and the key of an object whose digest is
// that of a prompt's first block.

/// Returns SHA-256(tag "terrace tail v1", digest), truncated to the width of the hasher. `digest` is that of the tokens
/// as one block onto `parent`, with the extra keys of their place in the prompt; if the prompt has no whole chunk, it
/// is `first_block_key` of that block. So equal tails of equal prompts have equal digests, and no tail has the
/// digest of a chunk. `parent` is the digest of the chunk before, or a client's seed; none: the hasher's root. `tokens`
/// has at least one token and fewer than a chunk; they begin at `first_token` of the prompt.
digest tail_digest(token_hasher& hasher, const std::optional<digest>& parent, uint64_t first_token,
                   std::span<const uint32_t> tokens, const extra_keys& extra);

/// In vLLM's form the digest of a first block does not say whether a single text is a LoRA name or a salt; later digests of
/// the chain do, because a name is in every block and a salt only in the first one. Where the first digest names an object,
/// its key is SHA-256(tag "terrace first block v1", the LoRA name and the salt, digest), truncated to `width` bytes. The digest
/// itself is the key if there are neither, or if the form has a place for each kind. `block` is the digest.
digest first_block_key(const digest& block, const extra_keys& extra, extra_key_form form, size_t width);

/// True if the first chunk consists of one block, so that both have the same digest.
inline bool first_chunk_is_a_block(const space_spec& spec) {
  return spec.chunk_tokens == spec.hash_block_tokens;
}

class digest_memo;
struct memo_key;

struct chunk_shape {
  uint32_t chunk_tokens = 256;
  uint32_t hash_block_tokens = 16; ///< divides `chunk_tokens`
};

/// The unit of work is the hashing of one token. Each call of the hash function costs as much as
/// `hash_call_work` tokens, and four bytes of extra keys cost as much as one token. `hash_step_work` units
/// take 0.1 to 0.3 ms, whatever the size of the blocks.
constexpr size_t hash_call_work = 48;
constexpr size_t hash_step_work = 65'536;

/// Hashes the whole chunks of a token sequence and ignores a tail that fills no chunk. Work above 100 us must yield to
/// other messages, so it is done in steps. With a memo, leading chunks that it knows are found instead of hashed.
class prefix_hasher {
 public:
  /// Says where the tokens begin: at the start of the prompt, or after `parent`.
  struct position {
    std::optional<digest> parent; ///< none: the hasher's root
    uint64_t first_token = 0;     ///< a multiple of the hash block
  };

  /// `hasher`, `tokens`, `extra` and `memo` must outlive the object; `extra` is valid. `memo` is that of the
  /// space with this hasher and shape; null: everything is hashed.
  prefix_hasher(token_hasher& hasher, chunk_shape shape, const position& begin,
                std::span<const uint32_t> tokens, const extra_keys& extra, digest_memo* memo = nullptr);

  /// Hashes blocks or finds chunks, at least one, and begins further ones while the work is below
  /// `work_at_most`. Returns true once all chunks are done.
  bool step(size_t work_at_most);
  bool done() const { return next_ == end_; }

  /// Digests of the chunks that are done; a chunk's digest is that of its last hash block.
  const std::vector<digest>& chunks() const { return chunks_; }
  std::vector<digest> take_chunks() { return std::move(chunks_); }

 private:
  size_t find_chunk();
  size_t hash_block();
  void end_chunk();
  void tell_memo();
  memo_key key_of(size_t chunk_begin, const std::optional<digest>& parent);

  token_hasher* hasher_;
  chunk_shape shape_;
  std::span<const uint32_t> tokens_;
  extra_key_encoder extra_;
  uint64_t first_token_;
  size_t next_ = 0; ///< tokens hashed so far
  size_t end_;      ///< tokens in whole chunks
  std::optional<digest> parent_;
  digest_memo* memo_;
  memo_trail way_;
  bool asking_; ///< the next chunk is looked up in the memo; false behind a chunk that the memo does not know
  uint64_t found_ = 0, hashed_ = 0;    ///< chunks in this step
  extra_key_encoder chunk_extra_;      ///< encodes the extra keys of the memo's keys
  std::optional<digest> chunk_parent_; ///< parent of the chunk that is being hashed

  /// A chunk that was hashed. The memo is told of it one chunk later, when the data that the memo reads for
  /// it has arrived in the cache.
  struct hashed_chunk {
    size_t begin;
    std::optional<digest> parent;
    digest chunk;
  };
  std::optional<hashed_chunk> untold_;
  std::vector<digest> chunks_;
};

/// Hashes everything at once, for callers that may block.
std::vector<digest> hash_chunks(token_hasher& hasher, chunk_shape shape, const prefix_hasher::position& begin,
                                std::span<const uint32_t> tokens, const extra_keys& extra);

} // namespace terrace
