#include "storage/disk/disk_path.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace terrace {

namespace {

static_assert(metrics::disk_lines.size() == io_classes);

metrics::disk_operation operation_of(disk_direction direction) {
  return direction == disk_direction::read ? metrics::disk_operation::read : metrics::disk_operation::write;
}

metrics::disk_damage kind_of(file_damage damage) {
  return damage == file_damage::deleted       ? metrics::disk_damage::deleted
         : damage == file_damage::replaced    ? metrics::disk_damage::replaced
         : damage == file_damage::overwritten ? metrics::disk_damage::overwritten
                                              : metrics::disk_damage::truncated;
}

int first_error(const std::vector<int>& errors) {
  auto bad = std::find_if(errors.begin(), errors.end(), [](int e) { return e != 0; });
  return bad == errors.end() ? 0 : *bad;
}

} // namespace

disk_path::disk_path(disk_path_arguments with, path_output& output)
    : with_(std::move(with)), output_(output), queue_(with_.limits),
      health_(with_.file->path(), with_.health) {}

void disk_path::add(const disk_request& request, disk_queue::reply answer, time_point now) {
  now_ = now;
  auto admission = health_.admit(request.direction);
  if (!admission.granted) {
    disk_answer refused;
    refused.failure = {errc::busy, "the disk is out of service: " + with_.service->reason(with_.path)};
    answer(std::move(refused));
    return;
  }
  auto answered = [this, answer = std::move(answer), direction = request.direction,
                   trial = admission.trial](disk_answer value) {
    if (trial)
      end_trial(direction, first_error(value.failed));
    value.out_of_service = !health_.healthy(direction);
    answer(std::move(value));
  };
  queue_.add(request, std::move(answered), now);
  submit();
}

void disk_path::submit() {
  while (queue_.waiting() != 0) {
    auto next = queue_.next(room());
    if (!next)
      break;
    auto& [tag, transfer] = *next;
    if (with_.share && with_.share->contended())
      with_.probe->contended(operation_of(transfer.direction));
    if (in_kernel_.size() <= tag)
      in_kernel_.resize(tag + 1);
    in_kernel_[tag] = {transfer.direction, now_};
    health_.started(tag, transfer.direction);
    if (transfer.first)
      with_.probe->waited(static_cast<size_t>(transfer.priority), now_ - transfer.queued);
    with_.probe->started(operation_of(transfer.direction));
    output_.submit(tag, std::move(transfer));
  }
  if (with_.share && queue_.waiting() == 0 && queue_.in_flight() == 0)
    with_.share->idle();
  for (size_t i = 0; i < io_classes; ++i) {
    auto which = static_cast<io_class>(i);
    with_.probe->line(i, queue_.waiting(which), queue_.bytes_in_flight(which));
  }
  tell_meter();
}

void disk_path::tell_meter() {
  if (with_.meter)
    with_.meter->has_to_read(std::exchange(told_to_read_, queue_.bytes_to_read()), queue_.bytes_to_read(),
                             now_);
}

void disk_path::completed(uint64_t tag, int32_t result, time_point now) {
  now_ = now;
  const in_kernel what = in_kernel_[tag];
  bool failed = result <= 0;
  with_.probe->finished(operation_of(what.direction), failed ? 0 : static_cast<uint64_t>(result), failed,
                        now_ - what.at);
  if (health_.ended(tag)) {
    came_back(tag, what.direction);
    return;
  }
  // The health is updated first: the following answers depend on whether the device is in service.
  if (health_.completed(what.direction, result, now_))
    degrade(what.direction);
  if (with_.share)
    with_.share->finished(failed ? 0 : static_cast<uint64_t>(result));
  if (with_.meter && !failed && what.direction == disk_direction::read)
    with_.meter->arrived(static_cast<uint64_t>(result), now_);
  queue_.completed(tag, result);
  if (int error_number = health_.error_of_waiting(what.direction); error_number != 0)
    queue_.fail_waiting(what.direction, error_number);
  submit();
}

// ---- health ----

void disk_path::publish() {
  std::string reason = health_.reason();
  if (std::string file = watched_file_.reason(); !file.empty())
    reason += (reason.empty() ? "" : "; ") + file;
  with_.service->set(with_.path, health_.reads(), health_.writes(), std::move(reason),
                     [this](bool any) { with_.tier_probe->degraded(any); });
}

void disk_path::degrade(disk_direction direction) {
  with_.probe->degraded(operation_of(direction));
  output_.pause(direction, health_.pause(direction));
  publish(); // before the log line, so that status already shows it
  output_.warn("the disk tier is degraded: " + health_.reason(direction));
}

void disk_path::pause_over(disk_direction direction) {
  if (!health_.begin_trial(direction))
    return; // wait until stalled operations end
  if (direction == disk_direction::read)
    output_.read_superblock();
  publish();
}

void disk_path::superblock_read(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both,
                                time_point now) {
  now_ = now;
  const int error_number = error_of_trial(result, both, with_.file->volume(), with_.file->path_index());
  if (error_number == 0)
    watched_file_.begins(true);
  end_trial(disk_direction::read, error_number);
}

void disk_path::end_trial(disk_direction direction, int error_number) {
  bool back = health_.end_trial(direction, error_number, now_);
  if (back)
    watched_file_.clear(); // cleared until the next look
  else
    output_.pause(direction, health_.pause(direction));
  publish();
  if (back)
    output_.warn("the disk tier is back: " + with_.file->path() + " can be " +
                 (direction == disk_direction::read ? "read" : "written") + " again");
}

// ---- stalls ----

void disk_path::tick(time_point now) {
  now_ = now;
  auto told = health_.tick();
  for (uint64_t tag : told)
    stalled(tag);
  if (!told.empty())
    publish();
  submit();
}

/// The operation's request is answered as failed, and nothing new is submitted in that direction; the kernel
/// keeps its memory.
void disk_path::stalled(uint64_t tag) {
  auto direction = in_kernel_[tag].direction;
  with_.probe->stalled(operation_of(direction));
  output_.cancel(tag);
  if (health_.stalled(direction, now_))
    degrade(direction);
  queue_.stalled(tag);
  queue_.fail_waiting(direction, ETIMEDOUT);
}

/// An operation has completed whose request was already answered.
void disk_path::came_back(uint64_t tag, disk_direction direction) {
  with_.probe->unstalled(operation_of(direction));
  queue_.completed(tag, -ETIMEDOUT);
  if (health_.awaits_stalled(direction))
    pause_over(direction);
  publish();
}

void disk_path::journal_stalled(bool hangs, time_point now) {
  now_ = now;
  constexpr auto write = disk_direction::write;
  bool now_degraded = health_.journal_stalled(hangs, now_);
  if (hangs) {
    with_.probe->stalled(metrics::disk_operation::write);
    if (now_degraded)
      degrade(write);
    queue_.fail_waiting(write, ETIMEDOUT);
    submit();
  } else {
    with_.probe->unstalled(metrics::disk_operation::write);
    if (health_.awaits_stalled(write))
      pause_over(write);
  }
  publish();
}

// ---- the file ----

void disk_path::opened(file_attributes attributes) {
  // The file may be cut off by now.
  attributes.bytes = std::max(attributes.bytes, with_.file->capacity_bytes());
  watched_file_ = file_watch(with_.file->path(), attributes);
}

void disk_path::begins(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both) {
  // An error, or a part of it, is for those who wait for data.
  if (result == static_cast<int32_t>(both.size()))
    watched_file_.begins(error_of_trial(result, both, with_.file->volume(), with_.file->path_index()) == 0);
}

void disk_path::looked(int error_number, const file_attributes& seen) {
  with_.probe->looking(false);
  auto news = watched_file_.look(error_number, seen);
  if (news == file_watch::news::none)
    return;
  publish(); // before the log line, so that status already shows it
  if (news == file_watch::news::again)
    return;
  if (watched_file_.now() == file_damage::none) {
    bool back = with_.service->reason(with_.path).empty(); // otherwise its device is out of service
    output_.warn((back ? "the disk tier is back: " : "") + with_.file->path() +
                 " is the file that was opened again");
    return;
  }
  with_.probe->damaged(kind_of(watched_file_.now()));
  output_.warn("the disk tier is degraded: " + watched_file_.reason());
}

} // namespace terrace
