#include "storage/disk/disk_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace terrace {

void disk_queue::add(disk_request request, reply answer, time_point now) {
  auto owner = std::make_shared<job>();
  owner->request = std::make_shared<const disk_request>(std::move(request));
  owner->answer = std::move(answer);
  owner->queued = now;
  owner->left = owner->request->operations.size();
  owner->result.failed.resize(owner->left);
  owner->parts.assign(owner->left, 1);
  if (owner->left == 0) {
    owner->answer(std::move(owner->result));
    return;
  }
  bool reads = owner->request->direction == disk_direction::read;
  auto& line = line_of(*owner->request);
  for (size_t i = 0, count = owner->left; i < count; ++i) {
    to_read_ += reads ? owner->request->operations[i].bytes : 0;
    line.push(flow_of(owner->request->context), {owner, i, 0, owner->request->operations[i].bytes},
              owner->request->operations[i].bytes);
  }
}

size_t disk_queue::waiting() const {
  size_t count = 0;
  for (const auto& line : lines_)
    count += line.size();
  return count;
}

/// Removes ended requests, and the remaining parts of failed operations, from the heads of their queues.
void disk_queue::drop_ended() {
  for (auto& line : lines_)
    while (part* first = line.front()) {
      const context_ptr& context = first->owner->request->context;
      if ((!context || context->live()) && !first->failed())
        break;
      finish(line.drop(), ECANCELED);
    }
}

std::optional<std::pair<uint64_t, disk_queue::transfer>> disk_queue::next(const io_room& room) {
  drop_ended();
  std::array<uint64_t, io_classes> heads{};
  for (size_t i = 0; i < io_classes; ++i)
    if (const part* first = lines_[i].front())
      heads[i] = first->bytes();
  auto granted = shares_.next(heads, room);
  if (!granted)
    return std::nullopt;
  // The rest of a long operation stays at the front: it is completed before the next one begins, so that its
  // client can go on while the device works for others. If all operations began at once, all would end at
  // once, and the device would then be idle.
  auto& line = lines_[static_cast<size_t>(granted->priority)];
  part head = *line.front();
  head.end = head.begin + granted->bytes;
  line.front()->begin = head.end;
  if (line.front()->bytes() == 0)
    line.pop();
  else
    ++head.owner->parts[head.operation];
  uint64_t tag = slots_.size();
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    tag = free_slots_.back();
    free_slots_.pop_back();
  }
  const disk_request& request = *head.owner->request;
  const disk_operation& operation = request.operations[head.operation];
  transfer out;
  out.direction = request.direction;
  out.priority = granted->priority;
  out.file_offset = operation.file_offset + head.begin;
  out.memory = operation.memory + head.begin;
  out.bytes = static_cast<uint32_t>(granted->bytes);
  out.first = head.begin == 0;
  out.queued = head.owner->queued;
  out.keep_alive = head.owner->request;
  slots_[tag] = {std::move(head), granted->priority, granted->bytes, true, false};
  return std::pair(tag, std::move(out));
}

void disk_queue::completed(uint64_t tag, int32_t result) {
  assert(tag < slots_.size() && slots_[tag].used);
  slot finished = std::move(slots_[tag]);
  slots_[tag] = {};
  free_slots_.push_back(tag);
  if (finished.stalled)
    return;
  shares_.finished(finished.what_class, finished.bytes);
  part& piece = finished.piece;
  if (result == -EAGAIN || result == -EINTR) {
    again(std::move(piece));
    return;
  }
  if (result <= 0) {
    finish(piece, result == 0 ? EIO : -result);
    return;
  }
  piece.begin += static_cast<uint64_t>(result);
  if (piece.owner->request->direction == disk_direction::read)
    to_read_ -= static_cast<uint64_t>(result);
  if (piece.begin < piece.end)
    again(std::move(piece));
  else
    finish(piece, 0);
}

void disk_queue::stalled(uint64_t tag) {
  assert(tag < slots_.size() && slots_[tag].used && !slots_[tag].stalled);
  slot& kept = slots_[tag];
  kept.stalled = true;
  shares_.finished(kept.what_class, kept.bytes);
  finish(std::exchange(kept.piece, {}), ETIMEDOUT);
}

void disk_queue::fail_waiting(disk_direction direction, int error_number) {
  for (size_t i = 0; i < io_classes; ++i) {
    bool writes = static_cast<io_class>(i) == io_class::write;
    if (writes != (direction == disk_direction::write))
      continue;
    for (auto line = std::exchange(lines_[i], fair_queue<part>()); !line.empty();)
      finish(line.drop(), error_number);
  }
}

/// Queues the rest of a transfer that the kernel ended early; its bytes were already charged.
void disk_queue::again(part rest) {
  const disk_request& request = *rest.owner->request;
  line_of(request).push_front(flow_of(request.context), std::move(rest), 0);
}

void disk_queue::finish(const part& piece, int error_number) {
  job& owner = *piece.owner;
  if (owner.request->direction == disk_direction::read)
    to_read_ -= piece.bytes();
  if (!piece.failed())
    owner.result.failed[piece.operation] = error_number;
  if (--owner.parts[piece.operation] == 0 && --owner.left == 0)
    owner.answer(std::move(owner.result));
}

} // namespace terrace
