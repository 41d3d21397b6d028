// Computes the digest chain of a prompt in slices.
#pragma once

#include "index/digest_memo.hpp"
#include "index/extra_keys.hpp"
#include "index/token_hasher.hpp"

#include <optional>
#include <span>
#include <vector>

namespace terrace {

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
