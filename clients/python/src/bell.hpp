// Python's terrace.Bell: a connection's bell, which a thread or a stream of a GPU rings.
#pragma once

#include "client/bell.hpp"
#include "client/engine_device.hpp"
#include "connection.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace terrace::python {

/// Rings also after the connection was closed, when nobody listens. Safe on all threads.
class bell_handle {
 public:
  explicit bell_handle(client::bell rings) : bell_(std::move(rings)) {}

  int descriptor() const { return bell_.descriptor(); }
  void ring() const noexcept { bell_.ring(); }

  /// Rings when all earlier work in the stream is done. Runs without the GIL: a full stream waits for room,
  /// and a function queued before ours may need the GIL.
  result<void> ring_after(uintptr_t stream, const std::string& device);

  /// Returns the GPU whose streams ring. The first caller waits for the driver.
  result<const client::engine_device*> open(const std::string& device);

 private:
  const client::bell bell_;
  std::mutex guard_;
  std::map<std::string, std::unique_ptr<client::engine_device>> gpus_; ///< by UUID; each is opened once
};

/// Binds the class and `Connection.bell`.
void bind_bell(nb::module_& in, connection_class& to);

} // namespace terrace::python
