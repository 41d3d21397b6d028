#include "policy/entry_table.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

entry_table::entry_table() { heads_.reach(1); }

size_t entry_table::bucket_of(entry_key key) const {
  // Keys of the daemon are well mixed; those of a trace may be small numbers.
  uint64_t hash = detail::mix64(key.low ^ key.high * 0x9e3779b97f4a7c15ULL);
  size_t bucket = hash & (2 * round_ - 1);
  return bucket < buckets_ ? bucket : bucket - round_;
}

entry_index entry_table::find(entry_key key) const {
  for (entry_index at = heads_[bucket_of(key)] - 1; at != no_entry; at = records_[at].next)
    if (records_[at].key == key)
      return at;
  return no_entry;
}

entry_index entry_table::find_near(entry_key key, entry_index near) const {
  // A caller may ask for the same entry twice, or walk the chain from its end.
  for (entry_index at : {near, near - 1, near + 1})
    if (at < end_ && records_[at].key == key && !key.empty())
      return at;
  return find(key);
}

void entry_table::fetch(std::span<const entry_key> keys) const {
  constexpr size_t together = 32;
  entry_index open[together]; // the chains that have not ended
  for (; !keys.empty(); keys = keys.subspan(std::min(together, keys.size()))) {
    auto some = keys.first(std::min(together, keys.size()));
    for (entry_key key : some)
      __builtin_prefetch(&heads_[bucket_of(key)]);
    size_t left = 0;
    auto go_on = [&](entry_index at) {
      if (at == no_entry)
        return;
      __builtin_prefetch(&records_[at]);
      open[left++] = at;
    };
    for (entry_key key : some)
      go_on(heads_[bucket_of(key)] - 1);
    while (left != 0) {
      size_t before = std::exchange(left, 0);
      for (size_t i = 0; i < before; ++i)
        go_on(records_[open[i]].next);
    }
  }
}

entry_index entry_table::add(entry_key key) {
  entry_index at = free_;
  if (at == no_entry) {
    at = end_++;
    records_.reach(end_);
  } else {
    free_ = records_[at].next;
  }
  if (++size_ > buckets_ * entries_per_bucket)
    add_bucket();
  entry_index& head = heads_[bucket_of(key)];
  records_[at] = {.key = key, .next = head - 1};
  head = at + 1;
  return at;
}

bool entry_table::reserve(size_t entries, size_t buckets_max) {
  for (; entries > buckets_ * entries_per_bucket; --buckets_max) {
    if (buckets_max == 0)
      return true;
    add_bucket();
  }
  return false;
}

void entry_table::remove(entry_index at) {
  entry_index& head = heads_[bucket_of(records_[at].key)];
  if (head - 1 == at) {
    head = records_[at].next + 1;
  } else {
    entry_index before = head - 1;
    while (records_[before].next != at)
      before = records_[before].next;
    records_[before].next = records_[at].next;
  }
  records_[at] = {.key = {}, .next = free_};
  free_ = at;
  --size_;
}

void entry_table::add_bucket() {
  size_t from = buckets_ - round_;
  heads_.reach(++buckets_);
  entry_index all = heads_[from] - 1;
  heads_[from] = 0;
  heads_[buckets_ - 1] = 0;
  while (all != no_entry) {
    entry_index at = all;
    all = records_[at].next;
    entry_index& head = heads_[bucket_of(records_[at].key)];
    records_[at].next = head - 1;
    head = at + 1;
  }
  if (buckets_ == 2 * round_)
    round_ = buckets_;
}

} // namespace terrace
