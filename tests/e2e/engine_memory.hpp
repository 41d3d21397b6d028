// Memory of a device as an engine has it: that of the simulated driver, or of the device in host memory.
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

/// Returns the number of the driver's GPUs.
size_t gpus();

/// The constructor throws if there is no such device.
class engine_memory {
 public:
  /// `number`: number of the GPU.
  engine_memory(device_kind kind, uint64_t bytes, size_t number = 0);

  /// Returns the argument for `register_device_region`.
  client::device_allocation shared() const;
  uint64_t bytes() const { return memory_->bytes(); }
  uint64_t address() const; ///< address of GPU memory

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

/// A stream of the engine. Queued work happens in order, without this thread.
class engine_stream {
 public:
  /// `page` has the counters.
  engine_stream(const engine_memory& of, const client::region& page);

  void wait(const client::layer_counter& counter); ///< nothing queued later happens before
  void write(const client::layer_counter& counter);
  void read(uint64_t offset, uint64_t bytes); ///< reads the engine's memory

  /// Blocks until everything has happened. Returns the bytes that were read, one after the other.
  std::vector<uint8_t> finish();
  /// Returns the number of queued steps that have ended.
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
  std::unique_ptr<gpu::copy_engine> engine_; ///< destroyed first
};

} // namespace terrace::e2e
