// What is remembered of an entry's uses, and the classes that the learner sorts them into.
#pragma once

#include "policy/entry_table.hpp"
#include "policy/ledger_types.hpp"
#include "policy/survival_model.hpp"
#include "policy/use_clock.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// How the request of the last use ended, as far as that is told. All of it is learned from, and nothing of it believed: a
/// client that says "closed" and returns teaches that its kind returns.
enum class use_ending : uint8_t {
  untold,
  short_answer,    ///< below 40 tokens
  middling_answer, ///< below 300
  long_answer,
  tool_call,
  closed,
  soon,  ///< the client expects the next turn within 15 s
  later, ///< within a minute
  late,
};
constexpr size_t use_endings = 9;

/// What is told last counts least: closed, the expected return, a tool call, the length.
use_ending ending_of(const request_outcome& outcome);

/// The entry_record's word `history`, and the model that learns from it. Off until `start`: then it only counts uses.
///
/// A request continues a conversation when the deepest of its chunks that is known had at most one successor so far (a
/// client may tell the turn instead); otherwise it starts one. An entry that several conversations start with is a
/// *trunk*: a system prompt, tools, a document. Its class is how often that happened, by powers of two. All others are
/// classed by how often they were used and by the request that used them last: how many chunks it added to what was known,
/// how long after the turn before it came, and how it ended. Until the end they are in the pool of all endings.
class use_history {
 public:
  use_history(entry_table& table, const use_clock& clock) : table_(table), clock_(clock) {}

  void start();
  bool started() const { return model_ != nullptr; }

  /// A request for these entries, root first, none unknown to the table; the first `known` were there before it.
  /// `turn`: what the client says, or 0. Before their uses are noted.
  void begin(std::span<const entry_index> chain, size_t known, uint32_t turn);
  /// A use at `stamp`, by the request that began then, if one did. Before the record gets it.
  void use(entry_index at, uint32_t stamp);
  /// The request that used these at `stamp` and none later has ended.
  void end(std::span<const entry_index> chain, uint32_t stamp, use_ending how);
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

  struct kind {
    uint32_t uses = 1;
    uint32_t starts = 0;                     ///< conversations that begin with it
    size_t added = 0;                        ///< chunks, by the request that used it last
    std::optional<uint32_t> pause_seconds{}; ///< before that request, if it continued a conversation
    use_ending how = use_ending::untold;
  };
  static size_t class_for(const kind& of);

 private:
  // The word: uses 3 bits, open 1, successors 2, starts 10, added 2, pause 2, class 10.
  static constexpr uint32_t count_mask = 7, open_bit = 8;
  static constexpr int successor_shift = 4, start_shift = 6, request_shift = 16, class_shift = 20;
  static constexpr uint32_t start_max = 1023, request_mask = 15, class_mask = 1023;
  static constexpr size_t cells = count_max * (request_mask + 1), trunks = 9,
                          classes = cells * use_endings + trunks;

  static uint32_t request_bits(size_t added, std::optional<uint32_t> pause_seconds);
  static size_t class_of(uint32_t word) { return word >> class_shift & class_mask; }
  static uint32_t classified(uint32_t word, use_ending how);
  static size_t class_at(uint32_t uses, uint32_t starts, uint32_t request, use_ending how);
  static std::vector<size_t> pools();
  void add_successor(entry_index at);

  entry_table& table_;
  const use_clock& clock_;
  std::unique_ptr<survival_model> model_;
  uint32_t requests_ = 0; ///< since the last refresh
  uint32_t uses_ = 0;
  uint32_t begun_ = 0;   ///< stamp of the last request
  uint32_t request_ = 0; ///< its request_bits
};

} // namespace terrace
