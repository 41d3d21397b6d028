// A stream of the host device: a thread that executes its steps in order.
#pragma once

#include "gpu/host/host_device.hpp"
#include "gpu/host/host_memory.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

namespace terrace::gpu {

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
