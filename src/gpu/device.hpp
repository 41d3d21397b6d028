// A device that copies: a GPU, or worker threads of the host where there is none. Both keep the same order.
//
// Memory is shared by those who use it and ends with the last; requests hold what they touch. A stream's owner talks to
// it through a `copy_stream` (copy_stream.hpp), which is the same for all devices; what stands here is what a device has to bring.
#pragma once

#include "base/mapping.hpp"
#include "gpu/completion_queue.hpp"
#include "gpu/copy_request.hpp"

#include <array>
#include <memory>
#include <string>

namespace terrace::gpu {

/// How a process gives memory to another: bytes to send, or a descriptor. It holds nothing executable, and nothing in it is believed:
/// the size is checked with the kernel or the driver.
struct memory_handle {
  enum class kind_t : uint8_t { descriptor, ipc };
  kind_t kind = kind_t::descriptor;
  unique_fd descriptor;               ///< a memfd, or physical memory of a GPU
  std::array<std::byte, 64> ipc = {}; ///< what the driver made
  uint64_t bytes = 0;
};

/// Memory that the device can copy from and to. Immutable, but for its bytes.
class memory {
 public:
  virtual ~memory() = default;
  virtual uint64_t bytes() const = 0;
  /// For another process. Errors: `unsupported` for what was not allocated by this device.
  virtual result<memory_handle> share() const = 0;
};

/// A page of generations that the device can write and await.
class attached_page {
 public:
  virtual ~attached_page() = default;
  const generation_page& page() const { return *page_; }

 protected:
  explicit attached_page(std::shared_ptr<const generation_page> page) : page_(std::move(page)) {}

 private:
  std::shared_ptr<const generation_page> page_;
};

/// A stream's device side. One thread calls it.
class copy_engine {
 public:
  /// A step of a request: a wait, or a part's copies. What it points to lives until the step is over.
  struct step {
    uint64_t ticket = 0;
    uint64_t request = 0; ///< the same for all steps of one
    direction way = direction::load;
    const memory* region = nullptr;
    const memory* object = nullptr;
    const attached_page* page = nullptr;
    std::optional<generation> await;
    const copy_part* part = nullptr; ///< null: the wait
  };

  /// Returns when nothing touches memory any more. A lost device is not waited for: see `check`.
  virtual ~copy_engine() = default;

  /// Starts a step behind all others of this engine. When it is over its ticket is in the completion queue, with a failure or without.
  /// What a failed part has written is unknown, it signals nothing, and neither does a later part of the same request. Errors: `gone`
  /// when the device is lost: no ticket comes any more, and what steps name may be touched until the process ends. Any other:
  /// the step has failed already; its ticket comes all the same, when nothing of it is left.
  virtual result<void> issue(const step& wanted) = 0;

  /// Errors: `gone`, as above. For owners whose deadline for a completion has passed: a lost device does not always tell.
  virtual result<void> check() = 0;
};

/// Safe from all threads; it outlives what it has made.
class device {
 public:
  virtual ~device() = default;

  /// A line for logs and status.
  virtual std::string name() const = 0;
  /// Memory of the device. Errors: `no_space`.
  virtual result<std::shared_ptr<memory>> allocate(uint64_t bytes) = 0;
  /// Memory of the host, pinned for the device as long as the answer lives, which keeps the mapping.
  virtual result<std::shared_ptr<memory>> pin(std::shared_ptr<const mapping> pages) = 0;
  /// Memory of another process. Errors: `denied`, `bad_request`, `gone`.
  virtual result<std::shared_ptr<memory>> import(memory_handle handle) = 0;
  virtual result<std::shared_ptr<attached_page>> attach(std::shared_ptr<const generation_page> page) = 0;
  /// A stream of its own. It tells `completions` what is over.
  virtual result<std::unique_ptr<copy_engine>> make_engine(std::shared_ptr<completion_queue> completions) = 0;
};

} // namespace terrace::gpu
