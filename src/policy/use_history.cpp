#include "policy/use_history.hpp"

#include <algorithm>
#include <bit>

namespace terrace {

namespace {
constexpr uint32_t refresh_requests = 64;
constexpr uint32_t refresh_uses = 1024; ///< at least, and
constexpr size_t uses_per_class =
    16; ///< so many for each class: a refresh costs as much as a few uses of each
} // namespace

use_ending ending_of(const request_outcome& outcome) {
  constexpr uint64_t second = 1'000'000'000;
  if (outcome.session_closed)
    return use_ending::closed;
  if (auto think = outcome.think_time_ns)
    return *think < 15 * second   ? use_ending::soon
           : *think < 60 * second ? use_ending::later
                                  : use_ending::late;
  if (outcome.reason == finish_reason::tool_call)
    return use_ending::tool_call;
  if (!outcome.output_tokens)
    return use_ending::untold;
  return *outcome.output_tokens < 40    ? use_ending::short_answer
         : *outcome.output_tokens < 300 ? use_ending::middling_answer
                                        : use_ending::long_answer;
}

void use_history::start() {
  if (!model_)
    model_ = std::make_unique<survival_model>(pools());
}

std::vector<size_t> use_history::pools() {
  std::vector<size_t> pool_of(classes);
  for (size_t c = 0; c < classes; ++c)
    pool_of[c] = c < cells * use_endings ? c - c % use_endings : c;
  return pool_of;
}

uint32_t use_history::request_bits(size_t added, std::optional<uint32_t> pause_seconds) {
  uint32_t size = added < 2 ? 0 : added < 8 ? 1 : added < 32 ? 2 : 3;
  uint32_t pause = !pause_seconds ? 0 : *pause_seconds < 30 ? 1 : *pause_seconds < 150 ? 2 : 3;
  return size << 2 | pause;
}

size_t use_history::class_at(uint32_t uses, uint32_t starts, uint32_t request, use_ending how) {
  if (starts >= 2)
    return cells * use_endings + std::min(trunks, static_cast<size_t>(std::bit_width(starts)) - 1) - 1;
  size_t cell = (std::clamp(uses, 1U, count_max) - 1) * (request_mask + 1) + request;
  return cell * use_endings + static_cast<size_t>(how);
}

size_t use_history::class_for(const kind& of) {
  return class_at(of.uses, of.starts, request_bits(of.added, of.pause_seconds), of.how);
}

uint32_t use_history::classified(uint32_t word, use_ending how) {
  size_t is =
      class_at(word & count_mask, word >> start_shift & start_max, word >> request_shift & request_mask, how);
  return (word & ~(class_mask << class_shift)) | static_cast<uint32_t>(is) << class_shift;
}

void use_history::add_successor(entry_index at) {
  uint32_t& word = table_[at].history;
  if ((word >> successor_shift & 3) < 3)
    word += 1U << successor_shift;
}

void use_history::begin(std::span<const entry_index> chain, size_t known, uint32_t turn) {
  if (!model_ || chain.empty())
    return;
  bool continues =
      turn != 0 ? turn > 1 : known > 0 && (table_[chain[known - 1]].history >> successor_shift & 3) <= 1;
  std::optional<uint32_t> pause;
  if (uint32_t before = known > 0 ? table_[chain[known - 1]].stamp : 0; continues && before != 0)
    pause = static_cast<uint32_t>((clock_.stamp() - before) / age_bins::ticks_per_second);
  begun_ = clock_.stamp();
  request_ = request_bits(chain.size() - known, pause);
  for (size_t i = known == 0 ? 0 : known - 1; i + 1 < chain.size(); ++i)
    add_successor(chain[i]);
  if (!continues)
    for (entry_index at : chain)
      if (uint32_t& word = table_[at].history; (word >> start_shift & start_max) < start_max)
        word += 1U << start_shift;
  model_->advance(clock_.ticks());
  ++requests_;
}

void use_history::use(entry_index at, uint32_t stamp) {
  entry_record& record = table_[at];
  uint32_t& word = record.history;
  if ((word & count_mask) < count_max)
    ++word;
  if (!model_)
    return;
  if (word & open_bit)
    model_->returned(class_of(word), clock_.ticks(record.stamp),
                     std::max(clock_.ticks(stamp), clock_.ticks(record.stamp)));
  uint32_t request = stamp == begun_ ? request_ : 0;
  word = (word & ~(request_mask << request_shift)) | request << request_shift | open_bit;
  word = classified(word, use_ending::untold);
  model_->opened(class_of(word), clock_.ticks(stamp));
  if (++uses_ >= std::max<size_t>(refresh_uses, uses_per_class * model_->classes_in_use()) &&
      requests_ >= refresh_requests) {
    model_->refresh();
    uses_ = 0;
    requests_ = 0;
  }
}

void use_history::end(std::span<const entry_index> chain, uint32_t stamp, use_ending how) {
  if (!model_ || how == use_ending::untold)
    return;
  for (entry_index at : chain) {
    uint32_t& word = table_[at].history;
    if (table_[at].stamp != stamp || !(word & open_bit))
      continue;
    size_t before = class_of(word);
    word = classified(word, how);
    if (class_of(word) != before)
      model_->reclassified(before, class_of(word), clock_.ticks(stamp));
  }
}

void use_history::forget(entry_index at) {
  if (model_ && table_[at].history & open_bit)
    model_->forgotten(class_of(table_[at].history), clock_.ticks(table_[at].stamp), clock_.ticks());
}

} // namespace terrace
