#include "protocol/bounds.hpp"
#include "protocol/bounds_checks.hpp"

namespace terrace::protocol {

namespace {

result<void> check_digests(const wire::Prefix& prefix) {
  size_t bytes = size_of(prefix.digests());
  size_t width = prefix.digest_width();
  if (auto ok = check_number("digest_width", width, digest::min_size, digest::max_size); !ok)
    return ok;
  if (bytes % width != 0)
    return refuse("expected digests of " + std::to_string(width) + " bytes each, got " +
                  std::to_string(bytes) + " bytes, which is no multiple");
  bool chunks = prefix.digest_unit() == wire::DigestUnit::chunk;
  if (auto ok = check_number("digest_unit", static_cast<uint8_t>(prefix.digest_unit()), 0, 1); !ok)
    return ok;
  if (auto ok = check_number("number of digests", bytes / width, 1, chunks ? chunks_max : digests_max); !ok)
    return ok;
  if (prefix.parent() || prefix.items())
    return refuse("expected no parent or items beside digests: the digests contain them already");
  if (!prefix.end_offsets())
    return {};
  if (prefix.end_offsets()->size() != bytes / width)
    return refuse("expected one end offset a digest (" + std::to_string(bytes / width) + "), got " +
                  std::to_string(prefix.end_offsets()->size()));
  uint32_t before = 0;
  for (uint32_t end : *prefix.end_offsets()) {
    if (end <= before || end > tokens_max)
      return refuse("expected end offsets that rise, up to " + std::to_string(tokens_max) + ", got " +
                    std::to_string(end) + " after " + std::to_string(before));
    before = end;
  }
  return {};
}

result<void> check_tokens(const wire::Prefix& prefix) {
  if (prefix.end_offsets())
    return refuse("expected no end_offsets beside tokens: they belong to digests");
  if (prefix.parent()) {
    if (auto ok = check_number("size of parent in bytes", prefix.parent()->size(), digest::min_size,
                               digest::max_size);
        !ok)
      return ok;
    if (auto ok = check_number("parent_tokens", prefix.parent_tokens(), 0, tokens_max); !ok)
      return ok;
  } else if (prefix.parent_tokens() != 0) {
    return refuse("expected parent_tokens 0 without a parent, got " + std::to_string(prefix.parent_tokens()));
  }
  uint64_t tokens = uint64_t{prefix.tokens()->size()} + prefix.parent_tokens();
  if (auto ok = check_number("number of tokens", tokens, 1, tokens_max); !ok)
    return ok;
  if (auto ok = check_number("number of items", size_of(prefix.items()), 0, items_max);
      !ok || !prefix.items())
    return ok;
  for (const auto* item : *prefix.items()) {
    if (auto ok = check_text("identifier of an item", item->identifier(), name_bytes_max, false); !ok)
      return ok;
    if (auto ok = check_number("tokens of an item", item->tokens(), 1, tokens_max); !ok)
      return ok;
    uint64_t end = uint64_t{item->first_token()} + item->tokens();
    if (auto ok = check_number("end of an item in tokens", end, 1, tokens_max); !ok)
      return ok;
  }
  return {};
}

result<void> check_session(const wire::Prefix& prefix) {
  if (auto ok = check_id("session", prefix.session(), false); !ok)
    return ok;
  if (!prefix.tokens())
    return refuse("expected tokens in a session, got digests: send these without a session");
  if (prefix.lora() || prefix.salt() || prefix.tags())
    return refuse("expected no lora, salt or tags in a session: the first two are told when it is opened");
  return {};
}

} // namespace

result<void> check(const wire::Prefix& prefix) {
  if (prefix.session())
    if (auto ok = check_session(prefix); !ok)
      return ok;
  if (prefix.tail() && !prefix.tokens())
    return refuse("expected tokens in a prefix with a tail, got digests: the tail is hashed from its tokens");
  if (!prefix.tokens() == !prefix.digests())
    return refuse("expected exactly one of tokens and digests in a prefix, got " +
                  std::string(prefix.tokens() ? "both" : "neither"));
  auto ok = prefix.tokens() ? check_tokens(prefix) : check_digests(prefix);
  if (!ok)
    return ok;
  if (ok = check_text("lora", prefix.lora(), name_bytes_max); !ok)
    return ok;
  if (ok = check_text("salt", prefix.salt(), name_bytes_max); !ok)
    return ok;
  if (ok = check_number("number of tags", size_of(prefix.tags()), 0, tags_max); !ok || !prefix.tags())
    return ok;
  for (const auto* tag : *prefix.tags())
    if (ok = check_text("tag", tag, name_bytes_max, false); !ok)
      return ok;
  return {};
}

} // namespace terrace::protocol
