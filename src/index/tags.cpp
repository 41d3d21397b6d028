#include "index/tags.hpp"

#include "index/cbor.hpp"
#include "index/sha256.hpp"

#include <algorithm>
#include <set>

namespace terrace {

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
