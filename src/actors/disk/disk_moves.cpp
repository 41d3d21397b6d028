// Reads and writes of a disk set: each path's disk gets its part, and the answers are combined.
#include "actors/disk/disk_set.hpp"
#include "base/countdown.hpp"
#include "runtime/answer.hpp"
#include "storage/disk/path_parts.hpp"
#include "transfer/copy_ops.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>

namespace terrace::actors {

namespace {

/// Up to this many headers with known checksums are written by the disk set itself, which takes less time
/// than waking a copier.
constexpr size_t headers_here_max = 64;

/// Calls `done` when the last disk has answered; immediately if there is nothing to do.
void transfer(disk_set_pointer self, disk_direction direction, const moved_objects& moved,
              std::function<void(move_answer)> done) {
  auto& state = self->state;
  auto parts = std::make_shared<path_parts>(*state.paths, direction, moved);
  auto disks = std::make_shared<countdown>([parts, done = std::move(done)] { done(parts->outcome()); });
  for (size_t path : parts->paths()) {
    disks->begin();
    self->request(state.disks[path], caf::infinite, parts->take(path))
        .then(
            [parts, disks, path](const disk_answer& answer) {
              parts->add(path, answer);
              disks->end();
            },
            [parts, disks, path](const caf::error&) {
              parts->fail(path, {errc::internal, "a disk has ended"});
              disks->end();
            });
  }
  disks->end();
}

error why_ended(const moved_objects& moved) {
  if (!moved.context || moved.context->live())
    return {};
  return {moved.context->ended.load(), "the request ended while its objects were read"};
}

/// Counts the objects that do not match the index, and reports damage.
void report(disk_set_pointer self, const read_request& request, const std::vector<size_t>& bad) {
  auto& state = self->state;
  for (const auto& of : state.damages.add(request.objects, bad, std::chrono::steady_clock::now())) {
    state.probes[of.path]->damaged(metrics::disk_damage::superseded, of.superseded);
    state.probes[of.path]->damaged(metrics::disk_damage::object, of.damaged);
    if (of.damaged != 0)
      state.service->set_notice(of.path, disk_service::about::damage, of.notice);
    if (of.line)
      state.warn(*of.line);
  }
}

/// Verifies the objects that were read.
void check(disk_set_pointer self, const read_request& wanted, move_answer read, answer<move_answer> reply) {
  std::vector<size_t> checked;
  auto request = check_of(wanted, self->state.paths->volume(), read, checked);
  request.context = wanted.context;
  if (checked.empty()) {
    reply.deliver(std::move(read));
    return;
  }
  self->request(self->state.copiers->next(), caf::infinite, std::move(request))
      .then(
          [self, wanted, reply, checked, read = std::move(read)](const check_answer& found) mutable {
            apply(found, checked, read);
            if (auto bad = not_good(found, checked); !bad.empty())
              report(self, wanted, bad);
            reply.deliver(std::move(read));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the copier has ended"});
          });
}

void write(disk_set_pointer self, const write_request& request, answer<move_answer> reply) {
  transfer(self, disk_direction::write, request,
           [reply](move_answer written) mutable { reply.deliver(std::move(written)); });
}

} // namespace

caf::result<move_answer> on_read(disk_set_pointer self, const read_request& request) {
  auto reply = make_answer<move_answer>(self);
  transfer(self, disk_direction::read, request, [self, request, reply](move_answer read) mutable {
    if (read.failure.code == errc::ok)
      read.failure = why_ended(request);
    if (read.failure.code != errc::ok)
      reply.deliver(std::move(read));
    else
      check(self, request, std::move(read), reply);
  });
  return reply.promise();
}

caf::result<move_answer> on_write(disk_set_pointer self, const write_request& request) {
  auto reply = make_answer<move_answer>(self);
  bool known = false;
  auto headers = seal_of(request, self->state.paths->volume(), known);
  headers.context = request.context;
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
