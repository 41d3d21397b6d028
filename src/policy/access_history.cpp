#include "policy/access_history.hpp"

#include <algorithm>
#include <bit>

namespace terrace {

namespace {
constexpr uint32_t refresh_requests = 64;
constexpr uint32_t refresh_uses = 1024; ///< minimum, and
constexpr size_t uses_per_class = 16;   ///< at least this many per class in use
} // namespace

request_ending expected_after(uint64_t seconds) {
  auto step = seconds < 2 ? 0 : static_cast<size_t>(std::bit_width(seconds)) - 1;
  return static_cast<request_ending>(static_cast<size_t>(request_ending::expected) +
                                     std::min(step, expected_steps - 1));
}

request_ending ending_of(const request_outcome& outcome, std::chrono::milliseconds since_begin) {
  if (outcome.session_closed)
    return request_ending::closed;
  if (auto think = outcome.think_time_ns)
    return expected_after((*think / 1'000'000 + static_cast<uint64_t>(since_begin.count())) / 1000);
  if (outcome.reason == finish_reason::tool_call)
    return request_ending::tool_call;
  if (!outcome.output_tokens)
    return request_ending::untold;
  return *outcome.output_tokens < 40    ? request_ending::short_answer
         : *outcome.output_tokens < 300 ? request_ending::middling_answer
                                        : request_ending::long_answer;
}

void access_history::start() {
  if (!model_)
    model_ = std::make_unique<survival_model>(families());
}

survival_model::families access_history::families() {
  survival_model::families all{std::vector<size_t>(classes), static_cast<size_t>(request_ending::closed)};
  for (size_t c = 0; c < classes; ++c)
    all.pool_of[c] = c < cells * request_endings ? c - c % request_endings : c;
  return all;
}

uint32_t access_history::request_bits(size_t added, std::optional<uint32_t> pause_seconds) {
  uint32_t size = added < 2 ? 0 : added < 8 ? 1 : added < 32 ? 2 : 3;
  uint32_t pause = !pause_seconds ? 0 : *pause_seconds < 30 ? 1 : *pause_seconds < 150 ? 2 : 3;
  return size << 2 | pause;
}

uint32_t access_history::trunk_bits(uint32_t starts) {
  return starts < 2
             ? 0
             : std::min(static_cast<uint32_t>(trunks), static_cast<uint32_t>(std::bit_width(starts)) - 1);
}

size_t access_history::class_for(const kind& usage) {
  if (uint32_t trunk = trunk_bits(usage.starts); trunk != 0)
    return class_of(trunk << trunk_shift);
  return class_at(std::min(usage.uses, count_max), request_bits(usage.added, usage.pause_seconds),
                  static_cast<uint32_t>(usage.how));
}

template <class Event>
void access_history::update_models(uint32_t word, Event event) {
  event(*model_);
  uint32_t space = word >> space_shift;
  if (space == 0)
    return;
  auto& own = spaces_[space];
  if (!own)
    (own = std::make_unique<survival_model>(families(), model_.get()))->advance(clock_.ticks());
  event(*own);
}

void access_history::add_successor(entry_index at) {
  uint32_t& word = table_[at].history;
  if ((word >> successor_shift & 3) < 3)
    word += 1U << successor_shift;
}

void access_history::begin(std::span<const entry_index> chain, size_t known, uint32_t turn, uint32_t space) {
  if (!model_ || chain.empty())
    return;
  begun request = open(chain.size(), known, known > 0 ? chain[known - 1] : no_entry, turn, space);
  go_on(request, clock_.stamp());
  for (size_t i = 0; i < chain.size(); ++i)
    mark(request, chain[i], i);
}

access_history::begun access_history::open(size_t size, size_t known, entry_index last_known, uint32_t turn,
                                           uint32_t space) {
  begun request{size, known, false, 0, 0};
  if (!model_ || size == 0)
    return request;
  request.continues =
      turn != 0 ? turn > 1 : known > 0 && (table_[last_known].history >> successor_shift & 3) <= 1;
  std::optional<uint32_t> pause;
  if (uint32_t before = known > 0 ? table_[last_known].stamp : 0; request.continues && before != 0)
    pause = static_cast<uint32_t>((clock_.stamp() - before) / age_bins::ticks_per_second);
  request.request = request_bits(size - known, pause);
  request.space = space_bits(space);
  model_->advance(clock_.ticks());
  for (auto& own : spaces_)
    if (own)
      own->advance(clock_.ticks());
  ++requests_;
  return request;
}

void access_history::go_on(const begun& request, uint32_t stamp) {
  begun_ = stamp;
  request_ = request.request;
  space_ = request.space;
}

void access_history::mark(const begun& request, entry_index at, size_t position) {
  if (!model_)
    return;
  if (position + 1 >= request.known && position + 1 < request.size)
    add_successor(at);
  if (request.continues)
    return;
  if (uint32_t& word = table_[at].history; (word >> start_shift & start_max) < start_max)
    word += 1U << start_shift;
}

access_history::alike access_history::use(std::span<const entry_index> entries, uint32_t stamp) {
  const uint32_t former = table_[entries.front()].history, before = table_[entries.front()].stamp;
  uint32_t word = former + ((former & count_mask) < count_max ? 1 : 0);
  if (model_) {
    bool requested = stamp == begun_;
    constexpr uint32_t of_this_use =
        request_mask << request_shift | ending_mask << ending_shift | trunk_mask << trunk_shift;
    word = (word & ~of_this_use) | open_bit | (requested ? request_ : 0) << request_shift |
           trunk_bits(word >> start_shift & start_max) << trunk_shift;
    if (requested)
      word = (word & ((1U << space_shift) - 1)) | space_ << space_shift;
  }
  alike done{0, before};
  // The records change at once, so an entry that occurs twice is alike only if its second access changes nothing.
  for (entry_index at : entries) {
    entry_record& record = table_[at];
    if (record.history != former || record.stamp != before)
      break;
    record.history = word;
    record.stamp = stamp;
    ++done.entries;
  }
  if (!model_)
    return done;
  const int uses = static_cast<int>(done.entries);
  if (former & open_bit)
    update_models(former, [&](survival_model& model) {
      model.returned(class_of(former), clock_.ticks(before),
                     std::max(clock_.ticks(stamp), clock_.ticks(before)), uses);
    });
  update_models(word,
                [&](survival_model& model) { model.opened(class_of(word), clock_.ticks(stamp), uses); });
  uses_ += static_cast<uint32_t>(done.entries);
  refresh_when_due();
  return done;
}

/// Runs at an interval that keeps the cost of a refresh at that of a few accesses per class.
void access_history::refresh_when_due() {
  if (uses_ < refresh_uses || requests_ < refresh_requests)
    return;
  size_t in_use = model_->classes_in_use();
  for (auto& own : spaces_)
    in_use += own ? own->classes_in_use() : 0;
  if (uses_ < uses_per_class * in_use)
    return;
  model_->refresh();
  for (auto& own : spaces_)
    if (own)
      own->refresh();
  uses_ = 0;
  requests_ = 0;
}

void access_history::end(std::span<const entry_index> chain, uint32_t stamp, request_ending how) {
  if (!model_ || how == request_ending::untold)
    return;
  for (entry_index at : chain) {
    uint32_t& word = table_[at].history;
    if (table_[at].stamp != stamp || !(word & open_bit))
      continue;
    size_t before = class_of(word);
    word = (word & ~(ending_mask << ending_shift)) | static_cast<uint32_t>(how) << ending_shift;
    if (class_of(word) != before)
      update_models(word, [&](survival_model& model) {
        model.reclassified(before, class_of(word), clock_.ticks(stamp), clock_.ticks());
      });
  }
}

void access_history::forget(entry_index at) {
  uint32_t word = table_[at].history;
  if (model_ && word & open_bit)
    update_models(word, [&](survival_model& model) {
      model.forgotten(class_of(word), clock_.ticks(table_[at].stamp), clock_.ticks());
    });
}

size_t access_history::bytes() const {
  size_t total = model_ ? model_->bytes() + sizeof *model_ : 0;
  for (auto& own : spaces_)
    total += own ? own->bytes() + sizeof *own : 0;
  return total;
}

} // namespace terrace
