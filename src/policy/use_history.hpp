// What is remembered of an entry's uses, and the classes that the learner sorts them into.
#pragma once

#include "policy/entry_table.hpp"
#include "policy/survival_model.hpp"
#include "policy/use_clock.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// The entry_record's word `history`, and the model that learns from it. Off until `start`: then it only counts uses.
///
/// A request continues a conversation when the deepest of its chunks that is known had at most one successor so far (a
/// client may tell the turn instead); otherwise it starts one. An entry that several conversations start with is a
/// *trunk*: a system prompt, tools, a document. Its class is how often that happened, by powers of two. All others are
/// classed by how often they were used and how long the answer of the last request was. Until that is told they are in
/// the pool of those classes.
class use_history {
 public:
  use_history(entry_table& table, const use_clock& clock) : table_(table), clock_(clock) {}

  void start();
  bool started() const { return model_ != nullptr; }

  /// A request for these entries, root first, none unknown to the table; the first `known` were there before it.
  /// `turn`: what the client says, or 0. Before their uses are noted.
  void begin(std::span<const entry_index> chain, size_t known, uint32_t turn);
  /// A use at `stamp`. Before the record gets it.
  void use(entry_index at, uint32_t stamp);
  /// The answer of the request that used these at `stamp` and none later had so many tokens.
  void end(std::span<const entry_index> chain, uint32_t stamp, uint32_t output_tokens);
  void forget(entry_index at);

  /// How often it was used, up to 4.
  uint32_t uses(entry_index at) const { return table_[at].history & count_mask; }

  /// What keeping it is worth (survival_model::value). Started only.
  float value(entry_index at) const {
    return model_->value(class_of(table_[at].history), clock_.stamp() - table_[at].stamp);
  }
  const survival_model* model() const { return model_.get(); }
  size_t bytes() const { return model_ ? model_->bytes() + sizeof *model_ : 0; }

  static constexpr uint32_t count_max = 4;
  /// The class of an entry with so many uses and conversations that start with it, after an answer of that length, if
  /// it is known.
  static size_t class_for(uint32_t uses, uint32_t starts, std::optional<uint32_t> output_tokens);

 private:
  // The word: uses 3 bits, open 1, answer's length 2, successors 2, starts 10, class 5.
  static constexpr uint32_t count_mask = 7, open_bit = 8;
  static constexpr int answer_shift = 4, successor_shift = 6, start_shift = 8, class_shift = 18;
  static constexpr uint32_t start_max = 1023;
  static constexpr uint32_t no_answer = 0;
  static constexpr size_t answers = 4, trunks = 9, classes = count_max * answers + trunks;

  static uint32_t answer_of(uint32_t output_tokens) {
    return output_tokens < 40 ? 1 : output_tokens < 300 ? 2 : 3;
  }
  static std::vector<size_t> pools();
  static size_t class_of(uint32_t word) { return word >> class_shift & 31; }
  static uint32_t classified(uint32_t word);
  static size_t class_at(uint32_t uses, uint32_t starts, uint32_t answer);
  void add_successor(entry_index at);

  entry_table& table_;
  const use_clock& clock_;
  std::unique_ptr<survival_model> model_;
  uint32_t requests_ = 0; ///< since the last refresh
  uint32_t uses_ = 0;
};

} // namespace terrace
