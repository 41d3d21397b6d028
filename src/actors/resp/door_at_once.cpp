// Batches that need no answer from another actor: commands that need no cache, and small values in host
// memory.
#include "actors/resp/door_connection.hpp"

#include <caf/send.hpp>

#include <cassert>

namespace terrace::actors {

bool door_connection::serve_at_once(const door_batch& batch) {
  switch (batch.what) {
    case door_batch::work::none:
      for (const item& one : batch.items)
        reply_item(one, {});
      return true;
    case door_batch::work::read: return read_at_once(batch);
    default: return false;
  }
}

/// Reads the values; the tier is told of the use afterwards.
bool door_connection::read_at_once(const door_batch& batch) {
  if (told_ == told_max)
    return false;
  const tier_handle& host = environment_.group->tiers().front();
  std::vector<uint32_t> copies(batch.objects->size(), 0);
  for (const item& one : batch.items)
    if (one.what == item::kind::value || one.what == item::kind::element)
      ++copies[one.key];
  if (!small_.read(*host.index, *environment_.group->memory, batch.objects->keys, copies))
    return false;
  for (const item& one : batch.items) {
    if (one.what == item::kind::count)
      ++sum_;
    else if (one.what == item::kind::value || one.what == item::kind::element) {
      door_->probe->found(small_.of(one.key).size());
      resp::append_value(replies_.text(), small_.of(one.key));
    } else {
      reply_item(one, {});
    }
  }
  host.probe->hit(small_.ids().size());
  assert(told_ < told_max);
  ++told_;
  self_->send(host.tier, access_notice{small_.ids()});
  return true;
}

} // namespace terrace::actors
