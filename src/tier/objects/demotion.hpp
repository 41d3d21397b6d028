// Objects on their way to the tiers below: divides them into batches, and tells when their writing is over.
//
// Pure: the tier's actor sends the batches and passes on the answers. Used by one thread at a time.
#pragma once

#include "base/object_key.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// An object of a tier, with the facts that another tier needs about it.
struct demoted_object {
  object_key key;
  entry_key parent;
  object_place place;
  bool trailing = false;
};

/// Objects of one space that are written together, ancestors first.
struct demotion_batch {
  /// A write that stalls keeps the memory of its whole batch.
  static constexpr size_t objects_max = 64;

  space_id space{};
  batch_ptr objects;
  std::vector<object_place> places; ///< parallel to the objects
};

/// Divides the objects in the given order, which is that of their chains. With `by_chain`, unrelated objects are in
/// different batches, because after one that is not admitted the rest of its batch is not admitted either. `bytes_max`
/// bounds a batch, unless it is a single object; space is taken for the whole batch or not at all.
std::vector<demotion_batch> batches_of(const std::vector<demoted_object>& objects, bool by_chain,
                                       uint64_t bytes_max = UINT64_MAX);

/// One demotion: for each batch it waits for the answers of the tiers below, and for the end of the hold. If
/// a device has stalled, it does not wait for the hold, because the device may hold the memory for long.
class demotion {
 public:
  /// `tiers` is the number of tiers to which each batch is written.
  demotion(const std::vector<demotion_batch>& batches, size_t tiers);

  void answered(size_t batch, const demote_answer& answer);
  void released(size_t batch);
  bool over() const { return waiting_ == 0; }

  /// The sum of all batches and tiers.
  const demotion_counts& tally() const { return tally_; }
  /// Objects whose memory may still be read when the demotion is over.
  std::vector<object_id> in_use() const;
  /// The objects of batches that were not written completely.
  const std::vector<object_id>& not_written() const { return not_written_; }

 private:
  struct part {
    std::vector<object_id> ids;
    size_t unanswered = 0;
    bool stalled = false;
    bool held = true;
    bool waits() const { return unanswered != 0 || (held && !stalled); }
  };
  template <class Change>
  void change(size_t batch, Change&& apply);

  std::vector<part> parts_;
  size_t waiting_ = 0; ///< answers and holds for which it waits
  demotion_counts tally_;
  std::vector<object_id> not_written_;
  /// Holds in the tiers below: objects that come first must not make room for the rest.
  std::vector<hold_ptr> arrived_;
};

} // namespace terrace
