#include "runtime/simulated_ring.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace terrace::runtime {

namespace {

int32_t outcome(ssize_t n) { return n < 0 ? -errno : static_cast<int32_t>(n); }

/// Returns the events that poll(2) reports now, 0 if there are none, or -errno.
int32_t poll_now(int fd, uint32_t events) {
  if (fd < 0)
    return -EBADF; // poll(2) would ignore the descriptor
  pollfd item{fd, static_cast<short>(events), 0};
  int n = ::poll(&item, 1, 0);
  return n < 0 ? -errno : item.revents;
}

/// Returns the iovecs truncated to `bytes` in total; 0: unchanged.
std::vector<iovec> cut(const iovec* vectors, size_t count, uint32_t bytes) {
  std::vector<iovec> out(vectors, vectors + count);
  if (bytes == 0)
    return out;
  size_t left = bytes;
  for (auto& v : out) {
    v.iov_len = std::min(v.iov_len, left);
    left -= v.iov_len;
  }
  return out;
}

ssize_t transfer(const io_request& r, bool reading, const std::vector<iovec>& vectors) {
  auto count = static_cast<int>(vectors.size());
  auto offset = static_cast<off_t>(r.offset);
  auto n = reading ? ::preadv(r.fd, vectors.data(), count, offset)
                   : ::pwritev(r.fd, vectors.data(), count, offset);
  if (n < 0 && errno == ESPIPE)
    n = reading ? ::readv(r.fd, vectors.data(), count) : ::writev(r.fd, vectors.data(), count);
  return n;
}

} // namespace

void simulated_ring::fail_next(io_code code, int error_number, size_t count) {
  failures_[code].insert(failures_[code].end(), count, error_number);
}

void simulated_ring::release(io_code code) {
  held_codes_[code] = false;
  auto freed = std::stable_partition(held_.begin(), held_.end(),
                                     [code](const completion& c) { return c.op->request.code != code; });
  ready_.insert(ready_.end(), freed, held_.end());
  held_.erase(freed, held_.end());
}

void simulated_ring::release_those() {
  held_ones_ = nullptr;
  auto freed = std::stable_partition(held_.begin(), held_.end(),
                                     [this](const completion& c) { return held_codes_[c.op->request.code]; });
  ready_.insert(ready_.end(), freed, held_.end());
  held_.erase(freed, held_.end());
}

size_t simulated_ring::in_flight(io_code code) const {
  auto same = [code](const auto& item) { return item.op->request.code == code; };
  return static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(), same) +
                             std::count_if(ready_.begin(), ready_.end(), same) +
                             std::count_if(held_.begin(), held_.end(), same));
}

void simulated_ring::start(operation& op) {
  auto code = op.request.code;
  ++started_[static_cast<size_t>(code)];
  if (code == io_code::send) {
    complete(op, send(op.request));
    return;
  }
  auto& failures = failures_[code];
  if (!failures.empty()) {
    auto error_number = failures.front();
    failures.pop_front();
    complete(op, -error_number);
    return;
  }
  if (script_)
    if (auto result = script_(op.request)) {
      complete(op, *result);
      return;
    }
  pending_.push_back({&op, now_ + op.request.after});
}

/// Sends what the socket takes now.
int32_t simulated_ring::send(const io_request& r) {
  constexpr auto code = io_code::sendmsg;
  if (!sends_at_once_ || !failures_[code].empty() || held_codes_[code] || script_)
    return -EAGAIN;
  uint32_t limit = limits_[code];
  uint32_t bytes = limit == 0 ? r.length : std::min(r.length, limit);
  return outcome(::send(r.fd, r.data, bytes, r.flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

void simulated_ring::cancel(operation& op) {
  auto found =
      std::find_if(pending_.begin(), pending_.end(), [&](const waiting& item) { return item.op == &op; });
  if (found == pending_.end())
    return; // the operation has completed, whether it is held back or not
  pending_.erase(found);
  ++cancelled_;
  complete(op, -ECANCELED);
}

size_t simulated_ring::reap(std::span<completion> out) {
  turn();
  if (seed_ != 0)
    std::shuffle(ready_.begin(), ready_.end(), random_);
  auto n = std::min(out.size(), ready_.size());
  std::copy_n(ready_.begin(), n, out.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

int simulated_ring::register_arena(void*, uint64_t size) {
  if (!grant_buffers_ || size == 0)
    return -1;
  auto first = slots_;
  slots_ += static_cast<int>((size + buffer_slot_bytes - 1) / buffer_slot_bytes);
  return first;
}

void simulated_ring::unregister_arena(int, uint64_t) {}

void simulated_ring::turn() {
  for (auto i = pending_.begin(); i != pending_.end();) {
    auto result = attempt(*i);
    if (!result) {
      ++i;
      continue;
    }
    auto* op = i->op;
    i = pending_.erase(i);
    complete(*op, *result);
  }
}

void simulated_ring::complete(operation& op, int32_t result) {
  bool held = held_codes_[op.request.code] || (held_ones_ && held_ones_(op.request));
  auto& list = held ? held_ : ready_;
  list.push_back({&op, result, 0});
}

std::optional<int32_t> simulated_ring::attempt(const waiting& item) {
  auto& r = item.op->request;
  switch (r.code) {
    case io_code::nop: return 0;
    case io_code::statx:
      return outcome(::statx(AT_FDCWD, r.path, 0, STATX_BASIC_STATS, static_cast<struct statx*>(r.data)));
    case io_code::fsync: return outcome(::fsync(r.fd));
    case io_code::timeout: return now_ >= item.deadline ? std::optional<int32_t>{-ETIME} : std::nullopt;
    case io_code::poll: {
      auto seen = poll_now(r.fd, r.events);
      return seen != 0 ? std::optional<int32_t>{seen} : std::nullopt;
    }
    case io_code::accept:
      if (poll_now(r.fd, POLLIN) == 0)
        return std::nullopt;
      return outcome(::accept4(r.fd, nullptr, nullptr, r.flags));
    default: return attempt_transfer(r);
  }
}

std::optional<int32_t> simulated_ring::attempt_transfer(const io_request& r) {
  bool reading = r.code == io_code::recvmsg || r.code == io_code::read || r.code == io_code::readv;
  if (poll_now(r.fd, reading ? POLLIN : POLLOUT) == 0)
    return std::nullopt;
  ssize_t n = 0;
  if (r.code == io_code::recvmsg || r.code == io_code::sendmsg) {
    auto vectors = cut(r.message->msg_iov, r.message->msg_iovlen, limits_[r.code]);
    msghdr message = *r.message;
    message.msg_iov = vectors.data();
    if (reading) {
      n = ::recvmsg(r.fd, &message, r.flags | MSG_DONTWAIT);
      r.message->msg_controllen = message.msg_controllen;
      r.message->msg_namelen = message.msg_namelen;
      r.message->msg_flags = message.msg_flags;
    } else {
      n = ::sendmsg(r.fd, &message, r.flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  } else if (r.code == io_code::read || r.code == io_code::write) {
    iovec one{r.data, r.length};
    n = transfer(r, reading, cut(&one, 1, limits_[r.code]));
  } else {
    n = transfer(r, reading, cut(static_cast<const iovec*>(r.data), r.length, limits_[r.code]));
  }
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return std::nullopt;
  return outcome(n);
}

} // namespace terrace::runtime
