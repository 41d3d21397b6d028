// A CUDA stream behind the device interface.
#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/device.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

namespace terrace::gpu {

// Pages of generations of a GPU behind the device interface.

class cuda_page : public attached_page {
 public:
  using attached_page::attached_page;
  /// Signals behind all work that the stream has.
  virtual result<void> signal(const cuda::stream& on, generation next) const = 0;
  /// Work that follows in the stream does not begin before.
  virtual result<void> await(const cuda::stream& on, generation wanted) const = 0;
};

/// The stream writes and reads the generations itself.
class cuda_counters : public cuda_page {
 public:
  cuda_counters(std::shared_ptr<const generation_page> page, cuda::registration registration)
      : cuda_page(std::move(page)), registration_(std::move(registration)) {}
  result<void> signal(const cuda::stream& on, generation next) const override;
  result<void> await(const cuda::stream& on, generation wanted) const override;

 private:
  cuda::registration registration_; ///< destroyed before the page
};

/// The stream records events, and the processor that had it do so stores the generations. The driver does not
/// know the page.
class cuda_events : public cuda_page {
 public:
  static result<std::shared_ptr<cuda_events>> make(const std::shared_ptr<const cuda::context>& context,
                                                   std::shared_ptr<const generation_page> page,
                                                   uint32_t events);
  result<void> signal(const cuda::stream& on, generation next) const override;
  result<void> await(const cuda::stream& on, generation wanted) const override;

 private:
  cuda_events(std::shared_ptr<const generation_page> page, std::vector<cuda::event> events)
      : cuda_page(std::move(page)), events_(std::move(events)) {}

  std::vector<cuda::event> events_; ///< one event per slot
};

// Tells which strided copies are one 2D copy.

/// A 2D copy is one call, however many rows it has; a batch takes 0.3 to 0.8 us of a processor for each piece (H100, H200).
constexpr uint64_t rows_of_plane_min = 4;
/// CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices, in bytes.
constexpr uint64_t pitch_max = (1ULL << 31) - 1;

/// True if `count` pieces, at these distances from each other in bytes, are one 2D copy. They do not overlap:
/// `check` of copy_request.hpp refuses such requests.
constexpr bool is_plane(uint64_t count, uint64_t source_stride, uint64_t destination_stride) {
  return count >= rows_of_plane_min && source_stride <= pitch_max && destination_stride <= pitch_max;
}

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
