// A CUDA stream behind the device interface.
#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cuda/cuda_page.hpp"
#include "gpu/cuda/stream.hpp"

#include <atomic>
#include <deque>

namespace terrace::gpu {

/// The part that all engines of a device share.
struct cuda_shared {
  std::shared_ptr<const cuda::context> context;
  cuda_device_options options;
  bool read_only_pins = false;
  bool stream_memory_ops = false;
  cuda::module_handle module = nullptr;   ///< has the copy kernel; may be null
  cuda::function_handle kernel = nullptr; ///< terrace_copy_runs

  /// Errors: `unsupported` if built without the kernel; the driver's.
  result<void> load_kernel();
  ~cuda_shared();
};

/// Completions come from host functions, which the driver calls on its own thread. Work behind a host function waits
/// for its end, and copies must not wait. So host functions are in a stream of their own, which waits for an event of
/// the copies' stream. After an error in the context no host functions are called; `check` detects that.
class cuda_engine : public copy_engine {
 public:
  cuda_engine(std::shared_ptr<const cuda_shared> shared, cuda::stream stream, cuda::stream reports,
              cuda::event issued, std::shared_ptr<completion_queue> completions)
      : shared_(std::move(shared)), stream_(std::move(stream)), reports_(std::move(reports)),
        issued_(std::move(issued)), completions_(std::move(completions)) {}
  ~cuda_engine() override;

  result<void> issue(const step& wanted) override;
  result<void> flush() override;
  result<void> check() override;

 private:
  /// A run with addresses.
  struct run {
    cuda::device_pointer destination = 0;
    cuda::device_pointer source = 0;
    uint64_t destination_stride = 0;
    uint64_t source_stride = 0;
    uint64_t bytes = 0;
    uint64_t count = 1;
  };
  /// The argument of a host function. A host function costs more than 20 us, so small steps share one.
  struct fence {
    std::shared_ptr<completion_queue> completions;
    std::vector<uint64_t> tickets;
    std::atomic<bool> over = false;
  };

  result<void> start(const step& wanted);
  result<void> copy(const std::vector<run>& runs, bool inside_device);
  result<void> copy_batch_of(const std::vector<run>& runs);
  result<void> copy_planes(const std::vector<run>& runs);
  /// Copies runs as planes where possible, and the others as batches, or as single copies if there are no batches.
  result<void> copy_by_engines(const std::vector<run>& runs);
  static bool is_plane(const run& one);
  result<void> copy_plane(const run& one);
  result<void> copy_single(const std::vector<run>& runs);
  result<void> copy_by_kernel(const std::vector<run>& runs, unsigned blocks_max);
  /// The kernel copies the runs for which `smaller` is true, the copy engines copy the others.
  template <class Smaller>
  result<void> copy_divided(const std::vector<run>& runs, unsigned blocks_max, Smaller&& smaller);
  const cuda::context& home() const { return *shared_->context; }
  const cuda::functions& api() const { return home().api(); }

  std::shared_ptr<const cuda_shared> shared_;
  cuda::stream stream_, reports_;
  cuda::event issued_; ///< recorded behind all work that `reports_` tells of
  std::shared_ptr<completion_queue> completions_;
  std::deque<std::unique_ptr<fence>> fences_; ///< fences of steps in flight
  std::vector<uint64_t> untold_;              ///< tickets of issued steps without a host function behind them
  uint64_t untold_bytes_ = 0;
  bool lost_ = false;
};

} // namespace terrace::gpu
