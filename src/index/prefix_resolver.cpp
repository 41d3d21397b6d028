#include "index/prefix_resolver.hpp"

#include "index/chunk_layout.hpp"
#include "index/extra_keys.hpp"
#include "index/prefix_hasher.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace terrace {

namespace {

tl::unexpected<error> wrong(std::string why) { return fail(errc::bad_request, "prefix: " + std::move(why)); }

std::string decimal(uint64_t number) { return std::to_string(number); }

result<void> check_begin(const space_spec& spec, const token_hasher& hasher, const prefix_input& input) {
  if (!input.tokens.empty() && !input.digests.empty())
    return wrong("it has tokens and digests: expected one of them");
  // An empty prompt has no chunks, as one that is shorter than a chunk.
  if (input.tokens.empty() && input.digests.empty() && (!input.parent.empty() || input.tail))
    return wrong("it has neither tokens nor digests: expected one of them");
  if (input.parent_tokens % spec.chunk_tokens != 0 || input.parent_tokens > prefix_input::tokens_max)
    return wrong("parent_tokens is " + decimal(input.parent_tokens) +
                 ": expected a multiple of the chunk size (" + decimal(spec.chunk_tokens) + ") up to " +
                 decimal(prefix_input::tokens_max));
  if (!input.digests.empty()) {
    if (input.tail)
      return wrong("it has digests and asks for the tail, which is hashed from tokens: send tokens");
    bool one_block = first_chunk_is_a_block(spec) && hasher.extra_form() == extra_key_form::vllm;
    bool named = !input.extra.lora.empty() || !input.extra.salt.empty();
    if (!input.parent.empty() || !input.extra.items.empty() || (named && !one_block))
      return wrong("it has digests and a parent, LoRA name, salt or items, which digests already include: "
                   "leave these out (a LoRA name and a salt belong to digests only with sha256_cbor and "
                   "chunks of one hash block)");
    return input.extra.validate();
  }
  if (!input.end_offsets.empty())
    return wrong("it has tokens and end_offsets, which belong to digests: leave these out");
  if (!input.parent.empty() && input.parent.size() != hasher.width())
    return wrong("the parent has " + decimal(input.parent.size()) + " bytes: expected " +
                 decimal(hasher.width()) + ", the width of " + std::string(to_string(spec.algorithm)));
  if (input.parent.empty() && input.parent_tokens != 0)
    return wrong("parent_tokens is " + decimal(input.parent_tokens) +
                 " without a parent: expected its digest");
  return input.extra.validate();
}

result<void> check_size(const space_spec& spec, uint64_t first, uint64_t tokens, bool tail = false) {
  uint64_t chunks = (tokens + (tail ? spec.chunk_tokens - 1 : 0)) / spec.chunk_tokens;
  if (first + tokens > prefix_input::tokens_max)
    return wrong("it ends at token " + decimal(first + tokens) + ": expected at most " +
                 decimal(prefix_input::tokens_max));
  if (chunks > prefix_input::chunks_max)
    return wrong("it has " + decimal(chunks) + " chunks: expected at most " +
                 decimal(prefix_input::chunks_max));
  uint64_t objects = chunks * chunk_layout(spec).objects_per_chunk();
  if (objects > prefix_input::objects_max)
    return wrong("its chunks have " + decimal(objects) +
                 " objects over all pools and ranks: expected at most " + decimal(prefix_input::objects_max) +
                 "; request fewer chunks at a time");
  return {};
}

} // namespace

void keep_leading_part(const space_spec& spec, prefix_input& input) {
  const uint64_t most = std::min<uint64_t>(
      prefix_input::chunks_max, prefix_input::objects_max / chunk_layout(spec).objects_per_chunk());
  if (input.tokens.size() / spec.chunk_tokens > most) {
    input.tokens = input.tokens.first(most * spec.chunk_tokens);
    input.tail = false;
  }
  const uint64_t units = input.unit == digest_unit::chunk ? 1 : spec.chunk_tokens / spec.hash_block_tokens;
  if (input.end_offsets.empty() && input.digest_width != 0 &&
      input.digests.size() / input.digest_width / units > most)
    input.digests = input.digests.first(most * units * input.digest_width);
}

/// Reads the digests that end chunks, in steps.
class digest_reader {
 public:
  explicit digest_reader(const space_spec& spec) : spec_(&spec) {}

  /// Call before the first step.
  result<void> begin(const prefix_input& input, chunk_prefix& prefix) {
    size_t width = input.digest_width;
    if (width < digest::min_size || width > digest::max_size)
      return wrong("digest_width is " + decimal(width) + ": expected 8 to 32");
    if (input.digests.size() % width != 0)
      return wrong("digests have " + decimal(input.digests.size()) +
                   " bytes: expected a multiple of digest_width (" + decimal(width) + ")");
    if (input.unit > digest_unit::hash_block)
      return wrong("digest_unit is " + decimal(static_cast<uint64_t>(input.unit)) +
                   ": expected 0 (chunk) or 1 (hash_block)");
    count_ = input.digests.size() / width;
    if (!input.end_offsets.empty() && input.end_offsets.size() != count_)
      return wrong(decimal(input.end_offsets.size()) + " end_offsets for " + decimal(count_) +
                   " digests: expected as many");
    if (count_ > prefix_input::tokens_max)
      return wrong(decimal(count_) + " digests: expected at most " + decimal(prefix_input::tokens_max));
    unit_ = input.unit == digest_unit::chunk ? spec_->chunk_tokens : spec_->hash_block_tokens;
    one_for_each_chunk_ = unit_ == spec_->chunk_tokens && input.end_offsets.empty();
    prefix.first_token = prefix.prompt_tokens = input.parent_tokens;
    chunk_end_ = input.parent_tokens + spec_->chunk_tokens;
    if (!one_for_each_chunk_)
      return {};
    prefix.prompt_tokens += count_ * unit_;
    prefix.chunks.reserve(count_);
    return check_size(*spec_, input.parent_tokens, count_ * unit_);
  }

  /// Returns true when all are read. The end of the last digest is the end of the prompt.
  result<bool> step(const prefix_input& input, chunk_prefix& prefix, size_t work_at_most) {
    size_t end = std::min(count_, next_ + work_at_most / digest_work + 1);
    if (one_for_each_chunk_) {
      copy_up_to(end, input, prefix.chunks);
      return next_ == count_;
    }
    for (; next_ < end; ++next_)
      if (auto valid = add(input, prefix); !valid)
        return tl::unexpected(valid.error());
    if (next_ != count_)
      return false;
    if (auto valid = check_size(*spec_, input.parent_tokens, prefix.prompt_tokens - input.parent_tokens);
        !valid)
      return tl::unexpected(valid.error());
    return true;
  }

 private:
  static constexpr size_t digest_work = 2;

  /// Copies digests in the common case, where nothing is left to validate.
  void copy_up_to(size_t end, const prefix_input& input, std::vector<digest>& chunks) {
    size_t width = input.digest_width;
    chunks.resize(end);
    if (width == digest::max_size)
      std::memcpy(chunks.data() + next_, input.digests.data() + next_ * width, (end - next_) * width);
    else
      for (size_t i = next_; i < end; ++i)
        chunks[i] = digest::from(input.digests.subspan(i * width, width));
    next_ = end;
  }

  result<void> add(const prefix_input& input, chunk_prefix& prefix) {
    uint64_t end = input.end_offsets.empty() ? prefix.prompt_tokens + unit_ : input.end_offsets[next_];
    if (end <= prefix.prompt_tokens || end % spec_->hash_block_tokens != 0)
      return wrong("end_offset " + decimal(next_) + " is " + decimal(end) +
                   ": expected a multiple of the hash block (" + decimal(spec_->hash_block_tokens) +
                   ") above " + decimal(prefix.prompt_tokens));
    if (end > chunk_end_)
      return wrong("end_offset " + decimal(next_) + " is " + decimal(end) + " and no digest ends at token " +
                   decimal(chunk_end_) + ": expected one for the end of each chunk");
    if (end == chunk_end_) {
      prefix.chunks.push_back(
          digest::from(input.digests.subspan(next_ * input.digest_width, input.digest_width)));
      chunk_end_ += spec_->chunk_tokens;
    }
    prefix.prompt_tokens = end;
    return {};
  }

  const space_spec* spec_;
  size_t count_ = 0;
  size_t next_ = 0; ///< number of the next digest
  uint64_t unit_ = 0;
  uint64_t chunk_end_ = 0;
  bool one_for_each_chunk_ = false;
};
static_assert(sizeof(digest) == digest::max_size);

struct prefix_resolver::work {
  prefix_input input;
  token_hasher* hasher;
  uint32_t chunk_tokens;
  size_t width;
  std::optional<prefix_hasher> hashing;
  std::optional<digest_reader> reading; ///< reads the digests; nullopt: they are read
  chunk_prefix prefix;
  bool first_is_block; ///< the first chunk of a prompt is one hash block
  size_t tagged = 0;   ///< number of chunks that have their tags

  digest first_key(const digest& block) const {
    return first_block_key(block, input.extra, hasher->extra_form(), width);
  }

  /// Call after the whole chunks and the tail, which continues their digests, are hashed.
  void name_first_block() {
    if (!first_is_block || input.of_session)
      return;
    if (prefix.first_token == 0 && prefix.whole_chunks() != 0)
      prefix.chunks.front() = first_key(prefix.chunks.front());
    else if (prefix.first_token == chunk_tokens && prefix.parent)
      prefix.parent = first_key(*prefix.parent);
  }

  /// Call after the whole chunks are hashed.
  void add_tail() {
    auto rest = input.tokens.subspan(prefix.chunks.size() * chunk_tokens);
    if (!input.tail || rest.empty())
      return;
    std::optional<digest> parent;
    if (!prefix.chunks.empty())
      parent = prefix.chunks.back();
    else if (!input.parent.empty())
      parent = digest::from(input.parent);
    uint64_t first = input.parent_tokens + prefix.chunks.size() * chunk_tokens;
    prefix.chunks.push_back(tail_digest(*hasher, parent, first, rest, input.extra));
    prefix.tail_tokens = static_cast<uint32_t>(rest.size());
  }

  /// Returns true once all chunks have their tags.
  bool tag(size_t work_at_most) {
    if (input.tags.empty())
      return true;
    size_t bytes = digest::max_size;
    for (const std::string& one : input.tags)
      bytes += one.size();
    size_t count = std::min(work_at_most / (hash_call_work + bytes / 4) + 1, prefix.chunks.size() - tagged);
    apply_tags(input.tags, width, std::span(prefix.chunks).subspan(tagged, count));
    tagged += count;
    return tagged == prefix.chunks.size();
  }
};

void prefix_resolver::work_deleter::operator()(work* w) const { delete w; }

result<prefix_resolver> prefix_resolver::make(const space_spec& spec, token_hasher& hasher,
                                              prefix_input input, digest_memo* memo) {
  if (auto valid = check_begin(spec, hasher, input); !valid)
    return tl::unexpected(valid.error());
  if (auto valid = validate_tags(input.tags); !valid)
    return tl::unexpected(valid.error());
  std::unique_ptr<work, work_deleter> made(new work{std::move(input),
                                                    &hasher,
                                                    spec.chunk_tokens,
                                                    hasher.width(),
                                                    std::nullopt,
                                                    std::nullopt,
                                                    {},
                                                    first_chunk_is_a_block(spec)});
  prefix_input& kept = made->input;
  if (!kept.digests.empty()) {
    made->reading.emplace(spec);
    if (auto valid = made->reading->begin(kept, made->prefix); !valid)
      return tl::unexpected(valid.error());
    made->width = kept.digest_width;
    return prefix_resolver(std::move(made));
  }
  if (auto valid = check_size(spec, kept.parent_tokens, kept.tokens.size(), kept.tail); !valid)
    return tl::unexpected(valid.error());
  prefix_hasher::position begin{std::nullopt, kept.parent_tokens};
  if (!kept.parent.empty())
    begin.parent = digest::from(kept.parent);
  if (kept.parent_tokens > 0)
    made->prefix.parent = begin.parent;
  made->prefix.first_token = kept.parent_tokens;
  made->prefix.prompt_tokens = kept.parent_tokens + kept.tokens.size();
  made->hashing.emplace(hasher, chunk_shape{spec.chunk_tokens, spec.hash_block_tokens}, begin, kept.tokens,
                        kept.extra, memo);
  return prefix_resolver(std::move(made));
}

result<bool> prefix_resolver::step(size_t work_at_most) {
  work& w = *work_;
  if (w.reading) {
    auto done = w.reading->step(w.input, w.prefix, work_at_most);
    if (!done || !*done)
      return done;
    w.reading.reset();
    w.name_first_block();
    if (!w.input.tags.empty() && w.prefix.chunks.size() > work_at_most / hash_call_work)
      return false; // tags are hashed in the next step
  }
  if (w.hashing) {
    if (!w.hashing->step(work_at_most))
      return false;
    w.prefix.chunks = w.hashing->take_chunks();
    w.hashing.reset();
    w.add_tail();
    w.name_first_block();
  }
  return w.tag(work_at_most);
}

chunk_prefix prefix_resolver::take() {
  work& w = *work_;
  assert(!w.hashing && !w.reading && (w.input.tags.empty() || w.tagged == w.prefix.chunks.size()));
  if (w.prefix.parent)
    apply_tags(w.input.tags, w.width, {&*w.prefix.parent, 1});
  return std::move(w.prefix);
}

} // namespace terrace
