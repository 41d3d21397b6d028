#include "bench/engine/engine.hpp"

#include "bench/harness.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::bench {

engine::engine(language_model& model, paged_kv& kv, prefix_cache* cache, const engine_options& options,
               observer seen)
    : model_(model), kv_(kv), cache_(cache), options_(options), seen_(std::move(seen)) {}

engine_times engine::run(std::vector<inference> requests) {
  times_ = {};
  for (inference& r : requests) {
    assert(!r.prompt.empty() && r.generate != 0);
    if (paged_kv::blocks_for(r.prompt.size() + r.generate) > kv_.free_blocks())
      give_up("a request has more tokens than all blocks");
    auto tokens = r.prompt;
    waiting_.push_back({.what = std::move(r), .tokens = std::move(tokens), .table = {}, .computed = 0});
  }
  const double begin = seconds_now();
  for (size_t step = 0; !waiting_.empty() || !running_.empty(); ++step) {
    bool prefilled = false;
    times_.prefill_seconds += seconds_of([&] {
      admit(running_.empty() ? std::max(step, waiting_.front().what.first_step) : step);
      prefilled = prefill();
    });
    finish();
    if (!prefilled && !running_.empty())
      decode();
    finish();
  }
  times_.total_seconds = seconds_now() - begin;
  return times_;
}

void engine::admit(size_t step) {
  for (size_t i = 0; i < waiting_.size() && running_.size() < options_.running_max;) {
    if (waiting_[i].what.first_step > step)
      return;
    if (!may_start(waiting_[i])) {
      ++i; // requests behind it may fit
      continue;
    }
    // Asks for one token more than the request has: a preempted request that lacked a block does not come
    // back without it.
    if (!kv_.extend(waiting_[i].table, waiting_[i].tokens.size() + 1))
      return;
    running_.push_back(std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    running& started = running_.back();
    if (cache_ == nullptr)
      continue;
    restored found = cache_->restore(started.tokens, started.table);
    started.computed = found.tokens;
    if (!found.logits.empty())
      choose(started, found.logits);
  }
}

bool engine::may_start(const running& wanted) const {
  auto first_block = [](const running& of) {
    return std::span(of.tokens).first(std::min(of.tokens.size(), block_tokens));
  };
  return !options_.waits_for_equal || std::ranges::none_of(running_, [&](const running& other) {
    return other.in_prefill() && std::ranges::equal(first_block(other), first_block(wanted));
  });
}

bool engine::prefill() {
  std::vector<part> parts;
  std::vector<row> rows;
  for (running& r : running_) {
    if (!r.in_prefill())
      continue;
    size_t until = std::min(r.tokens.size(), r.computed + options_.prefill_tokens - rows.size());
    for (size_t i = r.computed; i < until; ++i)
      rows.push_back({.token = r.tokens[i],
                      .position = static_cast<uint32_t>(i),
                      .blocks = r.table,
                      .wants_logits = i + 1 == r.tokens.size()});
    parts.push_back({&r, until});
    if (rows.size() == options_.prefill_tokens)
      break;
  }
  if (rows.empty())
    return false;
  auto logits = model_.compute(rows, kv_);
  times_.computed_tokens += rows.size();
  for (auto [r, until] : parts) {
    r->computed = until;
    if (until < r->tokens.size())
      continue;
    auto own = logits.first(model_.shape().vocabulary);
    logits = logits.subspan(own.size());
    if (cache_ != nullptr && r->tokens.size() == r->what.prompt.size())
      cache_->keep(r->tokens, r->table, own);
    choose(*r, own);
  }
  return true;
}

void engine::decode() {
  make_room();
  std::vector<row> rows;
  for (running& r : running_)
    rows.push_back({.token = r.tokens.back(),
                    .position = static_cast<uint32_t>(r.tokens.size() - 1),
                    .blocks = r.table,
                    .wants_logits = true});
  auto logits = model_.compute(rows, kv_);
  for (running& r : running_) {
    r.computed = r.tokens.size();
    choose(r, logits.first(model_.shape().vocabulary));
    logits = logits.subspan(model_.shape().vocabulary);
  }
}

// Gets a block for each request's next token. The request that was admitted last gives up its blocks.
void engine::make_room() {
  for (size_t i = 0; i < running_.size(); ++i)
    while (i < running_.size() && !kv_.extend(running_[i].table, running_[i].tokens.size()))
      preempt();
}

void engine::preempt() {
  assert(running_.size() > 1);
  running last = std::move(running_.back());
  running_.pop_back();
  if (cache_ != nullptr)
    cache_->keep_blocks(std::span(last.tokens).first(last.computed), last.table);
  kv_.release(last.table);
  last.computed = 0;
  waiting_.push_front(std::move(last));
  ++times_.preemptions;
}

void engine::choose(running& of, std::span<const float> logits) {
  if (seen_)
    seen_(of.what.number, of.tokens.size() - of.what.prompt.size(), logits);
  of.tokens.push_back(static_cast<uint32_t>(std::ranges::max_element(logits) - logits.begin()));
  ++times_.generated_tokens;
}

void engine::finish() {
  for (running& r : running_)
    if (r.done())
      kv_.release(r.table);
  std::erase_if(running_, [](const running& r) { return r.done(); });
}

} // namespace terrace::bench
