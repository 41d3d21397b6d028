// A stream of the engine, made with the driver's own calls, that copies out of the engine's memory.
#pragma once

#include "engine_memory.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "tests/support/gpu_driver.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace terrace::e2e {

class cuda_stream {
 public:
  explicit cuda_stream(const engine_memory& of)
      : from_(of.address()),
        context_(value(cuda::context::retain(value(cuda::driver::open(test::driver_library())), 0))),
        pages_(value(client::region::create("reads", reads_max + sizeof(uint32_t)))),
        pinned_(value(cuda::registration::make(context_, std::as_writable_bytes(pages_.bytes())))),
        stream_(value(cuda::stream::make(context_))) {}

  void* handle() const { return stream_.get(); }
  const cuda::stream& operator*() const { return stream_; }
  const std::shared_ptr<const cuda::context>& context() const { return context_; }

  /// Reads the engine's memory when everything queued before is done.
  void read(uint64_t offset, uint64_t bytes) {
    call("cuMemcpyAsync", context_->api().MemcpyAsync, pinned_.address() + read_, from_ + offset,
         static_cast<size_t>(bytes), stream_.get());
    read_ += bytes;
  }
  /// Holds back everything queued later until `release`.
  void hold() {
    call("cuStreamWaitValue32", context_->api().StreamWaitValue32, stream_.get(),
         pinned_.address() + reads_max, ++holds_, static_cast<unsigned>(cuda::wait_value_geq));
  }
  void release() { std::atomic_ref(*reinterpret_cast<uint32_t*>(pages_.data() + reads_max)).store(holds_); }
  bool idle() const { return value(stream_.idle()); }

  /// Blocks until everything has happened. Returns the bytes that were read, one after the other.
  std::vector<uint8_t> finish() {
    if (auto done = stream_.synchronize(); !done)
      throw std::runtime_error(done.error().text);
    std::vector<uint8_t> all(pages_.data(), pages_.data() + read_);
    read_ = 0;
    return all;
  }

 private:
  template <class T>
  static T value(result<T> made) {
    if (!made)
      throw std::runtime_error(made.error().text);
    return std::move(*made);
  }
  template <class... Arguments>
  void call(Arguments... arguments) {
    if (auto done = context_->call(arguments...); !done)
      throw std::runtime_error(done.error().text);
  }

  static constexpr uint64_t reads_max = 16 << 20;
  uint64_t from_;
  std::shared_ptr<const cuda::context> context_;
  client::region pages_;
  cuda::registration pinned_;
  cuda::stream stream_;
  uint64_t read_ = 0;
  uint32_t holds_ = 0;
};

} // namespace terrace::e2e
