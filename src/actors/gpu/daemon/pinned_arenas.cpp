#include "actors/gpu/daemon/pinned_arenas.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace::gpu {

void pinned_arenas::add(std::shared_ptr<const arena> memory) {
  const std::byte* begin = memory->data();
  segment& made = segments_[begin];
  assert(!made.memory); // an address has one segment at a time
  made.memory = std::move(memory);
}

void pinned_arenas::remove(const std::byte* begin, std::function<void()> then) {
  auto found = segments_.find(begin);
  if (found == segments_.end()) {
    then();
    return;
  }
  segment& leaves = found->second;
  assert(!leaves.leaving); // a segment is removed once
  leaves.leaving = std::move(then);
  finish_removals();
}

std::optional<pinned_arenas::place> pinned_arenas::find(const std::byte* at) const {
  if (!serves_)
    return std::nullopt;
  auto after = segments_.upper_bound(at);
  if (after == segments_.begin())
    return std::nullopt;
  const auto& [begin, in] = *std::prev(after);
  auto offset = static_cast<uint64_t>(at - begin);
  uint64_t piece = offset / piece_bytes_;
  if (in.leaving || offset >= in.memory->size() || piece >= in.pieces.size())
    return std::nullopt;
  uint64_t end = std::min(in.memory->size(), (piece + 1) * piece_bytes_);
  return place{in.pieces[piece], offset - piece * piece_bytes_, end - offset, begin};
}

uint64_t pinned_arenas::use(const std::byte* begin, std::vector<keep_alive> owners) {
  ++segments_.at(begin).users;
  users_[next_user_] = {begin, std::move(owners)};
  return next_user_++;
}

void pinned_arenas::end_use(uint64_t number) {
  auto ended = users_.extract(number);
  segment& used = segments_.at(ended.mapped().segment);
  assert(used.users != 0); // `end_use` is called once per `use`
  --used.users;
  finish_removals();
}

void pinned_arenas::serve() {
  assert(!serves_ && !under_way_); // one process at a time
  serves_ = true;
  refused_ = false;
}

void pinned_arenas::lose() {
  serves_ = false;
  under_way_.reset();
  for (auto& [number, each] : users_) {
    quarantine_.insert(quarantine_.end(), each.owners.begin(), each.owners.end());
    each.owners.clear();
  }
}

void pinned_arenas::ended() {
  lose();
  for (auto& [begin, each] : segments_) {
    each.mapped = 0;
    each.pieces.clear();
  }
  pinned_bytes_ = 0;
  quarantine_.clear();
  finish_removals();
}

/// Removals go before additions.
std::optional<pinned_arenas::step> pinned_arenas::next(uint64_t id) {
  if (!serves_ || under_way_)
    return std::nullopt;
  for (bool removed : {true, false})
    for (auto& [begin, each] : segments_) {
      if (static_cast<bool>(each.leaving) != removed)
        continue;
      under_way_ = step_of(each, id);
      if (under_way_) {
        stepping_ = begin;
        return under_way_;
      }
    }
  return std::nullopt;
}

std::optional<pinned_arenas::step> pinned_arenas::step_of(segment& each, uint64_t id) {
  step made;
  if (each.leaving) {
    if (each.users != 0 || (each.mapped == 0 && each.pieces.empty()))
      return std::nullopt;
    made.what = step::kind::forget;
    made.region = each.pieces.empty() ? each.mapped : each.pieces.back();
    return made;
  }
  uint64_t pinned = each.pieces.size() * piece_bytes_;
  if (refused_ || pinned >= each.memory->size())
    return std::nullopt;
  made.region = id;
  if (each.mapped == 0) {
    made.what = step::kind::map;
    made.bytes = each.memory->size();
    made.segment = each.memory;
    return made;
  }
  made.what = step::kind::pin;
  made.mapped = each.mapped;
  made.offset = pinned;
  made.bytes = std::min(piece_bytes_, each.memory->size() - pinned);
  return made;
}

void pinned_arenas::done(const error& failure) {
  if (!under_way_)
    return; // the copy was of a process that is lost
  auto over = *std::exchange(under_way_, std::nullopt);
  segment& memory = segments_.at(stepping_);
  if (over.what == step::kind::forget) {
    if (memory.pieces.empty()) {
      memory.mapped = 0;
    } else {
      pinned_bytes_ -=
          std::min(piece_bytes_, memory.memory->size() - (memory.pieces.size() - 1) * piece_bytes_);
      memory.pieces.pop_back();
    }
  } else if (failure.code != errc::ok) {
    refused_ = true;
  } else if (over.what == step::kind::map) {
    memory.mapped = over.region;
  } else {
    memory.pieces.push_back(over.region);
    pinned_bytes_ += over.bytes;
  }
  finish_removals();
}

void pinned_arenas::finish_removals() {
  std::vector<std::function<void()>> over;
  for (auto each = segments_.begin(); each != segments_.end();) {
    bool stepped = under_way_ && stepping_ == each->first;
    if (stepped || !is_over(each->second)) {
      ++each;
      continue;
    }
    over.push_back(std::move(each->second.leaving));
    each = segments_.erase(each);
  }
  for (const auto& tell : over)
    tell();
}

} // namespace terrace::gpu
