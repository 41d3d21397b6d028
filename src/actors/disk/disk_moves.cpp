// Reads and writes of a disk set: each path's disk gets its part, and the answers are combined.
#include "actors/disk/disk_set_state.hpp"
#include "coroutine/answer.hpp"
#include "storage/object_header.hpp"
#include "transfer/copy_ops.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>

namespace terrace::actors {

namespace {

/// Up to this many headers with known checksums are written by the disk set itself, which takes less time
/// than waking a copier.
constexpr size_t headers_here_max = 64;

/// Parallel to the objects.
struct io_outcome {
  error failure;           ///< an actor failed
  std::vector<int> failed; ///< 0 or an errno; EBUSY: the disk is out of service, and nothing was tried
  std::vector<bool> away;  ///< failed because the disk is out of service; may be intact once it is back
};
struct gathering {
  io_outcome all;
  size_t waiting_for = 0;
  std::function<void(const io_outcome&)> done;

  void one_less() {
    if (--waiting_for == 0)
      done(all);
  }
};

void add_part(io_outcome& all, const std::vector<size_t>& own, const disk_answer& answer) {
  bool refused = answer.failure.code == errc::busy;
  if (answer.failure.code != errc::ok && !refused)
    all.failure = answer.failure;
  for (size_t n = 0; n < own.size(); ++n) {
    int failed = refused ? EBUSY : answer.failure.code != errc::ok ? EIO : answer.failed[n];
    all.failed[own[n]] = failed;
    all.away[own[n]] = refused || (failed != 0 && answer.out_of_service);
  }
}

/// Calls `done` when the last disk has answered; immediately if there is nothing to do.
void transfer(disk_set_pointer self, disk_direction direction, const moved_objects& what,
              std::function<void(const io_outcome&)> done) {
  auto& state = self->state;
  auto gathered = std::make_shared<gathering>();
  gathered->all.failed.resize(what.objects.size());
  gathered->all.away.resize(what.objects.size());
  gathered->done = std::move(done);
  std::vector<disk_request> parts(state.disks.size());
  std::vector<std::vector<size_t>> index(
      state.disks.size()); // per part: indices of its operations in the objects
  for (size_t i = 0; i < what.objects.size(); ++i) {
    const moved_object& object = what.objects[i];
    auto at = state.paths->locate(object.place.offset);
    parts[at.path].operations.push_back(
        {at.file_offset, object.memory, physical_bytes_for(object.place.payload_bytes)});
    index[at.path].push_back(i);
  }
  gathered->waiting_for = 1;
  for (size_t path = 0; path < parts.size(); ++path) {
    if (index[path].empty())
      continue;
    ++gathered->waiting_for;
    disk_request& part = parts[path];
    part.direction = direction;
    part.context = what.context;
    part.owners = what.owners;
    self->request(state.disks[path], caf::infinite, std::move(part))
        .then(
            [gathered, own = std::move(index[path])](const disk_answer& answer) {
              add_part(gathered->all, own, answer);
              gathered->one_less();
            },
            [gathered](const caf::error&) {
              gathered->all.failure = {errc::internal, "a disk has ended"};
              gathered->one_less();
            });
  }
  gathered->one_less();
}

sealed_object sealed(const moved_object& object) {
  return {object.key,
          object.place.generation,
          object.memory,
          object.place.payload_bytes,
          physical_bytes_for(object.place.payload_bytes),
          object.checksum};
}

error why_ended(const moved_objects& what) {
  if (!what.context || what.context->live())
    return {};
  return {what.context->ended.load(), "the request ended while its objects were read"};
}

move_outcome outcome_of_read(int failed, bool away) {
  if (failed == 0)
    return move_outcome::done;
  if (failed == ETIMEDOUT)
    return move_outcome::stalled;
  return away ? move_outcome::away : move_outcome::failed;
}

/// Verifies what was read; objects that are not the expected ones have failed.
void check(disk_set_pointer self, const read_request& what, move_answer read_so_far,
           answer<move_answer> reply) {
  check_request request;
  request.in = what.in;
  request.volume = self->state.paths->volume();
  request.owners = what.owners;
  std::vector<size_t> read;
  for (size_t i = 0; i < what.objects.size(); ++i)
    if (read_so_far.outcomes[i] == move_outcome::done) {
      read.push_back(i);
      request.objects.push_back(sealed(what.objects[i]));
    }
  if (read.empty()) {
    reply.deliver(std::move(read_so_far));
    return;
  }
  self->request(self->state.copiers->next(), caf::infinite, std::move(request))
      .then(
          [reply, read, moved = std::move(read_so_far)](const check_answer& checked) mutable {
            for (size_t n = 0; n < read.size(); ++n)
              if (!checked.good[n])
                moved.outcomes[read[n]] = move_outcome::failed;
            reply.deliver(std::move(moved));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the copier has ended"});
          });
}

void write(disk_set_pointer self, const write_request& what, answer<move_answer> reply) {
  transfer(self, disk_direction::write, what, [reply](const io_outcome& written) mutable {
    move_answer moved;
    for (int failed : written.failed)
      moved.outcomes.push_back(failed == 0       ? move_outcome::done
                               : failed == EBUSY ? move_outcome::away
                                                 : move_outcome::failed);
    reply.deliver(std::move(moved));
  });
}

} // namespace

caf::result<move_answer> read_objects(disk_set_pointer self, const read_request& request) {
  auto reply = make_answer<move_answer>(self);
  transfer(self, disk_direction::read, request, [self, request, reply](const io_outcome& read) mutable {
    move_answer moved;
    moved.failure = read.failure.code != errc::ok ? read.failure : why_ended(request);
    for (size_t i = 0; i < read.failed.size(); ++i)
      moved.outcomes.push_back(outcome_of_read(read.failed[i], read.away[i]));
    if (moved.failure.code != errc::ok)
      reply.deliver(std::move(moved));
    else
      check(self, request, std::move(moved), reply);
  });
  return reply.promise();
}

caf::result<move_answer> write_objects(disk_set_pointer self, const write_request& request) {
  auto reply = make_answer<move_answer>(self);
  seal_request headers;
  headers.in = request.in;
  headers.volume = self->state.paths->volume();
  headers.owners = request.owners;
  bool known = true;
  for (const moved_object& object : request.objects) {
    headers.objects.push_back(sealed(object));
    known = known && object.checksum.has_value();
  }
  if (known && headers.objects.size() <= headers_here_max) {
    seal_objects(headers);
    write(self, request, reply);
    return reply.promise();
  }
  self->request(self->state.copiers->next(), caf::infinite, std::move(headers))
      .then([self, request, reply](const seal_answer&) { write(self, request, reply); },
            [reply](const caf::error&) mutable {
              reply.fail({errc::internal, "the copier has ended"});
            });
  return reply.promise();
}

} // namespace terrace::actors
