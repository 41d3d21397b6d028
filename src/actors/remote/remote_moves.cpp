// The objects of a remote tier on their way: from requests to commands, and from results to answers.
#include "actors/remote/remote_store.hpp"
#include "actors/resp/value_transfer.hpp"
#include "base/object_key.hpp"
#include "base/printable.hpp"
#include "index/object_header.hpp"
#include "index/payload_checksum.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace terrace::actors {

using remote::command_result;

std::span<std::byte> remote_store::step::payload() const {
  return {moved().memory + object_header_bytes + begin, bytes};
}

std::span<std::byte> remote_store::step::to_write() const {
  return changed ? std::span(changed.get(), stored) : payload();
}

std::string remote_store::key_of(const step& of) const {
  return (of.own ? own_names_ : with_.plan.names).key_of(of.identity, of.part);
}

remote_store::node* remote_store::node_of(const step& of) const {
  return node_of(in_cluster() ? key_of(of) : std::string());
}

/// Where a payload is read: where the fewest bytes are under way, at the primary only if that has fewer than each of its replicas. So the primary,
/// which answers all else, reads what the replicas have no room for; and a replica whose primary is lost is read alone.
remote_store::node* remote_store::reader_of(const step& of) const {
  node* primary = node_of(of);
  if (primary == nullptr)
    return nullptr;
  node* best = nullptr;
  for (node* each : primary->replicas)
    if (each->ready() && (best == nullptr || each->reads.bytes_under_way() < best->reads.bytes_under_way()))
      best = each;
  const bool by_primary = best == nullptr || (primary->ready() && primary->reads.bytes_under_way() <
                                                                      best->reads.bytes_under_way());
  return by_primary ? primary : best;
}

caf::result<move_answer> remote_store::on_move(const moved_objects& objects, bool writes) {
  auto reply = make_answer<move_answer>(self_);
  auto promise = reply.promise();
  if (!serving() || objects.objects.empty()) {
    reply.deliver({{}, std::vector(objects.objects.size(), move_outcome::away)});
    return promise;
  }
  auto all = std::make_shared<transfer>();
  all->moved = objects;
  all->writes = writes;
  all->space = space_of(objects.space->id, objects.space->fingerprint.bytes,
                        resp::is_value_space(objects.space->spec));
  all->reply = std::move(reply);
  all->outcome.outcomes.assign(objects.objects.size(), move_outcome::done);
  all->generations.resize(objects.objects.size());
  all->parts_left_of.resize(objects.objects.size());
  const uint64_t number = next_task_++;
  run(move(std::move(all), number), number);
  pump();
  return promise;
}

/// Learns the space, and what the store has already of what is to be written there.
task<> remote_store::move(transfer_ptr all, uint64_t number) {
  space_state_ptr space = all->space;
  auto learnt = co_await learn_space(space, nullptr);
  if (learnt && all->writes && !space->own) {
    object_batch objects;
    for (const moved_object& each : all->moved.objects) {
      objects.keys.push_back(each.key);
      objects.payload_bytes.push_back(each.place.payload_bytes);
    }
    auto known = believed(*space, objects);
    auto asked = ask_unknown(known, objects);
    if (asked) {
      task_event& done = asked->done;
      co_await done;
    }
    learnt = co_await learn_space(space, nullptr);
    for (size_t i = 0; i < objects.size(); ++i)
      if (known->removed[i])
        all->outcome.outcomes[i] = move_outcome::failed;
  }
  if (serving() && learnt) {
    all->epoch = space->own ? 0 : epoch_of(*space);
    begin_steps(all);
  } else {
    all->reply.deliver({{}, std::vector(all->moved.objects.size(), move_outcome::away)});
  }
  ended(number);
}

remote::remote_identity remote_store::identity_of(const transfer& of, size_t object) const {
  const moved_object& moved = of.moved.objects[object];
  return named({.space = of.space->name,
                .epoch = of.space->own ? moved.place.generation : of.epoch,
                .pool = moved.key.pool,
                .rank = moved.key.rank,
                .chunk = moved.key.chunk});
}

void remote_store::begin_steps(const transfer_ptr& all) {
  const uint64_t before = bytes_to_read_;
  const auto now = std::chrono::steady_clock::now();
  std::vector<step_ptr> lost; // their node is away
  for (size_t i = 0; i < all->moved.objects.size(); ++i) {
    const object_place& place = all->moved.objects[i].place;
    const auto identity = identity_of(*all, i);
    if (all->writes && terrace::epoch_of(place.generation) < all->space->tier_epoch)
      all->outcome.outcomes[i] = move_outcome::failed; // it was cleared meanwhile
    if (all->outcome.outcomes[i] == move_outcome::failed)
      continue;
    if (all->writes && !all->space->own &&
        book_.of(with_.plan.names.key_of(identity), now) == remote::belief::present) {
      all->outcome.outcomes[i] = move_outcome::present; // others have written it
      continue;
    }
    const uint64_t parts = remote::parts_of(place.payload_bytes, bytes_of_each());
    const bool compresses =
        all->writes && with_.plan.compress &&
        remote::consists_of_half_floats(all->moved.space->spec, all->moved.objects[i].key.pool);
    all->parts_left += parts;
    all->parts_left_of[i] = parts;
    node* at = nullptr;
    std::shared_ptr<replica_read> at_replica;
    for (uint32_t part = 0; part < parts; ++part) {
      step_ptr next = step_of(all, i, part, identity);
      next->compresses = compresses;
      bytes_to_read_ += all->writes ? 0 : next->bytes;
      if (part == 0) { // the others are in the same slot
        at = all->writes ? node_of(*next) : reader_of(*next);
        if (at != nullptr && at->is_replica())
          at_replica = std::make_shared<replica_read>(replica_read{.node = at->number, .left = parts});
      }
      next->at_replica = at_replica;
      if (!enqueue(next, at))
        lost.push_back(std::move(next));
    }
  }
  to_read(before);
  if (all->parts_left == 0)
    all->reply.deliver(std::move(all->outcome));
  else if (!all->writes && all->moved.read_by <= now)
    fall_behind(all);
  else if (!all->writes && all->moved.read_by != read_limit::max())
    limit(all);
  if (!lost.empty())
    doubt_map();
  for (const step_ptr& each : lost)
    unanswered(each);
  pump();
}

// ---- reads that fall behind ----

/// At the time of the transfer's limit it is answered with what is there. A timer is in the ring for the next limit.
void remote_store::limit(const transfer_ptr& all) {
  limits_.emplace(all->moved.read_by, all);
  await_limit(std::chrono::steady_clock::now());
}

void remote_store::await_limit(time_point now) {
  if (limits_.empty() || (!limit_timers_.empty() && *limit_timers_.begin() <= limits_.begin()->first))
    return;
  limit_timers_.insert(limits_.begin()->first);
  after(limits_.begin()->first - now, limit_timer);
}

void remote_store::on_limit() {
  const auto now = std::chrono::steady_clock::now();
  limit_timers_.erase(limit_timers_.begin());
  while (!limits_.empty() && limits_.begin()->first <= now) {
    auto all = std::move(limits_.begin()->second);
    limits_.erase(limits_.begin());
    fall_behind(all);
  }
  await_limit(now);
}

/// The store is not asked for the rest any more. It still sends what it was asked for, into memory that nobody uses.
void remote_store::fall_behind(const transfer_ptr& all) {
  all->late = true;
  for (size_t i = 0; i < all->parts_left_of.size(); ++i)
    if (all->parts_left_of[i] != 0)
      all->outcome.outcomes[i] = move_outcome::late;
  std::vector<step_ptr> dropped;
  for (const auto& [number, each] : nodes_) {
    lane& by = each->reads;
    std::erase_if(by.waiting, [&](const step_ptr& one) {
      if (one->of != all)
        return false;
      by.waiting_bytes -= one->bytes;
      dropped.push_back(one);
      return true;
    });
  }
  for (const step_ptr& each : dropped)
    unanswered(each);
  answer_read(all);
}

void remote_store::answer_read(const transfer_ptr& all) {
  if (all->space->own)
    return all->reply.deliver(all->outcome);
  const uint64_t number = next_task_++;
  run(deliver_read(all, number), number);
}

remote_store::step_ptr remote_store::step_of(const transfer_ptr& all, size_t object, uint32_t part,
                                             const remote::remote_identity& identity) const {
  const uint64_t payload_bytes = all->moved.objects[object].place.payload_bytes;
  auto made = std::make_shared<step>();
  made->of = all;
  made->object = object;
  made->part = part;
  made->own = all->space->own;
  made->identity = identity;
  made->begin = part * bytes_of_each();
  made->bytes = remote::bytes_of_part(payload_bytes, part, bytes_of_each());
  made->stored = made->bytes;
  return made;
}

/// False: the node is away, or there is none.
bool remote_store::enqueue(step_ptr next, node* at) {
  if (at == nullptr || !at->ready())
    return false;
  lane& by = next->reads() ? at->reads : at->writes;
  by.waiting_bytes += next->bytes;
  by.waiting.push_back(std::move(next));
  return true;
}

/// Removes an object's values from the store. `by`: null: nobody waits.
void remote_store::remove(const remote::remote_identity& object, bool own, uint64_t payload_bytes,
                          const std::shared_ptr<removal>& by) {
  for (uint32_t part = 0; part < remote::parts_of(payload_bytes, bytes_of_each()); ++part) {
    auto next = std::make_shared<step>();
    next->part = part;
    next->own = own;
    next->identity = object;
    next->removed_for = by;
    if (by)
      ++by->left;
    if (!enqueue(next, node_of(*next)))
      end(*next, move_outcome::away);
  }
}

/// The store removes objects that only this daemon finds when the tier drops them. It keeps others for other machines until it
/// makes room or their lifetime ends, unless nobody refers to them any more, or an operator evicts them (`remove_values`).
void remote_store::on_changes(const index_changes& changes) {
  for (const index_change& change : changes.changes) {
    auto known = spaces_.find(change.space);
    if (!serving() || change.record.kind != record_kind::remove || known == spaces_.end())
      continue;
    const space_state& space = *known->second;
    if (!space.own && (!change.unwanted || !usable(space)))
      continue;
    remove(named({.space = space.name,
                  .epoch = space.own ? change.record.generation : epoch_of(space),
                  .pool = change.record.pool,
                  .rank = change.record.rank,
                  .chunk = change.record.chunk}),
           space.own, change.record.payload_bytes);
  }
  for (space_id gone : changes.gone)
    spaces_.erase(gone);
  pump();
}

void remote_store::to_read(uint64_t before) const {
  if (before != bytes_to_read_)
    with_.meter->has_to_read(before, bytes_to_read_, std::chrono::steady_clock::now());
}

/// A bucket and a plugin do several commands at a time: a value is not removed beside its write, nor written beside its removal.
bool remote_store::overtakes(const step& next, const lane& by) const {
  return with_.plan.address.is_bulk() && std::ranges::any_of(by.sent, [&next](const step_ptr& each) {
           return (!each->of || !next.of) && each->part == next.part && each->identity == next.identity;
         });
}

bool remote_store::begin_next(lane& by) {
  if (!by.room() || overtakes(*by.waiting.front(), by))
    return false;
  const step& first = *by.waiting.front();
  const bool unwanted =
      first.of && (first.of->late || (first.of->moved.context && !first.of->moved.context->live()));
  if (!unwanted && !is_changed(by.waiting.front()))
    return false;
  auto next = std::move(by.waiting.front());
  by.waiting.pop_front();
  by.waiting_bytes -= next->bytes;
  if (unwanted) { // nobody waits for it, and the tier keeps what it has
    if (next->at_replica)
      settle_at_replica(std::move(next), false);
    else
      end(*next, move_outcome::away);
    return true;
  }
  by.window.began(next->bytes);
  next->tag = next_step_++;
  begin(next, *by.link->server());
  by.sent.push_back(std::move(next));
  return true;
}

void remote_store::begin(const step_ptr& next, remote::store_commands& server) {
  if (next->tried == tries::lost) {
    next->tried = tries::second;
    with_.counts->retried(!next->reads());
  }
  if (next->asking)
    server.asking();
  if (!next->of)
    server.erase(next->tag, key_of(*next));
  else if (next->of->writes)
    write(next, server);
  else
    server.read(next->tag, key_of(*next), next->header, next->payload());
}

/// Without a checksum.
remote::value_header remote_store::header_of(const step& written) const {
  const object_place& place = written.moved().place;
  return {.identity = written.identity,
          .generation = written.own ? place.generation : run_ ^ terrace::detail::mix64(place.generation),
          .payload_bytes = place.payload_bytes,
          .part = written.part,
          .packed_bytes = written.stored < written.bytes ? static_cast<uint32_t>(written.stored) : 0};
}

void remote_store::write(const step_ptr& next, remote::store_commands& server) {
  if (!cipher_) {
    const moved_object& object = next->moved();
    const bool whole = next->stored == object.place.payload_bytes;
    remote::value_header header = header_of(*next);
    header.checksum = whole && object.checksum ? *object.checksum : payload_checksum(next->to_write());
    remote::encode(header, next->header);
  }
  server.write(next->tag, key_of(*next), next->header, next->to_write(), next, with_.plan.lifetime);
}

// ---- compression and encryption ----

/// False: the value is compressed or encrypted first, by later turns. It stays the first that waits, so a lane has one such value beyond
/// its window.
bool remote_store::is_changed(const step_ptr& written) {
  if (!written->of || written->reads() || (!cipher_ && !written->compresses))
    return true;
  if (!written->changed && !written->crossed) {
    written->changed = std::make_unique_for_overwrite<std::byte[]>(written->bytes);
    cross(written);
  }
  return written->crossed;
}

void remote_store::cross(step_ptr next) {
  crossing_.push_back(std::move(next));
  if (!std::exchange(crosses_, true))
    caf::anon_send(caf::actor_cast<caf::actor>(self_), values_turn{});
}

void remote_store::on_values_turn() {
  crosses_ = false;
  for (size_t left = values_bytes; left != 0 && !crossing_.empty();) {
    step& first = *crossing_.front();
    left -= std::min(left, first.reads() ? restore_some(first, left) : change_some(first, left));
    if (!first.crossed)
      continue;
    auto done = std::move(crossing_.front());
    crossing_.pop_front();
    if (done->reads())
      settle_read(done, done->verified);
  }
  if (!crossing_.empty() && !std::exchange(crosses_, true))
    caf::anon_send(caf::actor_cast<caf::actor>(self_), values_turn{});
  pump();
  erase_left();
}

/// Returns how many bytes would have taken as long to encrypt.
size_t remote_store::change_some(step& written, size_t bytes_max) {
  const std::span<std::byte> changed(written.changed.get(), written.bytes);
  if (written.compresses && !written.packing)
    written.packing = std::make_unique<remote::value_packing>(compressor_, written.payload(), changed);
  if (written.packing && !written.packing->done())
    return bytes_of_a_value + times_to_compress * written.packing->advance();
  if (const size_t packed = written.packing ? written.packing->packed_bytes() : 0; packed != 0)
    written.stored = packed;
  const bool packed = written.stored < written.bytes;
  if (!cipher_) {
    if (!packed)
      written.changed.reset(); // the payload is written from where it lies
    written.crossed = true;
    return bytes_of_a_value;
  }
  if (!written.sealing)
    written.sealing = std::make_unique<remote::value_sealing>(*cipher_, header_of(written),
                                                              packed ? written.to_write() : written.payload(),
                                                              written.to_write(), written.header);
  const size_t bytes = written.sealing->advance(bytes_max);
  written.crossed = written.sealing->done();
  return bytes_of_a_value + bytes;
}

/// Returns how many bytes would have taken as long to decrypt.
size_t remote_store::restore_some(step& read, size_t bytes_max) {
  if (!read.unpacking) {
    const size_t bytes = verify_some(read, bytes_max);
    if (read.crossed && read.verified && read.stored < read.bytes) {
      read.of->generations[read.object] = *read.verified; // other parts are verified meanwhile
      read.unpacking = std::make_unique<remote::value_unpacking>(compressor_, read.payload(), read.stored);
      read.crossed = false;
    }
    return bytes_of_a_value + bytes;
  }
  const size_t bytes = read.unpacking->advance();
  read.crossed = read.unpacking->done();
  if (read.crossed && !read.unpacking->succeeded())
    read.verified = tl::unexpected(remote::rejected_value{
        remote::value_fault::wrong_payload, "a compressed value was expected, and its bytes are none "
                                            "although its checksum matches; treated as a miss"});
  return bytes_of_a_value + bytes;
}

size_t remote_store::verify_some(step& read, size_t bytes_max) {
  const auto received = read.payload().first(read.stored);
  if (!cipher_) {
    read.verified = remote::verify(read.header, received, expected_of(read));
    read.crossed = true;
    return received.size() / 4;
  }
  if (!read.opening) // once the part before it has told its generation
    read.opening =
        std::make_unique<remote::value_opening>(*cipher_, read.header, received, expected_of(read));
  const size_t bytes = read.opening->advance(bytes_max);
  read.crossed = read.opening->done();
  if (read.crossed)
    read.verified = read.opening->verified();
  return bytes;
}

void remote_store::on_moved(node& of, lane& by, const remote::finished_command& finished) {
  auto place = std::ranges::find(by.sent, finished.tag, [](const step_ptr& each) { return each->tag; });
  assert(place != by.sent.end());
  auto done = std::move(*place);
  by.sent.erase(place);
  by.window.succeeded(done->bytes);
  if (&by == &of.reads)
    fit_window(by);
  if (done->at_replica && finished.result != command_result::done)
    return refused_by_replica(of, std::move(done), finished);
  if (node* other = redirected(of, finished, done->hops); other != nullptr) {
    done->asking = finished.redirected->once;
    ++done->hops;
    enqueue(std::move(done), other);
    return pump(*other);
  }
  if (finished.result == command_result::refused && (!in_cluster() || !finished.redirected))
    with_.service->set_notice(finished.why.text);
  if (done->reads())
    return finish_read(std::move(done), finished);
  const bool is_refused = finished.result == command_result::refused;
  if (done->removed_for && is_refused)
    done->removed_for->failure = finished.why;
  if (done->of && finished.result == command_result::done)
    with_.counts->stored(done->stored);
  const bool is_gone = !done->of && !is_refused;
  end(*done, is_gone || finished.result == command_result::done ? move_outcome::done : move_outcome::failed);
  if (lost_its_server(finished))
    close(of, finished.why.text);
}

/// A server makes the replies to all commands that it has received, and keeps them: redis-server is a third slower with 64 MiB
/// of them than with 4.
void remote_store::fit_window(lane& reads) {
  const std::chrono::duration<double> round_trip = reads.link->round_trip();
  const double rate = with_.meter->state(std::chrono::steady_clock::now()).bytes_per_s;
  reads.window.keep_within(static_cast<uint64_t>(2 * rate * round_trip.count()));
}

void remote_store::finish_read(step_ptr done, const remote::finished_command& finished) {
  if (finished.result == command_result::refused) {
    with_.counts->missed(metrics::remote_miss::refused);
    return end(*done, move_outcome::away);
  }
  done->stored = static_cast<uint64_t>(finished.number);
  const bool absent = finished.result == command_result::absent;
  if (finished.result != command_result::done ||
      (done->stored != done->bytes && !remote::has_length(done->header, done->stored, expected_of(*done)))) {
    if (done->at_replica) {
      if (!absent)
        done->at_replica->damage = "a value of another length was found";
      return settle_at_replica(std::move(done), false);
    }
    with_.counts->missed(absent ? metrics::remote_miss::absent : metrics::remote_miss::other_length);
    return reject(*done, absent);
  }
  with_.meter->arrived(done->bytes, std::chrono::steady_clock::now());
  if (cipher_ || done->stored < done->bytes)
    return cross(std::move(done));
  settle_read(done, remote::verify(done->header, done->payload(), expected_of(*done)));
}

remote::expected_part remote_store::expected_of(const step& read) const {
  const object_place& place = read.moved().place;
  return {.identity = read.identity,
          .payload_bytes = place.payload_bytes,
          .part = read.part,
          .generation = read.own ? std::optional(place.generation) : read.of->generations[read.object],
          .encrypted = cipher_ != nullptr,
          .bytes_of_each = bytes_of_each()};
}

void remote_store::settle_read(const step_ptr& done,
                               const tl::expected<uint64_t, remote::rejected_value>& verified) {
  if (verified)
    done->of->generations[done->object] = *verified;
  if (done->at_replica) {
    if (!verified && verified.error().fault !=
                         remote::value_fault::other_part) // one that lags may have parts of two writers
      done->at_replica->damage = verified.error().text;
    return settle_at_replica(done, verified.has_value());
  }
  if (!verified) {
    ++refused_values_;
    with_.counts->missed(static_cast<metrics::remote_miss>(
        static_cast<size_t>(metrics::remote_miss::not_ours) + static_cast<size_t>(verified.error().fault)));
    with_.service->set_notice(format_counted(refused_values_, "value") +
                              (refused_values_ == 1 ? " was not as it was" : " were not as they were") +
                              " written; the last: " + verified.error().text);
    const auto fault = verified.error().fault;
    return reject(*done,
                  fault != remote::value_fault::not_ours && fault != remote::value_fault::other_version);
  }
  end(*done, move_outcome::done);
}

// ---- replicas ----

/// A replica that does not serve at all is left alone for a while. One that does not have the slot or the value is not: it may lag.
void remote_store::refused_by_replica(node& of, step_ptr done, const remote::finished_command& finished) {
  settle_at_replica(std::move(done), false);
  if (finished.redirected)
    want_map();
  else if (finished.result == command_result::refused)
    close(of, finished.why.text);
}

/// The object is read, or is to be read from the primary, once the replica's answers to all its parts are known.
void remote_store::settle_at_replica(step_ptr done, bool delivered) {
  replica_read& all = *done->at_replica;
  all.failed |= !delivered;
  if (--all.left != 0)
    return;
  const bool failed = all.failed;
  note_read(all);
  const transfer_ptr of = done->of;
  const uint64_t parts = remote::parts_of(done->moved().place.payload_bytes, bytes_of_each());
  node* primary = failed ? node_of(*done) : nullptr;
  if (failed)
    of->generations[done->object].reset();
  for (uint32_t part = 0; part < parts; ++part) {
    auto each = step_of(of, done->object, part, done->identity);
    if (!failed)
      end(*each, move_outcome::done);
    else if (of->late || !enqueue(each, primary))
      unanswered(std::move(each));
  }
  if (primary != nullptr)
    pump(*primary);
}

/// A damaged copy is told: it is read and refused again and again, and nobody repairs it but who has the server.
void remote_store::note_read(const replica_read& at_replica) {
  using metrics::replica_answer;
  if (at_replica.damage.empty())
    return with_.counts->replica_answered(at_replica.failed ? replica_answer::asked_primary
                                                            : replica_answer::read);
  with_.counts->replica_answered(replica_answer::damaged);
  const auto at = nodes_.find(at_replica.node);
  const uint64_t damaged = with_.counts->replica_answers_of(replica_answer::damaged);
  with_.service->set_notice(format_counted(damaged, "object") +
                            (damaged == 1 ? " was not as it was written at a replica, and was"
                                          : " were not as they were written at a replica, and were") +
                            " read from its primary; the last" +
                            (at == nodes_.end() ? std::string() : ", at " + at->second->address.text) + ": " +
                            at_replica.damage);
}

/// The connection to its node has ended, or there is none.
void remote_store::unanswered(step_ptr lost) {
  if (lost->at_replica)
    return settle_at_replica(std::move(lost), false);
  if (lost->reads() && !lost->of->late)
    with_.counts->missed(metrics::remote_miss::unanswered);
  end(*lost, move_outcome::away);
}

/// The object cannot be read. `ours`: what is left of it is removed, so that it can be written again.
void remote_store::reject(step& done, bool ours) {
  const bool first = done.of->outcome.outcomes[done.object] == move_outcome::done;
  const uint64_t bytes = done.moved().place.payload_bytes;
  if (!done.own && first) {
    book_.has_failed(with_.plan.names.key_of(done.identity), std::chrono::steady_clock::now());
    if (ours)
      remove(done.identity, false, bytes);
  }
  end(done, move_outcome::failed);
}

/// An object is `done` if all its parts are, and `failed` if one is.
void remote_store::end(step& ended, move_outcome outcome) {
  if (ended.removed_for) {
    if (outcome == move_outcome::away)
      ended.removed_for->failure = {errc::busy, "the connection to it is lost"};
    return ended.removed_for->one_less();
  }
  if (!ended.of)
    return;
  transfer& of = *ended.of;
  auto& sum = of.outcome.outcomes[ended.object];
  --of.parts_left_of[ended.object];
  if (!of.late && outcome != move_outcome::done &&
      (sum == move_outcome::done || outcome == move_outcome::failed))
    sum = outcome;
  if (!of.writes) {
    const uint64_t before = bytes_to_read_;
    bytes_to_read_ -= ended.bytes;
    to_read(before);
  }
  const moved_object& object = ended.moved();
  const bool last_part = ended.part + 1 == remote::parts_of(object.place.payload_bytes, bytes_of_each());
  if (last_part && sum == move_outcome::done) {
    if (of.writes && !ended.own)
      book_.is_present(with_.plan.names.key_of(ended.identity), std::chrono::steady_clock::now());
    with_.counts->moved(of.writes, object.place.payload_bytes);
  }
  if (--of.parts_left != 0 || of.late)
    return;
  if (of.writes) {
    if (!of.space->own && epoch_of(*of.space) != of.epoch) // a token was lost: nobody finds what was written
      std::ranges::replace(of.outcome.outcomes, move_outcome::done, move_outcome::failed);
    return of.reply.deliver(std::move(of.outcome));
  }
  const auto [first, last] = limits_.equal_range(of.moved.read_by);
  const auto limited =
      std::find_if(first, last, [&of](const auto& each) { return each.second.get() == &of; });
  if (limited != last)
    limits_.erase(limited);
  answer_read(ended.of);
}

/// Nothing is delivered that was cleared while it was read. A token that may have changed is learnt first.
task<> remote_store::deliver_read(transfer_ptr all, uint64_t number) {
  space_state_ptr space = all->space;
  auto learnt = co_await learn_space(space, nullptr);
  if (!learnt || epoch_of(*space) != all->epoch)
    for (move_outcome& outcome : all->outcome.outcomes)
      if (outcome == move_outcome::done) {
        with_.counts->missed(metrics::remote_miss::cleared);
        outcome = move_outcome::failed;
      }
  all->reply.deliver(all->outcome);
  ended(number);
}

} // namespace terrace::actors
