// Work that an engine does for Terrace on its own GPU and streams: waiting for layers, and copying small
// pieces with a kernel.
//
//   auto gpu = engine_device::open({.device = uuid});
//   (*gpu)->attach(*page_memory);                            // memory of a layer_ring, or of counters that stores wait for
//   (*gpu)->gather(stream, blocks, buffer);                  // before a store of `buffer`, a region, ...
//   (*gpu)->write(stream, computed);                         // ... which waits for this counter (store_request::after) ...
//   (*gpu)->ring(stream, *daemon->bell());                   // ... until the daemon is told to look
//   (*gpu)->wait(stream, load.layer(0));                     // after a load into `buffer`, ...
//   (*gpu)->scatter(stream, blocks, buffer);                 // ... into the blocks
//   (*gpu)->write(stream, load.passed());
//
// Optional: nothing else of libterrace needs a driver, which is looked up when this is opened. Building with
// it needs no toolkit.
#pragma once

#include "base/error.hpp"
#include "client/bell.hpp"
#include "client/region.hpp"
#include "client/types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace terrace::client {

/// `count` pieces of `bytes` each in memory of the GPU; piece i is at `address + i * stride`.
struct device_run {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 1;
};

struct engine_device_options {
  std::string device;                  ///< the UUID of the GPU
  std::string driver = "libcuda.so.1"; ///< file name of the driver library
  /// `prefers_kernel` returns true for smaller pieces. Measured on an H100 (PCIe 5): with 64 KiB the copy
  /// engines are as fast (decision 095).
  uint64_t kernel_below_bytes = 64 << 10;
  std::span<const std::byte> kernel; ///< code for cuModuleLoadData that replaces the built-in one
};

/// Uses the primary context of the GPU, as frameworks do. Streams are the engine's (a CUstream or
/// cudaStream_t), and not the default one. Calls queue work in them and return. Safe on all threads, after
/// `attach`.
class engine_device {
 public:
  /// Errors: `unsupported` without a driver, or if the GPU has no stream memory operations; `not_found` if
  /// the driver does not show this GPU; `bad_request`.
  static result<std::unique_ptr<engine_device>> open(const engine_device_options& options);
  ~engine_device(); ///< precondition: no stream uses the page or the kernel any more
  engine_device(const engine_device&) = delete;
  engine_device& operator=(const engine_device&) = delete;

  // ---- counters ----

  /// Lets streams use the counters in this memory, which outlives this object. Call once.
  result<void> attach(const region& page);
  /// Nothing queued later in the stream begins before the counter has reached its value.
  result<void> wait(void* stream, const layer_counter& counter) const;
  /// Sets the counter to its value when everything queued earlier in the stream is done.
  result<void> write(void* stream, const layer_counter& counter) const;
  /// Rings the bell when everything queued earlier in the stream is done, such as the write of a counter. The
  /// bell stays open until then, even if all other handles are gone. Work queued later in the stream begins
  /// afterwards, so one ring for several counters is enough.
  result<void> ring(void* stream, const bell& of) const;

  // ---- small pieces ----

  /// False if this libterrace was built without NVIDIA's toolkit and no code was given.
  bool has_kernel() const;
  /// True if the kernel copies pieces of this size faster than the copy engines do, to which a region of
  /// scattered pieces leaves them.
  bool prefers_kernel(uint64_t piece_bytes) const;
  /// Copies the pieces, in order and without gaps, to `buffer` and what follows it. The buffer is as long as
  /// all pieces together. Errors: `unsupported` without a kernel; `bad_request` for an empty run; the
  /// driver's.
  result<void> gather(void* stream, std::span<const device_run> pieces, uint64_t buffer) const;
  /// Copies the buffer back to the pieces.
  result<void> scatter(void* stream, std::span<const device_run> pieces, uint64_t buffer) const;

 private:
  struct parts;
  explicit engine_device(std::unique_ptr<parts> made);
  result<void> copy(void* stream, std::span<const device_run> pieces, uint64_t buffer, bool gathers) const;
  result<uint64_t> address_of(const layer_counter& counter) const;

  std::unique_ptr<parts> parts_;
};

} // namespace terrace::client
