#include "storage/volume_resize.hpp"

#include "storage/aligned_buffer.hpp"
#include "storage/offline_volume.hpp"
#include "storage/record_block.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_layout.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace terrace {

namespace {

constexpr uint64_t piece_bytes = 4ULL << 20;

class resizing {
 public:
  resizing(volume_device& device, const resize_options& options, volume_inspection is, resize_report report)
      : device_(device), options_(options), is_(std::move(is)), report_(std::move(report)),
        block_(is_.block) {
    report_.moved = {}; // counted when they are moved
  }

  result<void> run(resize_plan plan) {
    plan_ = std::move(plan);
    bool relayout = !(plan_.layout == block_.layout);
    bool new_places = plan_.moved.objects != 0 || plan_.dropped.objects != 0;
    auto steps = {
        step(&resizing::grow,
             plan_.capacity_bytes > is_.file_bytes || plan_.capacity_bytes > block_.capacity_bytes),
        step(&resizing::move_objects, plan_.moved.objects != 0),
        step(&resizing::checkpoint_in_old_layout, relayout || new_places),
        step(&resizing::checkpoint_in_new_layout, relayout),
        step(&resizing::commit, relayout || plan_.capacity_bytes != block_.capacity_bytes),
        step(&resizing::clean_up, relayout),
        step(&resizing::shrink, plan_.capacity_bytes < is_.file_bytes),
    };
    for (const auto& [act, needed] : steps)
      if (needed)
        if (auto done = (this->*act)(); !done)
          return done;
    is_.block = block_;
    is_.file_bytes = plan_.capacity_bytes;
    return {};
  }

  resize_report report() && {
    report_.after = block_;
    return std::move(report_);
  }

 private:
  using action = result<void> (resizing::*)();
  static std::pair<action, bool> step(action act, bool needed) { return {act, needed}; }

  /// From here on the volume has its new capacity in its old layout.
  result<void> grow() {
    if (auto done = device_.resize(plan_.capacity_bytes); !done)
      return done;
    if (auto done = device_.sync(); !done)
      return done;
    block_.capacity_bytes = std::max(block_.capacity_bytes, plan_.capacity_bytes);
    return write_superblocks(device_, block_);
  }

  result<void> move_objects() {
    aligned_buffer buffer(piece_bytes);
    std::vector<placed_object> stay;
    for (const placed_object& one : plan_.objects) {
      if (one.from == one.to) {
        stay.push_back(one);
        continue;
      }
      auto readable = move_object(one, buffer);
      if (!readable)
        return tl::unexpected(readable.error());
      if (*readable) {
        stay.push_back(one);
        report_.moved.add(one.object);
      } else {
        report_.unreadable.add(one.object);
      }
      options_.moved(one.object.physical_bytes);
    }
    plan_.objects = std::move(stay);
    report_.kept = {};
    for (const placed_object& one : plan_.objects)
      report_.kept.add(one.object);
    return device_.sync();
  }

  /// Returns false if the device cannot read the object's bytes.
  result<bool> move_object(const placed_object& one, aligned_buffer& buffer) {
    for (uint64_t done = 0; done < one.object.physical_bytes;) {
      auto piece = buffer.bytes().first(std::min(one.object.physical_bytes - done, buffer.size()));
      if (!device_.read(one.from + done, piece))
        return false;
      if (auto written = device_.write(one.to + done, piece); !written)
        return tl::unexpected(written.error());
      done += piece.size();
    }
    return true;
  }

  /// Writes into the area that the new layout leaves alone; if the last checkpoint lies there, first into the
  /// other area.
  result<void> checkpoint_in_old_layout() {
    uint64_t stays = area_that_stays(block_.layout, plan_.layout);
    is_.found.position.checkpoint_number += 2; // leaves a lower number for the new layout
    do {
      if (auto done = write_checkpoint(); !done)
        return done;
    } while (is_.found.position.checkpoint_number % 2 != stays);
    return {};
  }

  result<void> checkpoint_in_new_layout() {
    uint64_t old_area = block_.layout.checkpoint_area(area_that_stays(block_.layout, plan_.layout));
    needed_ = {old_area, old_area + block_.layout.checkpoint_bytes};
    block_.layout = plan_.layout;
    if (auto done = erase_index(&resizing::outside_of_needed); !done)
      return done;
    // Both layouts may have area 0 at the same place. A reader with the superblock of one layout must prefer the
    // checkpoint of that layout: where the parts shrink, the new checkpoint in area 0 has the lower number.
    if (area_that_stays(is_.block.layout, plan_.layout) == 1)
      is_.found.position.checkpoint_number -= 2;
    return write_checkpoint();
  }

  result<void> commit() {
    block_.capacity_bytes = plan_.capacity_bytes;
    return write_superblocks(device_, block_);
  }

  result<void> clean_up() { return erase_index(&resizing::inside_of_needed); }

  result<void> shrink() {
    if (auto done = device_.resize(plan_.capacity_bytes); !done)
      return done;
    return device_.sync();
  }

  /// Writes a checkpoint of all objects, in the present layout, behind all of the journal. If the area has no room for
  /// all of them, the newest are written: that can happen only in the old layout, whose checkpoint counts for a moment.
  result<void> write_checkpoint() {
    journal_position& position = is_.found.position;
    index_journal journal(block_, {position.next_sequence, position.next_sequence, position.checkpoint_number,
                                   position.next_generation});
    journal.begin_checkpoint();
    std::vector<index_record> part;
    for (const recovered_space& space : is_.found.spaces)
      part.push_back(space_record(space.number, space.fingerprint));
    uint64_t room = records_in_checkpoint(block_.layout);
    room -= std::min<uint64_t>(room, part.size());
    size_t next = plan_.objects.size() - std::min<uint64_t>(plan_.objects.size(), room);
    while (journal.checkpoint_in_progress()) {
      while (journal.wants_image()) {
        for (; next < plan_.objects.size() && part.size() < records_per_part; ++next) {
          part.push_back(plan_.objects[next].object);
          part.back().offset = plan_.objects[next].to - block_.layout.extents_begin;
        }
        journal.add_image(part);
        part.clear();
        if (next == plan_.objects.size())
          journal.end_image();
      }
      if (auto done = do_io(journal); !done)
        return done;
    }
    ++position.checkpoint_number;
    return {};
  }

  result<void> do_io(index_journal& journal) {
    while (auto io = journal.next()) {
      auto done = io->wanted == journal_io::action::sync
                      ? device_.sync()
                      : device_.write(io->file_offset, io->memory->bytes());
      if (!done)
        return done;
      journal.completed(true);
    }
    return {};
  }

  bool inside_of_needed(uint64_t at) const { return at >= needed_.first && at < needed_.second; }
  bool outside_of_needed(uint64_t at) const { return !inside_of_needed(at); }

  /// Zeros the journal and the headers of both checkpoints of the present layout, except that of the one just
  /// written; only blocks for which `also` is true.
  result<void> erase_index(bool (resizing::*also)(uint64_t) const) {
    const volume_layout& layout = block_.layout;
    aligned_buffer zeros(piece_bytes);
    uint64_t end = layout.journal_begin + layout.journal_bytes;
    for (uint64_t at = layout.journal_begin; at < end;) {
      uint64_t run = 0;
      while (at + run < end && run < zeros.size() && (this->*also)(at + run))
        run += record_block_bytes;
      if (auto done = device_.write(at, zeros.bytes().first(run)); !done)
        return done;
      at += std::max(run, record_block_bytes);
    }
    uint64_t other = layout.checkpoint_area(area_that_stays(is_.block.layout, layout));
    if ((this->*also)(other))
      if (auto done = device_.write(other, zeros.bytes().first(record_block_bytes)); !done)
        return done;
    return device_.sync();
  }

  static constexpr size_t records_per_part = 4096;

  volume_device& device_;
  const resize_options& options_;
  volume_inspection is_;
  resize_plan plan_;
  resize_report report_;
  superblock block_; ///< the superblock as it is on disk, or is about to be
  std::pair<uint64_t, uint64_t> needed_;
};

struct planned {
  volume_inspection is;
  std::vector<resize_plan> plans;
  resize_report report;
};

/// Returns the objects at their places after the plan was carried out.
std::vector<index_record> objects_after(const resize_plan& plan) {
  std::vector<index_record> objects;
  objects.reserve(plan.objects.size());
  for (const placed_object& one : plan.objects) {
    objects.push_back(one.object);
    objects.back().offset = one.to - plan.layout.extents_begin;
  }
  return objects;
}

result<planned> make_plan(volume_device& device, uint64_t capacity_bytes, uint64_t objects) {
  capacity_bytes -= capacity_bytes % disk_alignment_bytes;
  if (capacity_bytes < smallest_capacity_bytes || capacity_bytes > INT64_MAX)
    return fail(errc::bad_request,
                "a volume has at least 1 MiB; " + std::to_string(capacity_bytes) + " bytes were requested");
  auto is = inspect(device);
  if (!is)
    return tl::unexpected(is.error());
  planned made{std::move(*is), {}, {}};
  made.report.before = made.is.block;
  superblock block = made.is.block;
  for (const resize_target& target : resize_targets(block, capacity_bytes, objects)) {
    if (objects != 0 && !fits(layout_for(capacity_bytes, objects), capacity_bytes))
      return fail(errc::bad_request,
                  "an index of " + std::to_string(objects) + " objects takes more than a quarter of " +
                      std::to_string(capacity_bytes) + " bytes; name fewer objects, or a larger size");
    if (!fits(target.layout, target.capacity_bytes))
      return fail(errc::unsupported, "the parts of this volume cannot be moved, and do not fit into " +
                                         std::to_string(capacity_bytes) + " bytes; wipe it instead");
    resize_plan plan = plan_places(block, target, made.is.found.objects, made.is.found.spaces.size());
    made.is.found.objects = objects_after(plan);
    block.layout = target.layout;
    block.capacity_bytes = target.capacity_bytes;
    made.report.moved += plan.moved;
    made.report.dropped += plan.dropped;
    made.plans.push_back(std::move(plan));
  }
  for (const index_record& object : std::exchange(made.is.found.objects, {})) // the plans have them now
    made.report.kept.add(object);
  made.report.after = std::move(block);
  return made;
}

} // namespace

result<resize_report> plan_resize(volume_device& device, uint64_t capacity_bytes, uint64_t objects) {
  auto made = make_plan(device, capacity_bytes, objects);
  if (!made)
    return tl::unexpected(made.error());
  return std::move(made->report);
}

result<resize_report> resize_volume(volume_device& device, const resize_options& options) {
  auto made = make_plan(device, options.capacity_bytes, options.objects);
  if (!made)
    return tl::unexpected(made.error());
  const object_sum& dropped = made->report.dropped;
  if (dropped.objects != 0 && !options.drop)
    return fail(errc::no_space,
                std::to_string(dropped.objects) + " of the volume's objects (" +
                    std::to_string(dropped.physical_bytes) + " bytes on disk) do not fit into " +
                    std::to_string(made->report.after.capacity_bytes) +
                    " bytes; nothing was changed. Choose a larger size, or allow dropping the oldest");
  resizing work(device, options, std::move(made->is), std::move(made->report));
  for (resize_plan& plan : made->plans)
    if (auto done = work.run(std::move(plan)); !done)
      return tl::unexpected(done.error());
  return std::move(work).report();
}

namespace {

struct range {
  uint64_t begin = 0;
  uint64_t end = 0;
  friend auto operator<=>(const range&, const range&) = default;
};

/// The free bytes in a window beside sorted ranges; the smallest gap that is large enough is taken first.
class free_gaps {
 public:
  free_gaps(range window, std::vector<range> taken) {
    std::sort(taken.begin(), taken.end());
    uint64_t at = window.begin;
    for (const range& one : taken) {
      add(at, std::min(one.begin, window.end));
      at = std::max(at, one.end);
    }
    add(at, window.end);
  }

  /// Returns nullopt if no gap is large enough.
  std::optional<uint64_t> take(uint64_t bytes) {
    auto gap = gaps_.lower_bound({bytes, 0});
    if (gap == gaps_.end())
      return std::nullopt;
    auto [size, begin] = *gap;
    gaps_.erase(gap);
    add(begin + bytes, begin + size);
    return begin;
  }

 private:
  void add(uint64_t begin, uint64_t end) {
    if (begin < end)
      gaps_.insert({end - begin, begin});
  }

  std::set<std::pair<uint64_t, uint64_t>> gaps_; ///< size, begin
};

bool apart(range a, range b) { return a.end <= b.begin || b.end <= a.begin; }

range area(const volume_layout& layout, uint64_t which) {
  return {layout.checkpoint_area(which), layout.checkpoint_area(which) + layout.checkpoint_bytes};
}

} // namespace

uint64_t records_in_checkpoint(const volume_layout& layout) {
  return (layout.checkpoint_bytes / record_block_bytes - 1) * records_per_block;
}

uint64_t area_that_stays(const volume_layout& before, const volume_layout& after) {
  return after.checkpoint_area(1) >= before.checkpoint_area(1) ? 0 : 1;
}

volume_layout layout_after(const volume_layout& now, uint64_t capacity_bytes, uint64_t objects) {
  volume_layout next = layout_for(capacity_bytes, objects);
  uint64_t stays = area_that_stays(now, next);
  return apart(area(now, stays), area(next, 1 - stays)) ? next : now;
}

std::vector<resize_target> resize_targets(const superblock& block, uint64_t capacity_bytes,
                                          uint64_t objects) {
  volume_layout next = layout_after(block.layout, capacity_bytes, objects);
  if (next.extents_begin < block.layout.extents_begin && capacity_bytes < block.capacity_bytes)
    return {{next, block.capacity_bytes}, {next, capacity_bytes}};
  return {{next, capacity_bytes}};
}

resize_plan plan_places(const superblock& block, const resize_target& target, const ordered_records& objects,
                        size_t spaces) {
  resize_plan plan;
  plan.capacity_bytes = target.capacity_bytes;
  plan.layout = target.layout;
  uint64_t records = records_in_checkpoint(plan.layout);
  uint64_t room = records - std::min<uint64_t>(records, spaces);
  size_t too_many = objects.size() - std::min<uint64_t>(objects.size(), room);

  range window{std::max(block.layout.extents_begin, plan.layout.extents_begin), plan.capacity_bytes};
  auto place = [&](const index_record& object) {
    uint64_t begin = block.layout.extents_begin + object.offset;
    return range{begin, begin + object.physical_bytes};
  };
  auto stays = [&](const range& at) { return at.begin >= window.begin && at.end <= window.end; };
  std::vector<range> taken;
  taken.reserve(objects.size());
  for (const index_record& object : objects)
    taken.push_back(place(object)); // objects that go count too: they live until the new places count
  free_gaps gaps(window, std::move(taken));
  for (size_t i = objects.size(); i-- > 0;) {
    range at = place(objects[i]);
    std::optional<uint64_t> to;
    if (i >= too_many)
      to = stays(at) ? at.begin : gaps.take(objects[i].physical_bytes);
    if (!to) {
      plan.dropped.add(objects[i]);
      continue;
    }
    if (*to != at.begin)
      plan.moved.add(objects[i]);
    plan.objects.push_back({objects[i], at.begin, *to});
  }
  std::reverse(plan.objects.begin(), plan.objects.end());
  return plan;
}

} // namespace terrace
