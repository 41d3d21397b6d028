#include "actors/disk_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace terrace::actors {

void disk_queue::add(disk_request request, reply answer) {
  auto owner = std::make_shared<job>();
  owner->request = std::make_shared<const disk_request>(std::move(request));
  owner->answer = std::move(answer);
  owner->left = owner->request->operations.size();
  owner->result.failed.resize(owner->left);
  if (owner->left == 0) {
    owner->answer(std::move(owner->result));
    return;
  }
  auto& line = line_of(owner->request->direction);
  for (size_t i = 0; i < owner->left; ++i)
    line.push_back({owner, i, 0});
}

std::optional<std::pair<uint64_t, disk_queue::transfer>> disk_queue::next() {
  for (;;) {
    if (in_flight_ >= limits_.depth)
      return std::nullopt;
    bool write_is_due = reads_.empty() || reads_in_row_ >= limits_.reads_before_write;
    auto& line = !writes_.empty() && write_is_due ? writes_ : reads_;
    if (line.empty())
      return std::nullopt;
    part& head = line.front();
    const disk_request& request = *head.owner->request;
    if (request.context && !request.context->live()) {
      part ended = std::move(head);
      line.pop_front();
      finish(ended, ECANCELED);
      continue;
    }
    const disk_operation& operation = request.operations[head.operation];
    uint64_t bytes = std::min(operation.bytes - head.done, limits_.operation_bytes_max);
    if (in_flight_ != 0 && bytes_ + bytes > limits_.bytes_in_flight)
      return std::nullopt;
    uint64_t tag = slots_.size();
    if (free_slots_.empty()) {
      slots_.emplace_back();
    } else {
      tag = free_slots_.back();
      free_slots_.pop_back();
    }
    transfer out{request.direction, operation.file_offset + head.done, operation.memory + head.done,
                 static_cast<uint32_t>(bytes), head.owner->request};
    reads_in_row_ = request.direction == disk_direction::read ? reads_in_row_ + 1 : 0;
    slots_[tag] = {std::move(head), static_cast<uint32_t>(bytes), true};
    line.pop_front();
    ++in_flight_;
    bytes_ += bytes;
    return std::pair(tag, std::move(out));
  }
}

void disk_queue::completed(uint64_t tag, int32_t result) {
  assert(tag < slots_.size() && slots_[tag].used);
  slot finished = std::move(slots_[tag]);
  slots_[tag] = {};
  free_slots_.push_back(tag);
  --in_flight_;
  bytes_ -= finished.bytes;
  part& what = finished.what;
  const disk_request& request = *what.owner->request;
  if (result == -EAGAIN || result == -EINTR) {
    line_of(request.direction).push_front(std::move(what));
    return;
  }
  if (result <= 0) {
    finish(what, result == 0 ? EIO : -result);
    return;
  }
  what.done += static_cast<uint64_t>(result);
  if (what.done < request.operations[what.operation].bytes)
    line_of(request.direction).push_front(std::move(what));
  else
    finish(what, 0);
}

void disk_queue::finish(const part& what, int error_number) {
  job& owner = *what.owner;
  owner.result.failed[what.operation] = error_number;
  if (--owner.left == 0)
    owner.answer(std::move(owner.result));
}

} // namespace terrace::actors
