// Objects that are removed in favor of others with the same keys, or because their keys are to be free.
#include "tier/objects/residency.hpp"

namespace terrace {

residency::removal residency::remove(const object_batch& objects, bool written) {
  removal done;
  done.removed.resize(objects.size());
  std::vector<object_id> published, reserved;
  for (size_t i = 0; i < objects.size(); ++i) {
    auto id = residents().find(objects.keys[i]);
    if (!id)
      continue;
    done.removed[i] = readable(residents().get(*id)->state());
    (done.removed[i] ? published : reserved).push_back(*id);
  }
  if (written)
    detach(reserved);
  done.pending = !written && !reserved.empty();
  done.of = discard(published, discard_reason::unusable); // a store that others share keeps its own
  return done;
}

/// True if the object is present but unreachable, or is to be replaced.
bool residency::to_replace(const acquire_request& request, const resident& object) const {
  return out_of_reach(object) || (request.replace && readable(object.state()));
}

/// Removes objects in favor of what is written instead.
residency::discard_result residency::drop_replaced(const acquire_request& request,
                                                   const std::vector<size_t>& wanted) {
  std::vector<object_id> ids;
  for (size_t i : wanted)
    if (auto id = residents().find(request.objects->keys[i]);
        id && to_replace(request, *residents().get(*id)))
      ids.push_back(*id);
  return discard(ids, request.replace ? discard_reason::unwanted : discard_reason::unusable);
}

} // namespace terrace
