#include "simulated_io.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace terrace::simulation {

using runtime::io_code;
using runtime::io_request;

namespace {

bool goes_to_disk(io_code code) {
  switch (code) {
    case io_code::read:
    case io_code::write:
    case io_code::readv:
    case io_code::writev:
    case io_code::fsync:
    case io_code::statx: return true;
    default: return false;
  }
}

bool writes(io_code code) { return code == io_code::write || code == io_code::writev; }

std::vector<iovec> ranges_of(const io_request& request) {
  if (request.code == io_code::read || request.code == io_code::write)
    return {{request.data, request.length}};
  auto* first = static_cast<const iovec*>(request.data);
  return {first, first + request.length};
}

int32_t examine(const simulated_disk& disk, const io_request& request) {
  file_facts facts;
  if (int refused = disk.stat(request.path, facts); refused != 0)
    return refused;
  auto& out = *static_cast<struct statx*>(request.data);
  out = {};
  out.stx_mask = STATX_BASIC_STATS;
  out.stx_mode = facts.directory ? S_IFDIR : S_IFREG;
  out.stx_ino = facts.inode;
  out.stx_size = facts.bytes;
  out.stx_blocks = facts.allocated_bytes / sector_bytes;
  return 0;
}

} // namespace

std::chrono::nanoseconds simulated_io::delay() {
  auto most = random_.chance(delays_.long_ones) ? delays_.longest : std::max(delays_.least, delays_.most);
  return std::chrono::nanoseconds(
      random_.between(static_cast<uint64_t>(delays_.least.count()), static_cast<uint64_t>(most.count())));
}

int simulated_io::enter() {
  for (auto started = std::exchange(unsubmitted_, {}); runtime::operation * op : started)
    submit(*op);
  if (sockets_)
    sockets_->look();
  return 0;
}

void simulated_io::serve_sockets(const socket_habits& habits) {
  sockets_.emplace(events_, random_.next(), habits, [this](runtime::operation& op, int32_t result) {
    ready_.push_back({&op, result, 0});
  });
}

void simulated_io::submit(runtime::operation& op) {
  const io_request& request = op.request;
  if (sockets_ && request.fd >= 0 && request.fd < simulated_disk::first_descriptor) {
    sockets_->start(op);
    return;
  }
  auto which = flights_.insert(flights_.end(), {&op, ++submitted_, {}, 0, false, 0});
  events_.note({1, submitted_, static_cast<uint64_t>(request.code), static_cast<uint64_t>(request.fd),
                request.offset, request.length});
  file_facts facts;
  if (request.code == io_code::timeout) {
    which->next = events_.after(request.after, [this, which] { complete(which, -ETIME); });
  } else if (goes_to_disk(request.code)) {
    if (request.code == io_code::fsync)
      which->sync = disk_.begin_sync(request.fd);
    if (!hangs_)
      which->next = events_.after(delay(), [this, which] { take_effect(which); });
  } else if (request.code == io_code::nop) {
    complete(which, 0);
  } else if (disk_.fstat(request.fd, facts) != 0) {
    complete(which, -EBADF);
  } else {
    complete(which, request.code == io_code::poll ? static_cast<int32_t>(request.events & (POLLIN | POLLOUT))
                                                  : -ENOTSOCK);
  }
}

void simulated_io::take_effect(flights::iterator which) {
  if (hangs_) {
    which->next = 0;
    return;
  }
  which->result = perform(*which);
  which->done = true;
  which->next = events_.after(delay(), [this, which] { complete(which, which->result); });
}

void simulated_io::complete(flights::iterator which, int32_t result) {
  events_.note({2, which->number, static_cast<uint64_t>(static_cast<int64_t>(result))});
  ready_.push_back({which->op, result, 0});
  flights_.erase(which);
}

int32_t simulated_io::perform(flight& one) {
  const io_request& request = one.op->request;
  switch (request.code) {
    case io_code::fsync: return disk_.end_sync(one.sync);
    case io_code::statx: return examine(disk_, request);
    default: return transfer(request);
  }
}

int32_t simulated_io::transfer(const io_request& request) {
  int64_t total = 0;
  for (const iovec& range : ranges_of(request)) {
    std::span<std::byte> memory(static_cast<std::byte*>(range.iov_base), range.iov_len);
    uint64_t offset = request.offset + static_cast<uint64_t>(total);
    int64_t count = writes(request.code) ? disk_.write(request.fd, offset, memory)
                                         : disk_.read(request.fd, offset, memory);
    if (count < 0)
      return static_cast<int32_t>(total != 0 ? total : count);
    total += count;
    if (static_cast<uint64_t>(count) < range.iov_len)
      break;
  }
  return static_cast<int32_t>(total);
}

/// Like the kernel, ends a timeout at once, and an operation of the disk only if it has not begun.
void simulated_io::cancel(runtime::operation& op) {
  if (std::erase(unsubmitted_, &op) != 0) {
    ready_.push_back({&op, -ECANCELED, 0});
    return;
  }
  if (sockets_ && sockets_->cancel(op))
    return;
  auto which =
      std::find_if(flights_.begin(), flights_.end(), [&](const flight& one) { return one.op == &op; });
  if (which == flights_.end() || which->done || (goes_to_disk(op.request.code) && random_.coin()))
    return;
  events_.cancel(which->next);
  complete(which, -ECANCELED);
}

size_t simulated_io::reap(std::span<runtime::completion> out) {
  size_t count = std::min(out.size(), ready_.size());
  std::copy_n(ready_.begin(), count, out.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

int simulated_io::wait() {
  enter();
  while (ready_.empty() && !woken_ && events_.step()) {
  }
  woken_ = false;
  return 0;
}

void simulated_io::hang(bool hangs) {
  hangs_ = hangs;
  for (auto which = flights_.begin(); which != flights_.end(); ++which)
    if (!hangs && which->next == 0)
      which->next = events_.after(delay(), [this, which] { take_effect(which); });
}

void simulated_io::leave_writes(simulated_disk& to) const {
  for (const flight& one : flights_) {
    if (!writes(one.op->request.code) || one.done)
      continue;
    uint64_t offset = one.op->request.offset;
    for (const iovec& range : ranges_of(one.op->request)) {
      to.cut_off_write(one.op->request.fd, offset,
                       {static_cast<const std::byte*>(range.iov_base), range.iov_len});
      offset += range.iov_len;
    }
  }
}

void simulated_io::end_process() {
  for (const flight& one : flights_)
    events_.cancel(one.next);
  sockets_.reset();
  flights_.clear();
  unsubmitted_.clear();
  ready_.clear();
}

} // namespace terrace::simulation
