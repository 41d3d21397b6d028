// A stream of the host device: a thread that executes its steps in order.
#pragma once

#include "gpu/device.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

namespace terrace::gpu {

// A device for machines without a GPU: threads that copy between mappings, in the same order as a GPU's
// streams.

struct host_device_options {
  /// For tests: called before each part is copied, on the thread of its stream. The error `gone` simulates
  /// the loss of the device.
  std::function<std::optional<error>()> fault;
};

/// Its memory consists of memfds, sealed against shrinking, which other processes map by descriptor.
result<std::shared_ptr<device>> make_host_device(host_device_options options = {});

// Memory and pages of the host device.

class host_memory : public memory {
 public:
  /// The process's own memory, or another process's.
  host_memory(unique_fd descriptor, mapping pages)
      : descriptor_(std::move(descriptor)), pages_(std::make_shared<const mapping>(std::move(pages))) {}
  explicit host_memory(std::shared_ptr<const mapping> pages) : pages_(std::move(pages)) {}
  /// `bytes` from `offset` on, which may only be read.
  host_memory(std::shared_ptr<const mapping> pages, uint64_t offset, uint64_t bytes)
      : pages_(std::move(pages)), offset_(offset), bytes_(bytes), writable_(false) {}

  uint64_t bytes() const override { return bytes_; }
  bool writable() const override { return writable_; }
  result<memory_handle> share() const override;
  std::byte* data() const { return pages_->data() + offset_; }

 private:
  unique_fd descriptor_;
  std::shared_ptr<const mapping> pages_;
  uint64_t offset_ = 0;
  uint64_t bytes_ = pages_->size();
  bool writable_ = true;
};

class host_page : public attached_page {
 public:
  explicit host_page(std::shared_ptr<const generation_page> page) : attached_page(std::move(page)) {}
};

/// The state that the streams of a host device share.
struct host_device_state {
  host_device_options options;
  std::atomic<bool> lost = false;
};

class host_engine : public copy_engine {
 public:
  host_engine(std::shared_ptr<host_device_state> state, std::shared_ptr<completion_queue> completions);
  /// Finishes the issued steps. Waits must have ended or be about to end.
  ~host_engine() override;

  result<void> issue(const step& wanted) override;
  result<void> check() override;

 private:
  void run();
  std::optional<error> perform(const step& wanted);

  const std::shared_ptr<host_device_state> state_;
  const std::shared_ptr<completion_queue> completions_;
  uint64_t failed_request_ = 0; ///< only the thread uses it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<step> steps_;
  bool ending_ = false;
  std::thread thread_; ///< started last
};

} // namespace terrace::gpu
