// The objects of a remote tier on their way: from requests to commands, and from results to answers.
#include "actors/remote/remote_store.hpp"

#include "index/object_header.hpp"
#include "index/payload_checksum.hpp"

#include <cassert>
#include <chrono>

namespace terrace::actors {

using remote::command_result;

std::span<std::byte> remote_store::step::payload() const {
  return {moved().memory + object_header_bytes + part * remote::part_bytes, bytes};
}

caf::result<move_answer> remote_store::on_move(const moved_objects& objects, bool writes) {
  auto reply = make_answer<move_answer>(self_);
  auto promise = reply.promise();
  if (phase_ != phase::ready || objects.objects.empty()) {
    reply.deliver({{}, std::vector(objects.objects.size(), move_outcome::away)});
    return promise;
  }
  auto all = std::make_shared<transfer>();
  all->moved = objects;
  all->writes = writes;
  all->space = with_.plan.names.space_of(objects.space->fingerprint.bytes);
  all->reply = std::move(reply);
  all->outcome.outcomes.assign(objects.objects.size(), move_outcome::done);
  if (writes)
    spaces_[objects.space->id] = all->space;
  const uint64_t before = bytes_to_read_;
  for (size_t i = 0; i < objects.objects.size(); ++i) {
    const moved_object& object = objects.objects[i];
    const uint64_t parts = remote::parts_of(object.place.payload_bytes);
    all->parts_left += parts;
    for (uint32_t part = 0; part < parts; ++part) {
      auto next = std::make_shared<step>();
      next->of = all;
      next->object = i;
      next->part = part;
      next->identity = {.space = all->space,
                        .epoch = object.place.generation,
                        .pool = object.key.pool,
                        .rank = object.key.rank,
                        .chunk = object.key.chunk};
      next->bytes = remote::bytes_of_part(object.place.payload_bytes, part);
      bytes_to_read_ += writes ? 0 : next->bytes;
      (writes ? writes_ : reads_).push_back(std::move(next));
    }
  }
  to_read(before);
  pump();
  return promise;
}

/// What the tier has dropped is removed from the store, or ends with its lifetime if the store is away.
void remote_store::on_changes(const index_changes& changes) {
  for (const index_change& change : changes.changes) {
    auto space = spaces_.find(change.space);
    if (phase_ != phase::ready || change.record.kind != record_kind::remove || space == spaces_.end())
      continue;
    for (uint32_t part = 0; part < remote::parts_of(change.record.payload_bytes); ++part) {
      auto next = std::make_shared<step>();
      next->part = part;
      next->identity = {.space = space->second,
                        .epoch = change.record.generation,
                        .pool = change.record.pool,
                        .rank = change.record.rank,
                        .chunk = change.record.chunk};
      writes_.push_back(std::move(next));
    }
  }
  for (space_id gone : changes.gone)
    spaces_.erase(gone);
  pump();
}

void remote_store::to_read(uint64_t before) const {
  if (before != bytes_to_read_)
    with_.meter->has_to_read(before, bytes_to_read_, std::chrono::steady_clock::now());
}

void remote_store::pump() {
  if (phase_ == phase::ready)
    while (begin_next(reads_) || (reads_.empty() && begin_next(writes_))) {
    }
  send();
  receive();
  watch();
}

bool remote_store::begin_next(std::deque<step_ptr>& from) {
  if (from.empty() || !server_->has_room() || !window_.has_room(from.front()->bytes))
    return false;
  auto next = std::move(from.front());
  from.pop_front();
  if (next->of && next->of->moved.context && !next->of->moved.context->live()) {
    end(*next, move_outcome::away); // nobody waits for it, and the tier keeps what it has
    return true;
  }
  window_.began(next->bytes);
  begin(*next);
  sent_.push_back(std::move(next));
  return true;
}

void remote_store::begin(step& next) {
  auto key = with_.plan.names.key_of(next.identity, next.part);
  if (!next.of)
    server_->erase(0, key);
  else if (next.of->writes)
    write(next);
  else
    server_->read(0, key, next.header, next.payload());
}

void remote_store::write(step& next) {
  const moved_object& object = next.moved();
  const bool whole = next.bytes == object.place.payload_bytes;
  remote::encode({.identity = next.identity,
                  .generation = object.place.generation,
                  .payload_bytes = object.place.payload_bytes,
                  .part = next.part,
                  .checksum = whole && object.checksum ? *object.checksum : payload_checksum(next.payload())},
                 next.header);
  server_->write(0, with_.plan.names.key_of(next.identity, next.part), next.header, next.payload(), next.of,
                 with_.plan.lifetime);
}

void remote_store::finish(const remote::finished_command& finished) {
  assert(!sent_.empty());
  auto done = std::move(sent_.front());
  sent_.pop_front();
  window_.succeeded(done->bytes);
  if (finished.result == command_result::refused)
    with_.service->set_notice(finished.why.text);
  if (done->reads())
    return finish_read(*done, finished);
  if (!done->of)
    return;
  end(*done, finished.result == command_result::done ? move_outcome::done : move_outcome::failed);
}

void remote_store::finish_read(step& done, const remote::finished_command& finished) {
  if (finished.result == command_result::refused)
    return end(done, move_outcome::away);
  if (finished.result != command_result::done)
    return end(done, move_outcome::failed);
  with_.meter->arrived(done.bytes, std::chrono::steady_clock::now());
  const object_place& place = done.moved().place;
  auto verified = remote::verify(done.header, done.payload(),
                                 {.identity = done.identity,
                                  .payload_bytes = place.payload_bytes,
                                  .part = done.part,
                                  .generation = place.generation});
  if (!verified) {
    ++refused_values_;
    with_.service->set_notice(std::to_string(refused_values_) +
                              " values were not as they were written; the last: " + verified.error().text);
  }
  end(done, verified ? move_outcome::done : move_outcome::failed);
}

/// An object is `done` if all its parts are, and `failed` if one is.
void remote_store::end(step& ended, move_outcome outcome) {
  if (!ended.of)
    return;
  transfer& of = *ended.of;
  auto& sum = of.outcome.outcomes[ended.object];
  if (sum == move_outcome::done || outcome == move_outcome::failed)
    sum = outcome == move_outcome::done ? sum : outcome;
  if (!of.writes) {
    const uint64_t before = bytes_to_read_;
    bytes_to_read_ -= ended.bytes;
    to_read(before);
  }
  if (--of.parts_left == 0)
    of.reply.deliver(std::move(of.outcome));
}

} // namespace terrace::actors
