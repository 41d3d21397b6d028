#include "storage/path_set.hpp"

#include "index/index_record.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {

using kind = found_path::kind;

constexpr const char* adapt_hint =
    "; disk.on_mismatch = \"adapt\" accepts the paths as they are and keeps their objects";

std::string path_of(size_t index, size_t count) {
  return "path " + std::to_string(index) + " of " + std::to_string(count);
}

class planner {
 public:
  planner(std::span<const std::string> names, std::span<const found_path> found, mismatch_rule rule,
          std::span<const pending_clear> clears)
      : names_(names), found_(found), rule_(rule), clears_(clears) {}

  result<path_set> plan(bool may_lack_paths) {
    path_set set;
    set.kept.resize(found_.size());
    set.left_out.resize(found_.size());
    auto chosen = reference();
    reference_ = chosen.value_or(0);
    std::optional<error> first;
    for (size_t i = 0; i < found_.size(); ++i) {
      verdict of = judge(i, chosen.has_value());
      set.kept[i] = of.belongs;
      if (of.wrong.code == errc::ok)
        continue;
      if (of.misplaced)
        return tl::unexpected(std::move(of.wrong));
      if (!first)
        first = of.wrong;
      set.left_out[i] = std::move(of.wrong);
    }
    if (first && !(may_lack_paths && chosen))
      return tl::unexpected(std::move(*first));
    if (chosen)
      join(set);
    return set;
  }

 private:
  struct verdict {
    bool belongs = false; ///< if not, the path starts empty, or `wrong` is set
    error wrong;
    bool misplaced = false; ///< a path of the volume at the place of another one
  };

  verdict judge(size_t i, bool is_store) const {
    switch (found_[i].state) {
      case kind::blank: return {};
      case kind::unreadable: return {false, found_[i].why};
      case kind::other: return rule_ == mismatch_rule::wipe ? verdict{} : verdict{false, found_[i].why};
      case kind::missing:
        return is_store && rule_ == mismatch_rule::refuse ? verdict{false, missing(i)} : verdict{};
      case kind::volume: break;
    }
    error wrong = mismatch(i, found_[i].block);
    if (wrong.code == errc::ok)
      return {true, {}};
    if (rule_ == mismatch_rule::wipe)
      return {};
    return {false, std::move(wrong), found_[i].block.volume == expected().volume};
  }

  const superblock& expected() const { return found_[reference_].block; }

  /// Returns the path whose volume is opened: the volume with the most paths, and among several the first.
  std::optional<size_t> reference() const {
    std::optional<size_t> best;
    std::ptrdiff_t most = 0;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].state != kind::volume)
        continue;
      auto members = std::count_if(found_.begin(), found_.end(), [&](const found_path& other) {
        return other.state == kind::volume && other.block.volume == found_[i].block.volume;
      });
      if (members > most) {
        best = i;
        most = members;
      }
    }
    return best;
  }

  error missing(size_t i) const {
    return {errc::denied, names_[i] + ": the file does not exist; " + path_of(i, found_.size()) +
                              " of volume " + to_hex(expected().volume) + ", as in " + names_[reference_] +
                              ", was expected. Is its device mounted? If its objects are lost, create an "
                              "empty file here, or use "
                              "disk.on_mismatch = \"adapt\", to start this path over"};
  }

  /// Returns why path `i` cannot be used as it is; `ok` if it can.
  error mismatch(size_t i, const superblock& block) const {
    std::string is = names_[i] + ": this is " + path_of(block.path_index, block.path_count) + " of volume " +
                     to_hex(block.volume);
    if (block.volume != expected().volume)
      return {errc::denied,
              is + "; volume " + to_hex(expected().volume) + ", as in " + names_[reference_] +
                  ", was expected. Choose another path, or wipe this one (`terrace disk wipe`) if "
                  "nothing in it is needed"};
    if (rule_ == mismatch_rule::refuse && block.path_count != found_.size())
      return {errc::denied, is + "; a volume of " + std::to_string(found_.size()) +
                                (found_.size() == 1 ? " path" : " paths") + " was expected" + adapt_hint};
    if (rule_ == mismatch_rule::refuse && block.path_index != i)
      return {errc::denied, is + "; path " + std::to_string(i) +
                                " was expected. Has the order of the paths changed?" + adapt_hint};
    for (size_t before = 0; before < i; ++before)
      if (found_[before].state == kind::volume && found_[before].block.volume == block.volume &&
          found_[before].block.path_index == block.path_index &&
          found_[before].block.path_count == block.path_count)
        return {errc::denied,
                is + ", like " + names_[before] + ". Is it a copy? Wipe one of them (`terrace disk wipe`)"};
    return {};
  }

  void join(path_set& set) const {
    set.volume = expected().volume;
    uint64_t newest = 0;
    for (size_t i = 0; i < found_.size(); ++i)
      if (set.kept[i])
        newest = std::max(newest, found_[i].block.epoch);
    for (const pending_clear& clear : clears_)
      if (clear.concerns(*set.volume) && clear.epoch != 0)
        newest = std::max(newest, clear.epoch - 1);
    if (newest >= epoch_max) { // no generations are left
      std::fill(set.kept.begin(), set.kept.end(), false);
      set.volume.reset();
      return;
    }
    set.epoch = newest + 1;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!set.kept[i])
        continue;
      const superblock& block = found_[i].block;
      set.forgotten_below = std::max(set.forgotten_below, block.forgotten_below);
      for (const space_floor& floor : block.floors)
        add_floor(set, floor);
    }
    for (const pending_clear& clear : clears_) {
      if (!clear.concerns(*set.volume))
        continue;
      uint64_t below = clear.epoch != 0 ? clear.epoch : set.epoch;
      if (clear.space)
        add_floor(set, {*clear.space, below});
      else
        set.forgotten_below = std::max(set.forgotten_below, below);
    }
    if (parted(set)) {
      set.forgotten_below = set.epoch;
      set.floors.clear();
    }
    std::erase_if(set.floors, [&](const space_floor& f) { return f.epoch <= set.forgotten_below; });
    if (set.floors.size() > superblock::floors_max) {
      set.forgotten_below = set.epoch;
      set.floors.clear();
    }
  }

  /// Two paths were each opened without the other. It is then unknown whether an object of one is older than
  /// a clear on the other, because both have counted the same epochs.
  bool parted(const path_set& set) const {
    for (size_t i = 0; i < found_.size(); ++i)
      for (size_t other = 0; other < i; ++other)
        if (set.kept[i] && set.kept[other] && was_without(i, other) && was_without(other, i))
          return true;
    return false;
  }

  bool was_without(size_t i, size_t other) const {
    return (found_[i].block.missing & path_bit(found_[other].block.path_index)) != 0;
  }

  static void add_floor(path_set& set, const space_floor& floor) {
    auto known = std::find_if(set.floors.begin(), set.floors.end(),
                              [&](const space_floor& own) { return own.space == floor.space; });
    if (known == set.floors.end())
      set.floors.push_back(floor);
    else
      known->epoch = std::max(known->epoch, floor.epoch);
  }

  std::span<const std::string> names_;
  std::span<const found_path> found_;
  mismatch_rule rule_;
  std::span<const pending_clear> clears_;
  size_t reference_ = 0;
};

} // namespace

result<path_set> plan_paths(std::span<const std::string> names, std::span<const found_path> found,
                            mismatch_rule rule, bool may_lack_paths, std::span<const pending_clear> clears) {
  assert(names.size() == found.size() && !found.empty());
  return planner(names, found, rule, clears).plan(may_lack_paths);
}

} // namespace terrace
