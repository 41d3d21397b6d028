// Memory of a device as an engine has it: the simulated driver's, or that of the device in host memory.
#pragma once

#include "client/region.hpp"
#include "client/types.hpp"
#include "gpu/device.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace terrace::e2e {

/// How an engine passes its memory to the daemon.
enum class device_kind : uint8_t { host, cuda_handle, cuda_descriptor };
std::string to_string(device_kind kind);

/// How many GPUs the driver has.
size_t gpus();

/// Throws if there is no such device.
class engine_memory {
 public:
  /// `number`: of the GPU.
  engine_memory(device_kind kind, uint64_t bytes, size_t number = 0);

  /// For `register_device_region`.
  client::device_allocation shared() const;
  uint64_t bytes() const { return memory_->bytes(); }
  uint64_t address() const; ///< of a GPU's memory

  void write(std::span<const uint8_t> all);
  std::vector<uint8_t> read();

 private:
  friend class engine_stream;
  void copy(std::span<uint8_t> host, bool into_device);

  std::string name_;
  std::shared_ptr<gpu::device> device_;
  std::shared_ptr<gpu::memory> memory_;
  gpu::memory_handle handle_;
};

/// A stream of the engine. What is queued happens in order, without this thread.
class engine_stream {
 public:
  /// `page` has the counters.
  engine_stream(const engine_memory& of, const client::region& page);

  void wait(const client::layer_counter& counter); ///< nothing behind it happens before
  void write(const client::layer_counter& counter);
  void read(uint64_t offset, uint64_t bytes); ///< of the engine's memory

  /// Blocks until everything has happened. Returns what was read, one after the other.
  std::vector<uint8_t> finish();
  /// The number of queued steps that have ended.
  size_t ended();

 private:
  gpu::copy_engine::step next() const;
  void queue(gpu::copy_engine::step step);

  static constexpr uint64_t read_max = 16 << 20;
  const gpu::memory* from_;
  std::shared_ptr<gpu::device> device_;
  std::shared_ptr<const mapping> pages_;
  std::shared_ptr<gpu::memory> read_into_;
  std::shared_ptr<gpu::attached_page> page_;
  std::shared_ptr<gpu::completion_queue> completions_;
  std::deque<gpu::copy_part> parts_;
  uint64_t read_ = 0;
  size_t queued_ = 0, ended_ = 0;
  std::unique_ptr<gpu::copy_engine> engine_; ///< ends first
};

} // namespace terrace::e2e
