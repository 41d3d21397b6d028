// The spaces of one trust group, by number.
#pragma once

#include "base/ids.hpp"
#include "index/space_spec.hpp"

#include <map>
#include <memory>
#include <vector>

namespace terrace {

/// Immutable; shared by all users of the space, on any thread.
struct opened_space {
  space_id id{};
  space_spec spec;
  digest fingerprint;
};
using space_ptr = std::shared_ptr<const opened_space>;

/// Numbers begin at 1 and are not reused. Spaces stay open until the daemon ends, because residents outlive
/// the clients that stored them. Not thread-safe; owned by one actor.
class space_registry {
 public:
  struct options {
    size_t spaces_max = 4'096;
    bool isolated = false; ///< of the trust group; see `space_spec::validate`
  };

  space_registry() : space_registry(options{}) {}
  explicit space_registry(const options& o) : options_(o) {}

  /// Equal specs get the same space. Errors: those of `space_spec::validate`; `busy` at the limit.
  result<std::shared_ptr<const opened_space>> open(const space_spec& spec);

  /// The number of the space with this fingerprint, open or to be opened. Error: `busy` at the limit.
  result<space_id> reserve(const digest& fingerprint);

  /// nullptr if no open space has this number.
  std::shared_ptr<const opened_space> find(space_id id) const;

  /// The first open spaces by number.
  std::vector<std::shared_ptr<const opened_space>> list(size_t count_max) const;

  /// The number of open spaces.
  size_t size() const { return open_; }

 private:
  options options_;
  std::vector<std::shared_ptr<const opened_space>> spaces_; ///< element i has number i + 1; null: reserved
  size_t open_ = 0;
  std::map<digest, size_t> by_fingerprint_;
};

} // namespace terrace
