// What is remembered of an entry's uses, and the classes that the learner sorts them into.
#pragma once

#include "policy/access_clock.hpp"
#include "policy/entry_table.hpp"
#include "policy/eviction_types.hpp"
#include "policy/survival_model.hpp"

#include <array>
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
///
/// Uses in different spaces are those of different applications. All of them make one model, and those of each space
/// one that leans on it. Spaces beyond `spaces_max` share.
class access_history {
 public:
  access_history(entry_table& table, const access_clock& clock) : table_(table), clock_(clock) {}

  void start();
  bool started() const { return model_ != nullptr; }

  /// A request for these entries, root first, none unknown to the table; the first `known` were there before it.
  /// `turn`: what the client says, or 0. Before their uses are noted.
  /// `space`: see request_hints.
  void begin(std::span<const entry_index> chain, size_t known, uint32_t turn, uint32_t space);
  /// A use at `stamp`, by the request that began then, if one did. Before the record gets it.
  void use(entry_index at, uint32_t stamp);
  /// The request that used these at `stamp` and none later has ended.
  void end(std::span<const entry_index> chain, uint32_t stamp, use_ending how);
  void forget(entry_index at);

  /// How often it was used, up to 4.
  uint32_t uses(entry_index at) const { return table_[at].history & count_mask; }

  /// What keeping it is worth (survival_model::value). Started only.
  float value(entry_index at) const {
    uint32_t word = table_[at].history;
    const auto& own = spaces_[word >> space_shift];
    return (own ? *own : *model_).value(class_of(word), clock_.stamp() - table_[at].stamp);
  }
  const survival_model* model() const { return model_.get(); }
  /// Of the space alone; null while nothing was told of it.
  const survival_model* model_of(uint32_t space) const { return spaces_[space_bits(space)].get(); }
  size_t bytes() const;

  static constexpr uint32_t count_max = 4;
  static constexpr uint32_t spaces_max = 15;

  struct kind {
    uint32_t uses = 1;
    uint32_t starts = 0;                     ///< conversations that begin with it
    size_t added = 0;                        ///< chunks, by the request that used it last
    std::optional<uint32_t> pause_seconds{}; ///< before that request, if it continued a conversation
    use_ending how = use_ending::untold;
  };
  static size_t class_for(const kind& of);

 private:
  // The word: uses 3 bits, open 1, successors 2, starts 10, added 2, pause 2, ending 4, trunk 4, space 4. Uses, added, pause,
  // ending and trunk are those of the open use, and make its class.
  static constexpr uint32_t count_mask = 7, open_bit = 8;
  static constexpr int successor_shift = 4, start_shift = 6, request_shift = 16, ending_shift = 20,
                       trunk_shift = 24, space_shift = 28;
  static constexpr uint32_t start_max = 1023, request_mask = 15, ending_mask = 15, trunk_mask = 15;
  static constexpr size_t cells = count_max * (request_mask + 1), trunks = 9,
                          classes = cells * use_endings + trunks;

  static uint32_t request_bits(size_t added, std::optional<uint32_t> pause_seconds);
  static uint32_t trunk_bits(uint32_t starts);
  static uint32_t space_bits(uint32_t space) { return space == 0 ? 0 : 1 + (space - 1) % spaces_max; }
  static size_t class_of(uint32_t word) {
    if (uint32_t trunk = word >> trunk_shift & trunk_mask; trunk != 0)
      return cells * use_endings + trunk - 1;
    return class_at(word & count_mask, word >> request_shift & request_mask,
                    word >> ending_shift & ending_mask);
  }
  static size_t class_at(uint32_t uses, uint32_t request, uint32_t how) {
    return (((uses == 0 ? 1 : uses) - 1) * (request_mask + 1) + request) * use_endings + how;
  }
  /// To the model of all and to that of the entry's space.
  template <class Event>
  void tell_models(uint32_t word, Event event);
  static std::vector<size_t> pools();
  void add_successor(entry_index at);
  void refresh_when_due();

  entry_table& table_;
  const access_clock& clock_;
  std::unique_ptr<survival_model> model_;
  std::array<std::unique_ptr<survival_model>, spaces_max + 1> spaces_; ///< made when first used; 0: none
  uint32_t requests_ = 0;                                              ///< since the last refresh
  uint32_t uses_ = 0;
  uint32_t begun_ = 0;   ///< stamp of the last request
  uint32_t request_ = 0; ///< its request_bits
  uint32_t space_ = 0;   ///< its space_bits
};

} // namespace terrace
