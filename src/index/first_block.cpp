#include "index/first_block.hpp"

#include "index/cbor.hpp"
#include "index/sha256.hpp"

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

} // namespace terrace
