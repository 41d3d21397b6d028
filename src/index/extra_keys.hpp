// The keys that are hashed into the digests of a prompt besides its tokens.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "index/cbor.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

// Tags of a request, which are part of the keys of its objects.

constexpr size_t tags_max = 16;
constexpr size_t tag_bytes_max = 256;

/// Errors: `bad_request` for too many tags, or one that is empty or too long.
result<void> validate_tags(std::span<const std::string> tags);

/// Replaces each digest by SHA-256(tag "terrace tags v1", number of tags, each tag with its length, digest), truncated
/// to `width` bytes, the width of the digests. Tags are a set: order and repetition do not matter. Without tags nothing
/// changes. Tags are applied last, to the digests of chunks, so that they have the same effect for clients that send
/// tokens and those that send digests, and a parent is always the engine's own digest.
void apply_tags(std::span<const std::string> tags, size_t width, std::span<digest> digests);

// How extra keys are hashed by algorithms that have no field for them.

/// Feeds the input of the parent digest for a block with extra keys: a tag with a version, one byte with the
/// length of the true parent (0: none), the parent, the CBOR of the extra keys. The result is used like any
/// parent digest, so no choice of tokens and keys collides with a block without keys.
template <class Feed>
void feed_extra_parent(Feed&& feed, const std::optional<digest>& parent, size_t width,
                       std::span<const uint8_t> extra) {
  constexpr std::string_view tag = "terrace extra keys v2";
  feed(std::span(reinterpret_cast<const uint8_t*>(tag.data()), tag.size()));
  auto length = static_cast<uint8_t>(parent ? width : 0);
  feed(std::span<const uint8_t>(&length, 1));
  if (parent)
    feed(std::span<const uint8_t>(parent->bytes).first(width));
  feed(extra);
}

/// An image, a sound and so on: its tokens do not determine its content, so its identifier is hashed.
struct media_item {
  std::string identifier;
  uint32_t first_token = 0; ///< counted from the start of the prompt
  uint32_t tokens = 0;
};

struct extra_keys {
  static constexpr size_t items_max = 4'096;
  static constexpr size_t text_bytes_max = 256;

  std::string lora; ///< name of the LoRA adapter; hashed into every block
  std::vector<media_item>
      items;        ///< ordered by token, not overlapping; each is hashed into the blocks it overlaps
  std::string salt; ///< hashed into the first block of the prompt only

  bool empty() const { return lora.empty() && items.empty() && salt.empty(); }

  /// Errors: `bad_request` if a key is too long, out of order or empty.
  result<void> validate() const;
};

/// How a block's keys are encoded before they are hashed.
enum class extra_key_form : uint8_t {
  vllm,    ///< as vLLM does it: a LoRA name alone and a salt alone look the same (prefix_hasher.hpp)
  by_kind, ///< each kind of key has its place
};

/// Encodes the extra keys block by block, in ascending order.
class extra_key_encoder {
 public:
  /// `keys` must outlive the encoder.
  extra_key_encoder(const extra_keys& keys, extra_key_form form) : keys_(&keys), form_(form) {}

  /// Returns the block's keys as canonical CBOR; empty if the block has none. An item is [identifier, offset
  /// of the item relative to the block]. `vllm`: an array of the LoRA name, each item that overlaps the
  /// block, and the salt, without absent ones. `by_kind`: an array of three: the LoRA name or null, the array
  /// of these items, the salt or null.
  std::span<const uint8_t> block(uint64_t first_token, uint32_t tokens);

  /// Returns all that determines the keys of every block in the chunk, whatever the block size. The result is
  /// not hashed, only compared, in this process. Empty if no block has keys. Do not mix calls of `chunk` and
  /// `block` on one encoder.
  std::span<const uint8_t> chunk(uint64_t first_token, uint32_t tokens);

 private:
  /// Returns the end of the items that overlap the block; they begin with `next_item_`.
  size_t items_until(uint64_t first_token, uint32_t tokens);
  void put_items(size_t last, uint64_t first_token);

  const extra_keys* keys_;
  extra_key_form form_;
  size_t next_item_ = 0; ///< the first item that does not end before the current block
  cbor::buffer encoded_;
};

} // namespace terrace
