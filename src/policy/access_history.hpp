// The access history of an entry, and the classes that the survival model uses.
#pragma once

#include "base/access_clock.hpp"
#include "base/eviction_types.hpp"
#include "policy/entry_table.hpp"
#include "policy/survival_model.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// How the request that last accessed an entry ended, as far as the client reports it. These are only inputs
/// to learning, never trusted: if clients that report "closed" return anyway, the model learns that they
/// return.
enum class request_ending : uint8_t {
  untold,
  short_answer,    ///< below 40 tokens
  middling_answer, ///< below 300
  long_answer,
  tool_call,
  closed,
  expected, ///< this value and all higher ones: the client expects the next turn, see `expected_after`
};
constexpr size_t expected_steps = 10;
constexpr size_t request_endings = static_cast<size_t>(request_ending::expected) + expected_steps;

/// The next turn is expected this many seconds after the request began: below 2, below 4, and so on, from 512 on.
request_ending expected_after(uint64_t seconds);

/// Returns the strongest of the endings that the client reports: closed, then expected return, tool call, answer
/// length. `since_begin`: the duration of the request. Ages are counted from its begin, expected times from its end.
request_ending ending_of(const request_outcome& outcome, std::chrono::milliseconds since_begin);

/// Maintains `entry_record::history` and feeds the survival model. Before `start` it only counts accesses.
///
/// A request continues a conversation if the deepest chunk that is already known had at most one successor so
/// far (the client may pass the turn number instead); otherwise it starts a conversation. An entry with which
/// several conversations start is a *trunk*: a system prompt, tool definitions, a document. The class of a
/// trunk is the number of such starts, by powers of two. All other entries are classified by their access
/// count and by the request that accessed them last: how many chunks it added, the pause since the previous
/// turn, and how it ended. Until a request ends, its accesses belong to the pool of all endings.
///
/// Each space is treated as a separate application. One model learns from all spaces, and one model per space
/// falls back on it. Spaces beyond `spaces_max` share models.
class access_history {
 public:
  access_history(entry_table& table, const access_clock& clock) : table_(table), clock_(clock) {}

  void start();
  bool started() const { return model_ != nullptr; }

  /// Call before the accesses of a request are recorded. `chain` has its entries, root first, all in the
  /// table; the first `known` of them existed before it. `turn` is the number given by the client, or 0.
  /// `space`: see request_hints.
  void begin(std::span<const entry_index> chain, size_t known, uint32_t turn, uint32_t space);

  /// Does the same for a chain whose entries come one by one: first call `open`, then `mark` for each entry
  /// before its access. Call `go_on` before each part, with the stamp of the request's accesses.
  struct begun {
    size_t size = 0;        ///< entries of the chain
    size_t known = 0;       ///< of these existed before
    bool continues = false; ///< the request continues a conversation
    uint32_t request = 0;   ///< bits of the history word
    uint32_t space = 0;     ///< bits of the history word
  };
  /// `last_known`: the entry before position `known`; `no_entry` if that is 0.
  begun open(size_t size, size_t known, entry_index last_known, uint32_t turn, uint32_t space);
  void go_on(const begun& request, uint32_t stamp);
  void mark(const begun& request, entry_index at, size_t position);
  /// Entries whose records were alike, so that the models learn of all of them at once.
  struct alike {
    size_t entries = 0;
    uint32_t before = 0; ///< their stamp before the access
  };
  /// Records accesses at `stamp`, by the request that began then, if any, and gives the records that stamp. Ends before
  /// the first entry that is not like the others: call it again for the rest. `entries` is not empty.
  alike use(std::span<const entry_index> entries, uint32_t stamp);
  /// The request that accessed these entries at `stamp` has ended; entries accessed since are skipped.
  void end(std::span<const entry_index> chain, uint32_t stamp, request_ending how);
  void forget(entry_index at);

  /// Returns the number of accesses, at most 4.
  uint32_t uses(entry_index at) const { return table_[at].history & count_mask; }

  /// Returns the value of keeping the entry (survival_model::value). Call only after `start`.
  float value(entry_index at) const {
    uint32_t word = table_[at].history;
    const auto& own = spaces_[word >> space_shift];
    return (own ? *own : *model_).value(class_of(word), clock_.stamp() - table_[at].stamp);
  }
  const survival_model* model() const { return model_.get(); }
  /// Returns the model of one space; null before its first access.
  const survival_model* model_of(uint32_t space) const { return spaces_[space_bits(space)].get(); }
  size_t bytes() const;

  static constexpr uint32_t count_max = 4;
  static constexpr uint32_t spaces_max = 15;

  struct kind {
    uint32_t uses = 1;
    uint32_t starts = 0;                     ///< conversations that start with the entry
    size_t added = 0;                        ///< chunks added by the request that accessed it last
    std::optional<uint32_t> pause_seconds{}; ///< pause before that request, if it continues a conversation
    request_ending how = request_ending::untold;
  };
  static size_t class_for(const kind& usage);

 private:
  // Layout of the word: accesses 3 bits, open 1, successors 2, starts 10, added 2, pause 2, ending 4, trunk
  // 4, space 4. Accesses, added, pause, ending and trunk describe the open access and determine its class.
  static constexpr uint32_t count_mask = 7, open_bit = 8;
  static constexpr int successor_shift = 4, start_shift = 6, request_shift = 16, ending_shift = 20,
                       trunk_shift = 24, space_shift = 28;
  static constexpr uint32_t start_max = 1023, request_mask = 15, ending_mask = 15, trunk_mask = 15;
  static constexpr size_t cells = count_max * (request_mask + 1), trunks = 9,
                          classes = cells * request_endings + trunks;

  static uint32_t request_bits(size_t added, std::optional<uint32_t> pause_seconds);
  static uint32_t trunk_bits(uint32_t starts);
  static uint32_t space_bits(uint32_t space) { return space == 0 ? 0 : 1 + (space - 1) % spaces_max; }
  static size_t class_of(uint32_t word) {
    if (uint32_t trunk = word >> trunk_shift & trunk_mask; trunk != 0)
      return cells * request_endings + trunk - 1;
    return class_at(word & count_mask, word >> request_shift & request_mask,
                    word >> ending_shift & ending_mask);
  }
  static size_t class_at(uint32_t uses, uint32_t request, uint32_t how) {
    return (((uses == 0 ? 1 : uses) - 1) * (request_mask + 1) + request) * request_endings + how;
  }
  /// Applies the event to the common model and to the model of the entry's space.
  template <class Event>
  void update_models(uint32_t word, Event event);
  static survival_model::families families();
  void add_successor(entry_index at);
  void refresh_when_due();

  entry_table& table_;
  const access_clock& clock_;
  std::unique_ptr<survival_model> model_;
  std::array<std::unique_ptr<survival_model>, spaces_max + 1> spaces_; ///< created on first use; 0: no space
  uint32_t requests_ = 0;                                              ///< since the last refresh
  uint32_t uses_ = 0;
  uint32_t begun_ = 0;   ///< stamp of the last request
  uint32_t request_ = 0; ///< its request_bits
  uint32_t space_ = 0;   ///< its space_bits
};

} // namespace terrace
