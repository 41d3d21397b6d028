#include "index/first_block.hpp"

#include "index/cbor.hpp"
#include "index/sha256.hpp"

#include <cassert>

namespace terrace {

digest first_block_key(const digest& block, const extra_keys& extra, extra_key_form form, size_t width) {
  if (form != extra_key_form::vllm || (extra.lora.empty() && extra.salt.empty()))
    return block;
  cbor::buffer head;
  cbor::put_text(head, "terrace first block v1");
  cbor::put_array(head, 2);
  cbor::put_text(head, extra.lora);
  cbor::put_text(head, extra.salt);
  sha256 hash;
  hash.begin();
  hash.update(head);
  hash.update(std::span<const uint8_t>(block.bytes).first(width));
  return digest::from(std::span<const uint8_t>(hash.finish().bytes).first(width));
}

digest tail_digest(token_hasher& hasher, const std::optional<digest>& parent, uint64_t first_token,
                   std::span<const uint32_t> tokens, const extra_keys& extra) {
  assert(!tokens.empty());
  extra_key_encoder keys(extra, hasher.extra_form());
  digest block = hasher.hash_block(parent ? parent : hasher.root(), tokens,
                                   keys.block(first_token, static_cast<uint32_t>(tokens.size())));
  if (first_token == 0)
    block = first_block_key(block, extra, hasher.extra_form(), hasher.width());
  cbor::buffer head;
  cbor::put_text(head, "terrace tail v1");
  sha256 hash;
  hash.begin();
  hash.update(head);
  hash.update(std::span<const uint8_t>(block.bytes).first(hasher.width()));
  return digest::from(std::span<const uint8_t>(hash.finish().bytes).first(hasher.width()));
}

} // namespace terrace
