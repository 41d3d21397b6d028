#include "policy/use_history.hpp"

#include <algorithm>
#include <bit>

namespace terrace {

namespace {
constexpr uint32_t refresh_requests = 64;
constexpr uint32_t refresh_uses = 1024; ///< at least: a refresh costs as much as a few hundred uses
} // namespace

void use_history::start() {
  if (!model_)
    model_ = std::make_unique<survival_model>(pools());
}

std::vector<size_t> use_history::pools() {
  std::vector<size_t> pool_of(classes);
  for (size_t c = 0; c < classes; ++c)
    pool_of[c] = c < count_max * answers ? c - c % answers : c;
  return pool_of;
}

size_t use_history::class_at(uint32_t uses, uint32_t starts, uint32_t answer) {
  if (starts >= 2)
    return count_max * answers + std::min(trunks, static_cast<size_t>(std::bit_width(starts)) - 1) -
           1; // from 2 on
  return (std::clamp(uses, 1U, count_max) - 1) * answers + answer;
}

size_t use_history::class_for(uint32_t uses, uint32_t starts, std::optional<uint32_t> output_tokens) {
  return class_at(uses, starts, output_tokens ? answer_of(*output_tokens) : no_answer);
}

uint32_t use_history::classified(uint32_t word) {
  size_t is = class_at(word & count_mask, word >> start_shift & start_max, word >> answer_shift & 3);
  return (word & ~(31U << class_shift)) | static_cast<uint32_t>(is) << class_shift;
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
  word = (word & ~(3U << answer_shift)) | no_answer << answer_shift | open_bit;
  word = classified(word);
  model_->opened(class_of(word), clock_.ticks(stamp));
  if (++uses_ >= refresh_uses && requests_ >= refresh_requests) {
    model_->refresh();
    uses_ = 0;
    requests_ = 0;
  }
}

void use_history::end(std::span<const entry_index> chain, uint32_t stamp, uint32_t output_tokens) {
  if (!model_)
    return;
  for (entry_index at : chain) {
    uint32_t& word = table_[at].history;
    if (table_[at].stamp != stamp || !(word & open_bit))
      continue;
    uint32_t before = word;
    word = classified((word & ~(3U << answer_shift)) | answer_of(output_tokens) << answer_shift);
    if (class_of(before) != class_of(word))
      model_->reclassified(class_of(before), class_of(word), clock_.ticks(stamp));
  }
}

void use_history::forget(entry_index at) {
  if (model_ && table_[at].history & open_bit)
    model_->forgotten(class_of(table_[at].history), clock_.ticks(table_[at].stamp), clock_.ticks());
}

} // namespace terrace
