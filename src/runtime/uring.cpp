#include "runtime/uring.hpp"
#include "runtime/buffer_slots.hpp"
#include "runtime/ring.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <vector>

namespace terrace::runtime {

namespace {

// An operation's user data is the address of its record; these two values are never an address.
constexpr uint64_t wake_data = 1;
constexpr uint64_t cancel_data = 2;

/// Returns the error number of a call that would fail again, or 0.
int lasting(int result) {
  switch (result) {
    case -EINTR:
    case -EAGAIN: // the kernel has no memory for a request
    case -ENOMEM:
    case -EBUSY: // completions must be reaped first
    case -ETIME: return 0;
    default: return result < 0 ? -result : 0;
  }
}

class uring final : public ring {
 public:
  uring(io_uring kernel, unsigned flags, uint32_t slots) : ring_(kernel), flags_(flags), slots_(slots) {
    // saves a descriptor lookup per enter; the ring also works without it
    (void) io_uring_register_ring_fd(&ring_);
  }

  ~uring() override { close(); }

  // Receives are submitted last: they wait for a peer, while peers wait for the other operations' answers.
  void start(operation& op) override {
    if (op.request.code == io_code::recvmsg) {
      receives_.push_back(&op);
      return;
    }
    if (backlog_.empty()) {
      if (auto* sqe = next_sqe()) {
        prepare(*sqe, op);
        return;
      }
    }
    backlog_.push_back(&op);
  }

  void cancel(operation& op) override {
    if (std::erase(backlog_, &op) + std::erase(receives_, &op) + std::erase(due_, &op) != 0) {
      ended_early_.push_back(&op);
      return;
    }
    if (auto* sqe = next_sqe()) {
      prepare_cancel(*sqe, op);
      return;
    }
    cancels_.push_back(&op);
  }

  size_t reap(std::span<completion> out) override {
    size_t n = 0;
    while (n < out.size() && !ended_early_.empty()) {
      out[n++] = {ended_early_.front(), -ECANCELED, 0};
      ended_early_.pop_front();
    }
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      if (n == out.size())
        break;
      ++seen;
      auto data = io_uring_cqe_get_data64(cqe);
      if (data == wake_data)
        wake_armed_ = false;
      else if (data != cancel_data)
        out[n++] = ended(*reinterpret_cast<operation*>(data), *cqe);
    }
    io_uring_cq_advance(&ring_, seen);
    if (n < out.size())
      n += reap_sends(out.subspan(n));
    // A cancel that waits for room must not outlive its operation, because the record may then belong to
    // another one.
    for (size_t i = 0; i < n && !cancels_.empty(); ++i)
      std::erase(cancels_, out[i].op);
    return n;
  }

  bool has_unsubmitted() const override {
    return io_uring_sq_ready(&ring_) != 0 || !backlog_.empty() || !receives_.empty() || !due_.empty() ||
           !cancels_.empty();
  }

  bool wants_enter() const override {
    return (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }

  bool has_ready() const override {
    return io_uring_cq_ready(&ring_) != 0 || !ended_early_.empty() || wants_enter() || has_sent();
  }

  int enter() override {
    drain_backlog();
    submit_receives();
    return submit();
  }

  int enter_between() override {
    drain_backlog();
    take_receives(due_, false);
    if (due_.empty())
      due_.swap(receives_);
    return submit();
  }

  int wait() override {
    drain_backlog();
    submit_receives();
    arm_wake();
    if (change_a_slot())
      return lasting(io_uring_submit_and_get_events(&ring_));
    if (!ended_early_.empty() || !wake_armed_ || awaits_a_send())
      return lasting(io_uring_submit_and_get_events(&ring_));
    return lasting(io_uring_submit_and_wait(&ring_, 1));
  }

  void wake() noexcept override { wake_.signal(); }

  int register_arena(void* data, uint64_t size) override;
  void unregister_arena(int slot, uint64_t size) override;

  ring_features features() const override {
    return {.single_issuer = (flags_ & IORING_SETUP_SINGLE_ISSUER) != 0,
            .defer_taskrun = (flags_ & IORING_SETUP_DEFER_TASKRUN) != 0,
            .registered_buffers = slots_.any()};
  }

  void close() override {
    if (closed_)
      return;
    closed_ = true;
    disarm_wake();
    io_uring_queue_exit(&ring_);
  }

 private:
  int submit() {
    int refused = lasting(io_uring_submit_and_get_events(&ring_));
    // Also if the worker never waits, because their memory is not free until then.
    if (!leaving_slots_.empty())
      (void) change_a_slot();
    return refused;
  }

  io_uring_sqe* next_sqe() {
    auto* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) {
      (void) io_uring_submit(&ring_);
      sqe = io_uring_get_sqe(&ring_);
    }
    return sqe;
  }

  void drain_backlog() {
    while (!cancels_.empty()) {
      auto* sqe = next_sqe();
      if (sqe == nullptr)
        return;
      prepare_cancel(*sqe, *cancels_.front());
      cancels_.erase(cancels_.begin());
    }
    while (!backlog_.empty()) {
      auto* sqe = next_sqe();
      if (sqe == nullptr)
        return;
      prepare(*sqe, *backlog_.front());
      backlog_.pop_front();
    }
  }

  void submit_receives() {
    take_receives(due_, true);
    take_receives(receives_, true);
  }

  /// `waits`: the data has rarely arrived already, so the kernel need not look before it waits for it.
  void take_receives(std::vector<operation*>& from, bool waits) {
    size_t taken = 0;
    for (; taken < from.size(); ++taken) {
      auto* sqe = backlog_.empty() ? next_sqe() : nullptr;
      if (sqe == nullptr)
        break;
      prepare(*sqe, *from[taken]);
      // The flag exists since Linux 5.19; deferred task work is newer.
      if (waits && (flags_ & IORING_SETUP_DEFER_TASKRUN) != 0)
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    }
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(taken));
  }

  static void prepare_cancel(io_uring_sqe& sqe, operation& op) {
    io_uring_prep_cancel64(&sqe, reinterpret_cast<uint64_t>(&op), 0);
    io_uring_sqe_set_data64(&sqe, cancel_data);
  }

  completion ended(operation& op, const io_uring_cqe& cqe);
  size_t reap_sends(std::span<completion> out);
  bool has_sent() const;
  bool awaits_a_send() const;
  void prepare(io_uring_sqe& sqe, operation& op);
  bool change_a_slot();
  int register_next_slot();
  void arm_wake();
  void disarm_wake();

  io_uring ring_;
  unsigned flags_;
  buffer_slots slots_;
  wake_event wake_;
  bool wake_armed_ = false;
  bool closed_ = false;
  std::deque<uint32_t> leaving_slots_; // slots that are registered and will be unregistered
  std::vector<operation*> receives_;   // receives started since `enter_between`
  std::vector<operation*> due_;        // receives started before it
  std::deque<operation*> backlog_;     // operations that wait because the kernel's queue was full
  std::deque<operation*> ended_early_; // operations cancelled before submission
  // Sends that are submitted or about to be; they complete only if they fail.
  std::vector<operation*> sends_;
  std::vector<operation*> cancels_; // cancels that wait because the kernel's queue was full
};

completion uring::ended(operation& op, const io_uring_cqe& cqe) {
  if (!sends_.empty() && op.request.code == io_code::send)
    std::erase(sends_, &op);
  return {&op, cqe.res, cqe.flags};
}

/// The kernel has taken the submitted operations, and their completions were reaped, so the remaining sends
/// have succeeded.
bool uring::has_sent() const {
  return !sends_.empty() && io_uring_sq_ready(&ring_) == 0 && io_uring_cq_ready(&ring_) == 0 &&
         (IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) == 0;
}

bool uring::awaits_a_send() const {
  return std::any_of(sends_.begin(), sends_.end(), [](const operation* op) {
    return op->request.quiet == nullptr || op->request.quiet->announced;
  });
}

size_t uring::reap_sends(std::span<completion> out) {
  if (!has_sent())
    return 0;
  size_t n = std::min(out.size(), sends_.size());
  for (size_t i = 0; i < n; ++i)
    out[i] = {sends_[i], static_cast<int32_t>(sends_[i]->request.length), 0};
  sends_.erase(sends_.begin(), sends_.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

void uring::prepare(io_uring_sqe& sqe, operation& op) {
  auto& r = op.request;
  bool fixed = slots_.holds(r.fixed_buffer, r.data, r.length);
  switch (r.code) {
    case io_code::nop: io_uring_prep_nop(&sqe); break;
    case io_code::accept: io_uring_prep_accept(&sqe, r.fd, nullptr, nullptr, r.flags); break;
    case io_code::recvmsg:
      io_uring_prep_recvmsg(&sqe, r.fd, r.message, static_cast<unsigned>(r.flags));
      break;
    case io_code::sendmsg:
      io_uring_prep_sendmsg(&sqe, r.fd, r.message, static_cast<unsigned>(r.flags));
      break;
    case io_code::send:
      // The kernel either takes all bytes during submission or completes the send with fewer. A success
      // without a completion does not end a wait. The flags exist since Linux 5.17 and 5.19; deferred task
      // work is newer.
      io_uring_prep_send(&sqe, r.fd, r.data, r.length, r.flags | MSG_DONTWAIT | MSG_WAITALL);
      if ((flags_ & IORING_SETUP_DEFER_TASKRUN) != 0) {
        sqe.flags |= IOSQE_CQE_SKIP_SUCCESS;
        sends_.push_back(&op);
      }
      break;
    case io_code::read:
      if (fixed)
        io_uring_prep_read_fixed(&sqe, r.fd, r.data, r.length, r.offset, r.fixed_buffer);
      else
        io_uring_prep_read(&sqe, r.fd, r.data, r.length, r.offset);
      break;
    case io_code::write:
      if (fixed)
        io_uring_prep_write_fixed(&sqe, r.fd, r.data, r.length, r.offset, r.fixed_buffer);
      else
        io_uring_prep_write(&sqe, r.fd, r.data, r.length, r.offset);
      break;
    case io_code::readv:
      io_uring_prep_readv(&sqe, r.fd, static_cast<const iovec*>(r.data), r.length, r.offset);
      break;
    case io_code::writev:
      io_uring_prep_writev(&sqe, r.fd, static_cast<const iovec*>(r.data), r.length, r.offset);
      break;
    case io_code::fsync: io_uring_prep_fsync(&sqe, r.fd, 0); break;
    case io_code::poll: io_uring_prep_poll_add(&sqe, r.fd, r.events); break;
    case io_code::statx:
      io_uring_prep_statx(&sqe, AT_FDCWD, r.path, 0, STATX_BASIC_STATS, static_cast<struct statx*>(r.data));
      break;
    case io_code::timeout: {
      auto ns = std::max<int64_t>(0, r.after.count());
      op.after = {ns / 1'000'000'000, ns % 1'000'000'000};
      static_assert(sizeof(op.after) == sizeof(__kernel_timespec));
      io_uring_prep_timeout(&sqe, reinterpret_cast<__kernel_timespec*>(op.after.data()), 0, 0);
      break;
    }
  }
  io_uring_sqe_set_data64(&sqe, reinterpret_cast<uint64_t>(&op));
}

void uring::arm_wake() {
  if (wake_armed_)
    return;
  if (auto* sqe = next_sqe()) {
    io_uring_prep_read(sqe, wake_.fd(), wake_.value(), sizeof(uint64_t), 0);
    io_uring_sqe_set_data64(sqe, wake_data);
    wake_armed_ = true;
  }
}

// The armed read writes into this object, so it must end before the object does.
void uring::disarm_wake() {
  if (!wake_armed_)
    return;
  wake_.signal();
  while (wake_armed_) {
    completion ignored[8];
    if (lasting(io_uring_submit_and_wait(&ring_, 1)) != 0)
      return;
    (void) reap(ignored);
  }
}

// The kernel lets only the ring's own thread change its buffers (SINGLE_ISSUER). Pinning or releasing a slot takes
// 2 ms, so slots are changed one by one when the worker has nothing else to do. Until then, and if memlock ends in
// the middle of an arena, operations in those slots use plain buffers.
int uring::register_arena(void* data, uint64_t size) {
  if (int known = slots_.find(data, size); known >= 0)
    return known; // another disk of this worker has registered it
  auto range = slots_.reserve(data, size);
  return range.count == 0 ? -1 : static_cast<int>(range.first);
}

void uring::unregister_arena(int slot, uint64_t size) {
  auto gone = slots_.forget(slot, size);
  for (uint32_t i = gone.first; i < gone.first + gone.count; ++i)
    if (slots_.registered(i)) // a slot that is not yet registered has nothing to unregister
      leaving_slots_.push_back(i);
}

/// Unregisters or registers one slot. Returns false if none is left to change.
bool uring::change_a_slot() {
  if (!leaving_slots_.empty()) {
    iovec nothing{nullptr, 0};
    __u64 tag = 0;
    (void) io_uring_register_buffers_update_tag(&ring_, leaving_slots_.front(), &nothing, &tag, 1);
    leaving_slots_.pop_front();
    return true;
  }
  if (slots_.next_unregistered() < 0 || slots_.gave_up())
    return false;
  switch (register_next_slot()) {
    case 0: slots_.mark_registered(); break;
    case EFAULT:
    case EOPNOTSUPP: slots_.skip(); break;
    default: slots_.give_up(); // memlock is exhausted, or the kernel has no such tables
  }
  return true;
}

/// Returns 0, or the error number of the kernel's refusal.
int uring::register_next_slot() {
  auto next = static_cast<uint32_t>(slots_.next_unregistered());
  if (slots_.data(next) == nullptr)
    return EFAULT; // the slot was forgotten before its turn
  if (!slots_.table_registered) {
    if (int refused = io_uring_register_buffers_sparse(&ring_, slots_.capacity()); refused != 0)
      return -refused;
    slots_.table_registered = true;
  }
  iovec piece{slots_.data(next), slots_.size(next)};
  __u64 tag = 0;
  int updated = io_uring_register_buffers_update_tag(&ring_, next, &piece, &tag, 1);
  return updated == 1 ? 0 : updated < 0 ? -updated : EINVAL;
}

} // namespace

namespace {

constexpr uint32_t entries_min = 8;

/// The kernel charges a ring's memory to RLIMIT_MEMLOCK (Linux before 5.12, and from 6.14 on) unless the process may
/// lock memory. With a low limit a smaller ring is better than none: operations then wait in its backlog.
int set_up(uint32_t entries, unsigned flags, io_uring& kernel) {
  for (;; entries /= 2) {
    std::memset(&kernel, 0, sizeof kernel);
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = entries * 4;
    int code = io_uring_queue_init_params(entries, &kernel, &params);
    if (code != -ENOMEM || entries / 2 < entries_min)
      return code;
  }
}

} // namespace

result<std::unique_ptr<ring>> make_uring(const runtime_options& options) {
  constexpr unsigned common = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  constexpr unsigned attempts[] = {
      common | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG, // Linux 6.1
      common | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG,                                                            // Linux 6.0
      common | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, // Linux 5.19
      common | IORING_SETUP_SUBMIT_ALL,                                                         // Linux 5.18
      common,
  };
  int code = 0;
  for (auto flags : attempts) {
    io_uring kernel;
    code = set_up(options.ring_entries, flags, kernel);
    if (code == 0)
      return std::unique_ptr<ring>(std::make_unique<uring>(kernel, flags, options.buffer_slots));
    if (code != -EINVAL)
      break;
  }
  return fail(errc::unsupported, explain_ring_error("io_uring_setup", -code));
}

} // namespace terrace::runtime
