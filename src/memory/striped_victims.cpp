// Chooses the victims that make room on each path: `striped_allocator::choose`.
#include "memory/striped_allocator.hpp"

#include <algorithm>
#include <numeric>

namespace terrace {

/// The state of one call of `choose`.
class striped_allocator::choosing {
 public:
  choosing(striped_allocator& of, std::span<const uint64_t> sizes, std::span<const extent> candidates)
      : of_(of), sizes_(sizes), candidates_(candidates), free_(of.free_of_usable()) {
    for (uint64_t size : sizes)
      needed_ += of.physical_size(size);
  }

  std::optional<std::vector<size_t>> choose() {
    if (sizes_.size() == 1)
      return choose_for_one();
    for (size_t count = enough_bytes();; count = std::min(2 * count, candidates_.size())) {
      take_candidates(count);
      auto turns = of_.turns_;
      if (auto chosen = choose_as(of_.spread(sizes_, potential(), turns)))
        return chosen;
      if (count == candidates_.size())
        return choose_one_by_one();
    }
  }

 private:
  /// Returns the length of the shortest prefix of the list with enough bytes; at least 1 if there is a candidate.
  size_t enough_bytes() const {
    uint64_t bytes = std::accumulate(free_.begin(), free_.end(), uint64_t{0});
    size_t count = 0;
    while (count < candidates_.size() && (count == 0 || bytes < needed_)) {
      if (of_.usable_(of_.map_.path_of(candidates_[count].offset)))
        bytes += candidates_[count].size;
      ++count;
    }
    return count;
  }

  /// Distributes the first `count` candidates among the paths.
  void take_candidates(size_t count) {
    own_.assign(of_.paths_.size(), {});
    index_.assign(of_.paths_.size(), {});
    for (size_t i = 0; i < count; ++i) {
      size_t path = of_.map_.path_of(candidates_[i].offset);
      own_[path].push_back(of_.local(candidates_[i]));
      index_[path].push_back(i);
    }
  }

  std::vector<uint64_t> potential() const {
    auto room = free_;
    for (size_t path = 0; path < room.size(); ++path)
      if (of_.usable_(path))
        for (const extent& e : own_[path])
          room[path] += e.size;
    return room;
  }

  std::optional<std::vector<size_t>> on_path(size_t path, std::span<const uint64_t> sizes) const {
    for (uint64_t size : sizes)
      if (size > of_.paths_[path]->largest_possible())
        return std::nullopt;
    auto chosen = of_.paths_[path]->choose(sizes, own_[path]);
    if (chosen)
      for (size_t& i : *chosen)
        i = index_[path][i];
    return chosen;
  }

  std::optional<std::vector<size_t>> choose_for_one() {
    take_candidates(candidates_.size());
    std::optional<std::vector<size_t>> best;
    for (size_t path = 0; path < of_.paths_.size(); ++path) {
      if (!of_.usable_(path))
        continue;
      auto chosen = on_path(path, sizes_);
      if (!chosen || chosen->empty() || (best && best->back() <= chosen->back()))
        continue;
      best = std::move(chosen);
      of_.chosen_ = {{sizes_[0]}, {path}};
    }
    return best ? std::optional(finish(std::move(*best))) : std::nullopt;
  }

  std::vector<uint64_t> sizes_on(size_t path, const assignment& where) const {
    std::vector<uint64_t> own;
    for (size_t i = 0; i < where.size(); ++i)
      if (where[i] == path)
        own.push_back(sizes_[i]);
    return own;
  }

  std::optional<std::vector<size_t>> choose_as(const assignment& where) {
    std::vector<size_t> all;
    for (size_t path = 0; path < of_.paths_.size(); ++path) {
      auto own = sizes_on(path, where);
      if (own.empty())
        continue;
      auto chosen = of_.usable_(path) ? on_path(path, own) : std::nullopt;
      if (!chosen)
        return std::nullopt;
      all.insert(all.end(), chosen->begin(), chosen->end());
    }
    of_.chosen_ = {{sizes_.begin(), sizes_.end()}, where};
    return finish(std::move(all));
  }

  /// Tries the largest first, each on the first path where it still fits with the others.
  std::optional<std::vector<size_t>> choose_one_by_one() {
    const size_t nowhere = of_.paths_.size();
    std::vector<size_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes_[a] > sizes_[b]; });
    assignment where(sizes_.size(), nowhere);
    for (size_t i : order) {
      for (size_t path = 0; path < nowhere; ++path) {
        where[i] = path;
        if (of_.usable_(path) && on_path(path, sizes_on(path, where)))
          break;
        where[i] = nowhere;
      }
      if (where[i] == nowhere)
        return std::nullopt;
    }
    return choose_as(where);
  }

  /// Candidates on unusable paths are chosen in their turn, too; otherwise the oldest of them would be
  /// proposed forever.
  std::vector<size_t> finish(std::vector<size_t> chosen) const {
    std::sort(chosen.begin(), chosen.end());
    std::vector<size_t> also;
    if (!chosen.empty())
      for (size_t i = 0; i < chosen.back(); ++i)
        if (!of_.usable_(of_.map_.path_of(candidates_[i].offset)))
          also.push_back(i);
    chosen.insert(chosen.end(), also.begin(), also.end());
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  striped_allocator& of_;
  std::span<const uint64_t> sizes_;
  std::span<const extent> candidates_;
  std::vector<uint64_t> free_; ///< by path; 0 if nothing may be placed there
  uint64_t needed_ = 0;
  std::vector<std::vector<extent>> own_;   ///< by path: the candidates on it
  std::vector<std::vector<size_t>> index_; ///< and their indices among all candidates
};

std::optional<std::vector<size_t>> striped_allocator::choose(std::span<const uint64_t> sizes,
                                                             std::span<const extent> candidates) {
  std::vector<extent> taken;
  auto turns = turns_;
  if (sizes.empty() || try_allocate(sizes, taken)) {
    give_back(taken);
    turns_ = std::move(turns);
    note_smallest();
    return std::vector<size_t>{};
  }
  note_smallest();
  return choosing(*this, sizes, candidates).choose();
}

} // namespace terrace
