#include "index/extra_keys.hpp"

#include "index/cbor.hpp"
#include "index/sha256.hpp"

#include <algorithm>
#include <set>

namespace terrace {

result<void> extra_keys::validate() const {
  auto too_long = [](const char* text, size_t bytes) {
    return fail(errc::bad_request, std::string(text) + " has " + std::to_string(bytes) +
                                       " bytes: expected at most " + std::to_string(text_bytes_max));
  };
  if (lora.size() > text_bytes_max)
    return too_long("the LoRA name", lora.size());
  if (salt.size() > text_bytes_max)
    return too_long("the salt", salt.size());
  if (items.size() > items_max)
    return fail(errc::bad_request, std::to_string(items.size()) + " multimodal items: expected at most " +
                                       std::to_string(items_max));
  uint64_t end = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    auto& item = items[i];
    if (item.identifier.size() > text_bytes_max)
      return too_long("the identifier of a multimodal item", item.identifier.size());
    if (item.identifier.empty() || item.tokens == 0 || item.first_token < end)
      return fail(errc::bad_request,
                  "multimodal item " + std::to_string(i) + " ('" + item.identifier + "', tokens " +
                      std::to_string(item.first_token) + " + " + std::to_string(item.tokens) +
                      "): expected an identifier, at least one token, and a start not before the "
                      "end of the previous item (" +
                      std::to_string(end) + ")");
    end = uint64_t{item.first_token} + item.tokens;
  }
  return {};
}

namespace {

uint64_t end_of(const media_item& item) { return uint64_t{item.first_token} + item.tokens; }

void put_raw(cbor::buffer& to, uint64_t number) {
  auto* bytes = reinterpret_cast<const uint8_t*>(&number);
  to.insert(to.end(), bytes, bytes + sizeof number);
}

void put_raw(cbor::buffer& to, const std::string& text) {
  put_raw(to, text.size());
  to.insert(to.end(), text.begin(), text.end());
}

} // namespace

size_t extra_key_encoder::items_until(uint64_t first_token, uint32_t tokens) {
  auto& items = keys_->items;
  while (next_item_ < items.size() && end_of(items[next_item_]) <= first_token)
    ++next_item_;
  size_t last = next_item_;
  while (last < items.size() && items[last].first_token < first_token + tokens)
    ++last;
  return last;
}

// The end of an item within the chunk matters, too, because it decides which blocks the item overlaps.
std::span<const uint8_t> extra_key_encoder::chunk(uint64_t first_token, uint32_t tokens) {
  encoded_.clear();
  size_t last = items_until(first_token, tokens);
  bool salted = first_token == 0 && !keys_->salt.empty();
  if (keys_->lora.empty() && next_item_ == last && !salted)
    return {};
  put_raw(encoded_, keys_->lora);
  put_raw(encoded_, salted ? keys_->salt : std::string());
  for (size_t i = next_item_; i < last; ++i) {
    const media_item& item = keys_->items[i];
    put_raw(encoded_, item.first_token - first_token);
    put_raw(encoded_, std::min<uint64_t>(end_of(item) - first_token, tokens));
    put_raw(encoded_, item.identifier);
  }
  return encoded_;
}

void extra_key_encoder::put_items(size_t last, uint64_t first_token) {
  for (size_t i = next_item_; i < last; ++i) {
    const media_item& item = keys_->items[i];
    cbor::put_array(encoded_, 2);
    cbor::put_text(encoded_, item.identifier);
    cbor::put_integer(encoded_, static_cast<int64_t>(item.first_token) - static_cast<int64_t>(first_token));
  }
}

std::span<const uint8_t> extra_key_encoder::block(uint64_t first_token, uint32_t tokens) {
  encoded_.clear();
  size_t last = items_until(first_token, tokens);
  size_t items = last - next_item_;
  bool adapted = !keys_->lora.empty();
  bool salted = first_token == 0 && !keys_->salt.empty();
  if (!adapted && items == 0 && !salted)
    return {};
  auto put_optional = [this](bool is_there, const std::string& text) {
    if (is_there)
      cbor::put_text(encoded_, text);
    else if (form_ == extra_key_form::by_kind)
      cbor::put_null(encoded_);
  };
  bool by_kind = form_ == extra_key_form::by_kind;
  cbor::put_array(encoded_, by_kind ? 3 : (adapted ? 1 : 0) + items + (salted ? 1 : 0));
  put_optional(adapted, keys_->lora);
  if (by_kind)
    cbor::put_array(encoded_, items);
  put_items(last, first_token);
  put_optional(salted, keys_->salt);
  return encoded_;
}

result<void> validate_tags(std::span<const std::string> tags) {
  if (tags.size() > tags_max)
    return fail(errc::bad_request,
                std::to_string(tags.size()) + " tags: expected at most " + std::to_string(tags_max));
  for (auto& tag : tags)
    if (tag.empty() || tag.size() > tag_bytes_max)
      return fail(errc::bad_request, "a tag of " + std::to_string(tag.size()) + " bytes: expected 1 to " +
                                         std::to_string(tag_bytes_max));
  return {};
}

void apply_tags(std::span<const std::string> tags, size_t width, std::span<digest> digests) {
  if (tags.empty())
    return;
  std::set<std::string_view> sorted(tags.begin(), tags.end());
  cbor::buffer head;
  cbor::put_text(head, "terrace tags v1");
  cbor::put_array(head, sorted.size());
  for (auto tag : sorted)
    cbor::put_text(head, tag);
  sha256 hash;
  for (auto& d : digests) {
    hash.begin();
    hash.update(head);
    hash.update(std::span<const uint8_t>(d.bytes).first(width));
    d = digest::from(std::span<const uint8_t>(hash.finish().bytes).first(width));
  }
}

} // namespace terrace
