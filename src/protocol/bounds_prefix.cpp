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
  // An empty prompt has no chunk, as one that is shorter than a chunk. Only what continues something must have a token.
  const bool continues = prefix.session() || prefix.parent() || size_of(prefix.items()) != 0 || prefix.tail();
  if (auto ok = check_number("number of tokens", tokens, continues ? 1 : 0, tokens_max); !ok)
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

// Bounds of answers, checked by clients.

namespace {

/// Checks the digest of a session, which is absent if there is none.
result<void> check_digest(const char* field, const byte_vector* value) {
  return value == nullptr ? result<void>{}
                          : check_number(field, value->size(), digest::min_size, digest::max_size);
}

} // namespace

result<void> check_pools(const flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>* pools) {
  if (!pools)
    return {};
  for (const auto* pool : *pools)
    if (auto ok = check_aligned("tensors", pool->tensors()); !ok)
      return ok;
  return {};
}

result<void> check_locations(const flatbuffers::Vector<const wire::Location*>& locations) {
  if (auto ok = check_aligned("locations", &locations); !ok)
    return ok;
  for (const auto* place : locations)
    if (place->bytes() > object_bytes_max || place->offset() > region_bytes_max - place->bytes())
      return refuse("expected locations of at most " + std::to_string(object_bytes_max) +
                    " bytes inside a segment, got " + std::to_string(place->bytes()) + " bytes at " +
                    std::to_string(place->offset()));
  return {};
}

result<void> check(const wire::LookupAnswer& table) {
  if (size_of(table.tiers()) != table.found_chunks())
    return refuse("expected one tier a found chunk (" + std::to_string(table.found_chunks()) + "), got " +
                  std::to_string(size_of(table.tiers())));
  if (auto ok = check_number("found_chunks", table.found_chunks(), 0, table.requested_chunks()); !ok)
    return ok;
  if (auto ok = check_digest("session_digest", table.session_digest()); !ok)
    return ok;
  if (auto ok = check_aligned("cursors", table.cursors()); !ok)
    return ok;
  if (auto ok = check_number("number of cursors", size_of(table.cursors()), 0, open_pools_max); !ok)
    return ok;
  if (auto ok = check_number("size of logits in bytes", size_of(table.logits()), 0, logits_bytes_max); !ok)
    return ok;
  return check_id("lease", table.lease(), true);
}

result<void> check(const wire::SaveSessionAnswer& table) {
  if (auto ok = check_digest("session_digest", table.session_digest()); !ok)
    return ok;
  return check_id("lease", table.lease(), true);
}

result<void> check(const wire::ForkSessionAnswer& table) {
  if (auto ok = check_digest("digest", table.digest()); !ok)
    return ok;
  return check_id("session", table.session(), false);
}

result<void> check(const wire::SessionsAnswer& table) {
  for (const auto* one : *table.sessions())
    if (auto ok = check_id("session", one->session(), false); !ok)
      return ok;
  return {};
}

result<void> check(const wire::LeasesAnswer& table) {
  for (const auto* one : *table.leases())
    if (auto ok = check_id("lease", one->lease(), false); !ok)
      return ok;
  return {};
}

result<void> check(const wire::RecentLookupsAnswer& table) {
  for (const auto* one : *table.lookups()) {
    if (auto ok = check_id("lookup_id", one->lookup_id(), true); !ok)
      return ok;
    if (size_of(one->digests()) % digest::max_size != 0)
      return fail(errc::bad_request, "expected digests of 32 bytes, got " +
                                         std::to_string(size_of(one->digests())) + " bytes of digests");
    if (one->parent() && one->parent()->size() != digest::max_size)
      return fail(errc::bad_request,
                  "expected a parent of 32 bytes, got " + std::to_string(one->parent()->size()));
  }
  return {};
}

result<void> check(const wire::StatusAnswer& table) {
  for (const auto* group : *table.groups())
    for (const auto* spaces : {group->open_spaces(), group->idle_spaces()})
      for (size_t i = 0; spaces != nullptr && i < spaces->size(); ++i)
        if (auto ok = check_pools(spaces->Get(static_cast<uint32_t>(i))->pools()); !ok)
          return ok;
  return check_id("boot", table.boot(), false);
}

result<run_totals> check_runs(const run_vector& runs, uint64_t region_bytes) {
  if (auto ok = check_aligned("runs", &runs); !ok)
    return tl::unexpected<error>(ok.error());
  run_totals totals;
  for (const auto* run : runs) {
    uint64_t count = run->count(), bytes = run->bytes();
    if (count == 0 || bytes == 0 || bytes > object_bytes_max)
      return refuse("expected runs of at least one piece of 1 to " + std::to_string(object_bytes_max) +
                    " bytes, got " + std::to_string(count) + " pieces of " + std::to_string(bytes) +
                    " bytes");
    if (count > runs_max - totals.pieces)
      return refuse("expected at most " + std::to_string(runs_max) +
                    " pieces in all runs of a request, got more");
    if (run->offset() == run_skipped && count == 1) {
      ++totals.pieces;
      totals.bytes += bytes;
      continue;
    }
    // count <= 2^20, so a wrapped value to the left of / cannot slip through the comparison.
    bool inside = run->offset() <= region_bytes && bytes <= region_bytes - run->offset() &&
                  (count == 1 || run->stride() <= (region_bytes - run->offset() - bytes) / (count - 1));
    if (!inside)
      return refuse("expected runs inside the region of " + std::to_string(region_bytes) + " bytes, got " +
                    std::to_string(count) + " pieces of " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(run->offset()) + " with stride " + std::to_string(run->stride()));
    totals.pieces += count;
    totals.bytes += count * bytes; // at most 2^20 pieces of 2^30 bytes in total
  }
  return totals;
}

/// The verb checks longer lists, in slices, because half a million runs take milliseconds.
constexpr size_t runs_checked_max = 16'384;

result<void> check_run_lists(const run_vector& runs, const flatbuffers::Vector<uint32_t>* runs_per_object) {
  if (runs_per_object && runs_per_object->size() > runs.size())
    return refuse("expected at least one run for each object, got " + std::to_string(runs.size()) +
                  " runs for " + std::to_string(runs_per_object->size()) + " objects");
  if (runs.size() > runs_checked_max)
    return check_aligned("runs", &runs);
  if (auto totals = check_runs(runs, region_bytes_max); !totals)
    return tl::unexpected<error>(totals.error());
  if (!runs_per_object)
    return {};
  uint64_t sum = 0;
  for (uint32_t count : *runs_per_object) {
    if (count == 0)
      return refuse("expected at least one run for each object, got 0 in runs_per_object");
    sum += count;
  }
  if (sum != runs.size())
    return refuse("expected the sum of runs_per_object to be the number of runs, " +
                  std::to_string(runs.size()) + ", got " + std::to_string(sum));
  return {};
}

} // namespace terrace::protocol
