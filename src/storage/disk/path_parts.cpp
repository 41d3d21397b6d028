#include "storage/disk/path_parts.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <cerrno>
#include <span>

namespace terrace {

path_parts::path_parts(const disk_paths& paths, disk_direction direction, const moved_objects& moved)
    : direction_(direction), parts_(paths.size()), index_(paths.size()), failed_(moved.objects.size()),
      away_(moved.objects.size()) {
  for (size_t i = 0; i < moved.objects.size(); ++i) {
    const moved_object& object = moved.objects[i];
    auto at = paths.locate(object.place.offset);
    parts_[at.path].operations.push_back(
        {at.file_offset, object.memory, physical_bytes_for(object.place.payload_bytes)});
    index_[at.path].push_back(i);
  }
  for (disk_request& part : parts_) {
    part.direction = direction;
    part.context = moved.context;
    if (moved.context && moved.context->ahead)
      part.urgency = io_class::prefetch;
    part.owners = moved.owners;
  }
}

std::vector<size_t> path_parts::paths() const {
  std::vector<size_t> with_part;
  for (size_t path = 0; path < index_.size(); ++path)
    if (!index_[path].empty())
      with_part.push_back(path);
  return with_part;
}

void path_parts::add(size_t path, const disk_answer& answer) {
  bool refused = answer.failure.code == errc::busy;
  if (answer.failure.code != errc::ok && !refused)
    failure_ = answer.failure;
  for (size_t n = 0; n < index_[path].size(); ++n) {
    int failed = refused ? EBUSY : answer.failure.code != errc::ok ? EIO : answer.failed[n];
    failed_[index_[path][n]] = failed;
    away_[index_[path][n]] = refused || (failed != 0 && answer.out_of_service);
  }
}

namespace {

move_outcome outcome_of_read(int failed, bool away) {
  if (failed == 0)
    return move_outcome::done;
  if (failed == ETIMEDOUT)
    return move_outcome::stalled;
  return away ? move_outcome::away : move_outcome::failed;
}

move_outcome outcome_of_write(int failed) {
  if (failed == 0)
    return move_outcome::done;
  if (failed == ETIMEDOUT)
    return move_outcome::stalled;
  return failed == EBUSY ? move_outcome::away : move_outcome::failed;
}

sealed_object sealed(const moved_object& object) {
  return {object.key,
          object.place.generation,
          object.memory,
          object.place.payload_bytes,
          physical_bytes_for(object.place.payload_bytes),
          object.checksum};
}

} // namespace

move_answer path_parts::outcome() const {
  move_answer moved;
  bool reads = direction_ == disk_direction::read;
  if (reads)
    moved.failure = failure_;
  for (size_t i = 0; i < failed_.size(); ++i)
    moved.outcomes.push_back(reads ? outcome_of_read(failed_[i], away_[i]) : outcome_of_write(failed_[i]));
  return moved;
}

seal_request seal_of(const write_request& request, const volume_id& volume, bool& known) {
  seal_request headers;
  headers.space = request.space;
  headers.volume = volume;
  headers.owners = request.owners;
  known = true;
  for (const moved_object& object : request.objects) {
    headers.objects.push_back(sealed(object));
    known = known && object.checksum.has_value();
  }
  return headers;
}

check_request check_of(const read_request& request, const volume_id& volume, const move_answer& read,
                       std::vector<size_t>& checked) {
  check_request check;
  check.space = request.space;
  check.volume = volume;
  check.owners = request.owners;
  for (size_t i = 0; i < request.objects.size(); ++i)
    if (read.outcomes[i] == move_outcome::done) {
      checked.push_back(i);
      check.objects.push_back(sealed(request.objects[i]));
    }
  return check;
}

void apply(const check_answer& found, const std::vector<size_t>& checked, move_answer& read) {
  for (size_t n = 0; n < checked.size(); ++n)
    if (!found.good[n])
      read.outcomes[checked[n]] = move_outcome::failed;
}

std::vector<size_t> not_good(const check_answer& found, const std::vector<size_t>& checked) {
  std::vector<size_t> bad;
  for (size_t n = 0; n < checked.size(); ++n)
    if (!found.good[n])
      bad.push_back(checked[n]);
  return bad;
}

bool is_superseded(const moved_object& object) {
  auto header = decode(std::span<const std::byte, object_header_bytes>(object.memory, object_header_bytes));
  return header && header->identity.generation != object.place.generation;
}

std::vector<index_changes> divide(const index_changes& changes, const path_map& paths) {
  std::vector<index_changes> own(paths.paths());
  if (own.size() == 1) {
    own.front() = changes;
    return own;
  }
  for (const index_change& change : changes.changes)
    own[paths.path_of(change.record.offset)].changes.push_back(change);
  for (index_changes& part : own) {
    if (!part.changes.empty())
      part.space = changes.space;
    part.gone = changes.gone;
  }
  return own;
}

forget_answer sum_of(const std::vector<forget_answer>& answers, const volume_id& volume, bool left_out) {
  forget_answer sum;
  sum.failure = failures_of(answers);
  for (const forget_answer& one : answers)
    sum.epoch = std::max(sum.epoch, one.epoch);
  if (left_out || sum.failure.code != errc::ok)
    sum.missed = volume;
  return sum;
}

} // namespace terrace
