// The spaces of one trust group, by number.
#pragma once

#include "base/ids.hpp"
#include "index/rank_presence.hpp"
#include "index/space_spec.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

class digest_memo;
class memo_pool;

/// Immutable but for its memo; shared by all users of the space, on any thread. The space is open as long as one of them has it.
struct opened_space {
  space_id id{};
  space_spec spec;
  digest fingerprint;
  std::shared_ptr<rank_presence> ranks = std::make_shared<rank_presence>(spec.world_size);
  std::shared_ptr<digest_memo> memo = nullptr; ///< null: every prompt is hashed
};
using space_ptr = std::shared_ptr<const opened_space>;

/// A space that nobody has open.
struct idle_space {
  space_id id{};
  uint64_t opened = 0; ///< how often it had been opened: if that has changed, somebody may have stored in it
};

/// Numbers begin at 1 and are not reused. A space that is no longer open keeps its number, because residents outlive
/// the clients that stored them, until it is forgotten. Not thread-safe; owned by one actor.
class space_registry {
 public:
  struct options {
    size_t spaces_max = 65'536;
    bool isolated = false;                      ///< of the trust group; see `space_spec::validate`
    std::shared_ptr<memo_pool> memos = nullptr; ///< null: spaces have no memo
  };

  space_registry() : space_registry(options{}) {}
  explicit space_registry(const options& o) : options_(o) {}

  /// Equal specs get the same space. Errors: those of `space_spec::validate`; `busy` at the limit: the caller may
  /// forget idle spaces and try again.
  result<std::shared_ptr<const opened_space>> open(const space_spec& spec);

  /// The number of the space with this fingerprint, open or to be opened. Error: `busy` at the limit.
  result<space_id> reserve(const digest& fingerprint);

  /// Up to `count_max` idle spaces by number, beginning behind those of the previous call, which gives all a turn.
  std::vector<idle_space> idle(size_t count_max);

  /// Forgets those that were not opened since. Their number means nothing from then on: call it only for spaces of
  /// which no tier has an object. Returns those that are forgotten.
  std::vector<space_id> forget(std::span<const idle_space> idle);

  /// nullptr if no open space has this number.
  std::shared_ptr<const opened_space> find(space_id id) const;

  /// The first open spaces by number.
  std::vector<std::shared_ptr<const opened_space>> list(size_t count_max) const;

  /// The number of open spaces.
  size_t size() const;
  /// The number of all spaces that are known, of which `spaces_max` are allowed.
  size_t known() const { return spaces_.size(); }

 private:
  struct entry {
    digest fingerprint;
    std::weak_ptr<const opened_space> open; ///< expired: nobody has it open
    uint64_t opened = 0;
  };
  options options_;
  std::map<space_id, entry> spaces_;
  std::map<digest, space_id> by_fingerprint_;
  uint32_t last_ = 0; ///< the last number
  space_id asked_{};  ///< the last space that `idle` looked at
};

} // namespace terrace
