// From what a client sent, tokens or digests, to the digests of its chunks.
#pragma once

#include "index/prefix_hasher.hpp"

#include <memory>
#include <optional>
#include <string>

namespace terrace {

enum class digest_unit : uint8_t { chunk = 0, hash_block = 1 };

/// As it came over the wire: exactly one of `tokens` and `digests`. The spans belong to the caller.
struct prefix_input {
  static constexpr uint64_t tokens_max = 2'097'152; ///< of a prompt, its parent included
  static constexpr size_t chunks_max = 65'536;
  static constexpr uint64_t objects_max = 4'194'304; ///< chunks x pools x ranks of one request

  std::span<const uint32_t> tokens;
  std::span<const uint8_t> parent; ///< digest that the tokens continue; empty: they begin the prompt
  uint64_t parent_tokens = 0;      ///< where the tokens or digests begin: a multiple of the chunk size

  std::span<const uint8_t> digests; ///< count x width bytes
  size_t digest_width = digest::max_size;
  digest_unit unit = digest_unit::chunk;
  std::span<const uint32_t>
      end_offsets; ///< of each digest, in tokens from the prompt's begin, when not regular

  extra_keys extra; ///< with tokens only: an engine's digests contain them already
  std::vector<std::string> tags;
};

/// The chunks that a request is about.
struct chunk_prefix {
  std::vector<digest> chunks;
  std::optional<digest> parent; ///< of the chunk before the first, when it exists and is known
  uint64_t first_token = 0;     ///< where the first chunk begins
  uint64_t prompt_tokens =
      0; ///< where the prompt ends, as far as the client told: tails that fill no chunk count
};

/// Checks everything at once, then hashes in steps (with digests there is nothing left to hash). A `parent` at token 0 is
/// a seed that the client chose, for engines that derive theirs from something else than the space's.
class prefix_resolver {
 public:
  /// `spec`, `hasher` and the input's spans must outlive it; `hasher` is used only inside `step`. Errors: `bad_request`.
  static result<prefix_resolver> make(const space_spec& spec, token_hasher& hasher, prefix_input input);

  /// Hashes up to `tokens_at_most` tokens. True when the chunks can be taken.
  bool step(size_t tokens_at_most);

  /// Once, after `step` returned true.
  chunk_prefix take();

 private:
  struct work; ///< at a fixed address, for the hasher refers to the extra keys beside it
  struct work_deleter {
    void operator()(work* w) const;
  };
  explicit prefix_resolver(std::unique_ptr<work, work_deleter> w) : work_(std::move(w)) {}

  std::unique_ptr<work, work_deleter> work_;
};

} // namespace terrace
