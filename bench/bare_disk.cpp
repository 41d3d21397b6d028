#include "bench/bare_disk.hpp"

#include "bench/harness.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace terrace::bench {

namespace {
constexpr uint64_t buffer_bytes_max = 1ULL << 30; // largest size that the kernel registers as one buffer

uint64_t whole_blocks(uint64_t bytes, uint32_t block_bytes, uint32_t depth) {
  return std::max<uint64_t>(bytes / block_bytes, depth) * block_bytes;
}
} // namespace

bare_disk::bare_disk(const std::string& folder, uint64_t bytes, uint32_t block_bytes, uint64_t memory_bytes,
                     uint32_t depth)
    : path_(folder + "/bare-disk"), bytes_(bytes / block_bytes * block_bytes), block_bytes_(block_bytes),
      depth_(depth), memory_bytes_(whole_blocks(memory_bytes, block_bytes, depth)) {
  forget();
}

bare_disk::bare_disk(unique_fd fd, bool direct, uint64_t begin, uint64_t bytes, uint32_t block_bytes,
                     uint64_t memory_bytes, uint32_t depth)
    : begin_(begin), bytes_(bytes / block_bytes * block_bytes), block_bytes_(block_bytes), depth_(depth),
      memory_bytes_(whole_blocks(memory_bytes, block_bytes, depth)), fd_(std::move(fd)), direct_(direct) {}

bare_disk bare_disk::on(const std::string& file, uint64_t begin, uint64_t bytes, uint32_t block_bytes,
                        uint64_t memory_bytes, uint32_t depth) {
  unique_fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  bool direct = static_cast<bool>(fd);
  if (!direct)
    fd.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    give_up("cannot open " + file);
  return bare_disk(std::move(fd), direct, begin, bytes, block_bytes, memory_bytes, depth);
}

bare_disk::~bare_disk() {
  if (!path_.empty())
    ::unlink(path_.c_str());
}

std::string bare_disk::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

void bare_disk::forget() {
  fd_.reset();
  ::unlink(path_.c_str());
  constexpr int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
  fd_.reset(::open(path_.c_str(), flags | O_DIRECT, 0600));
  direct_ = static_cast<bool>(fd_);
  if (!direct_)
    fd_.reset(::open(path_.c_str(), flags, 0600));
  if (!fd_ || ::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes_)) != 0)
    give_up("cannot allocate " + std::to_string(bytes_) + " bytes in " + path_);
}

double bare_disk::pass(bool writing) {
  if (!memory_)
    memory_ = std::make_unique<shared_memory>(memory_bytes_);
  auto memory = memory_->bytes();
  io_uring ring;
  unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  if (io_uring_queue_init(depth_ * 2, &ring, flags) != 0 && io_uring_queue_init(depth_ * 2, &ring, 0) != 0)
    give_up("io_uring is not permitted here");
  // Memory is registered if memlock allows it, as the daemon does with its arenas.
  uint64_t in_a_buffer = buffer_bytes_max / block_bytes_; // in blocks
  std::vector<iovec> buffers;
  for (uint64_t at = 0; at < memory.size(); at += in_a_buffer * block_bytes_)
    buffers.push_back(
        {memory.data() + at, std::min<uint64_t>(in_a_buffer * block_bytes_, memory.size() - at)});
  bool fixed = io_uring_register_buffers(&ring, buffers.data(), static_cast<unsigned>(buffers.size())) == 0;
  uint64_t next = 0, running = 0;
  std::deque<uint64_t> free_slots; // least recently used first
  for (uint64_t i = 0; i < memory.size() / block_bytes_; ++i)
    free_slots.push_back(i);
  double begin = seconds_now();
  while (next < bytes_ || running > 0) {
    while (next < bytes_ && running < depth_) {
      uint64_t slot = free_slots.front();
      free_slots.pop_front();
      int buffer = static_cast<int>(slot / in_a_buffer);
      io_uring_sqe* sqe = io_uring_get_sqe(&ring);
      void* at = memory.data() + slot * block_bytes_;
      if (writing && fixed)
        io_uring_prep_write_fixed(sqe, fd_.get(), at, block_bytes_, begin_ + next, buffer);
      else if (writing)
        io_uring_prep_write(sqe, fd_.get(), at, block_bytes_, begin_ + next);
      else if (fixed)
        io_uring_prep_read_fixed(sqe, fd_.get(), at, block_bytes_, begin_ + next, buffer);
      else
        io_uring_prep_read(sqe, fd_.get(), at, block_bytes_, begin_ + next);
      io_uring_sqe_set_data64(sqe, slot);
      next += block_bytes_;
      ++running;
    }
    io_uring_submit_and_wait(&ring, 1);
    io_uring_cqe* cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe(&ring, head, cqe) {
      ++seen;
      if (cqe->res != static_cast<int>(block_bytes_))
        give_up("a bare read or write was short: " + std::to_string(cqe->res));
      free_slots.push_back(io_uring_cqe_get_data64(cqe));
    }
    io_uring_cq_advance(&ring, seen);
    running -= seen;
  }
  double seconds = seconds_now() - begin;
  io_uring_queue_exit(&ring);
  return static_cast<double>(bytes_) / seconds;
}

} // namespace terrace::bench
