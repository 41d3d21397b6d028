// A device that copies: a GPU, or worker threads of the host if there is none. Both keep the same order.
//
// Memory is shared by its users and is released with the last; requests hold the memory that they access. The
// owner of a stream uses a `copy_stream` (copy_stream.hpp), which is the same for all devices; this header
// declares what a device must implement.
#pragma once

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "gpu/copy_request.hpp"
#include "index/object_header.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::gpu {

/// The handle with which a process passes memory to another: bytes to send, or a descriptor. It contains
/// nothing executable and is not trusted: the size is checked with the kernel or the driver.
struct memory_handle {
  enum class kind_t : uint8_t { descriptor, ipc };
  kind_t kind = kind_t::descriptor;
  unique_fd descriptor;               ///< a memfd, or physical memory of a GPU
  std::array<std::byte, 64> ipc = {}; ///< the driver created it
  uint64_t bytes = 0;
};

/// Memory that the device can copy from and to. Immutable, except for its bytes.
class memory {
 public:
  virtual ~memory() = default;
  virtual uint64_t bytes() const = 0;
  /// False if copies may only read it.
  virtual bool writable() const { return true; }
  /// Returns a handle for another process. Errors: `unsupported` for memory that was not allocated by this device.
  virtual result<memory_handle> share() const = 0;
};

constexpr uint64_t event_handle_bytes = 64;

/// A page of generations that the device can write and wait for. A page with events cannot be waited for: its
/// generations say that an event was recorded behind the bytes, not that the bytes have arrived. A reader
/// that has seen a generation lets a stream wait for its event.
class attached_page {
 public:
  virtual ~attached_page() = default;
  const generation_page& page() const { return *page_; }

 protected:
  explicit attached_page(std::shared_ptr<const generation_page> page) : page_(std::move(page)) {}

 private:
  std::shared_ptr<const generation_page> page_;
};

/// The device side of a stream. One thread calls it.
class copy_engine {
 public:
  /// A step of a request: a wait, or the copies of a part. The objects that it points to must exist until the
  /// step has ended.
  struct step {
    uint64_t ticket = 0;
    uint64_t request = 0; ///< the same for all steps of a request
    direction way = direction::load;
    const memory* region = nullptr;
    const memory* object = nullptr;
    const attached_page* page = nullptr;
    std::optional<generation> await;
    const copy_part* part = nullptr; ///< null: the step is the wait
  };

  /// Returns when no memory is accessed any more. Does not wait for a lost device: see `check`.
  virtual ~copy_engine() = default;

  /// Starts a step after all others of this engine. When it has ended and `flush` was called since, its ticket is in
  /// the completion queue, with or without a failure. The bytes that a failed part has written are undefined; it
  /// signals nothing, and neither do later parts of the same request. Errors: `gone` if the device is lost: no more
  /// tickets will arrive, and the memory of the steps may be accessed until the process exits. Any other error: the
  /// step has already failed; its ticket still arrives once nothing of it remains.
  virtual result<void> issue(const step& wanted) = 0;

  /// The owner has no more steps for now: steps that were issued and kept for a later report are reported
  /// when they have ended. Errors: `gone`, as above.
  virtual result<void> flush() { return {}; }

  /// Call when the deadline for a completion has passed, because a lost device is not always reported.
  /// Errors: `gone`, as above.
  virtual result<void> check() = 0;
};

class disk_reader;

/// Safe on all threads; it outlives everything that it has created.
class device {
 public:
  virtual ~device() = default;

  /// Returns a line for logs and status.
  virtual std::string name() const = 0;
  /// Allocates device memory. Errors: `no_space`.
  virtual result<std::shared_ptr<memory>> allocate(uint64_t bytes) = 0;
  /// Pins host memory for the device as long as the returned object exists, which also keeps the mapping.
  virtual result<std::shared_ptr<memory>> pin(std::shared_ptr<const mapping> pages) = 0;
  /// Pins `bytes` of mapped host memory from `offset` on, both in whole pages, for loads only: this process
  /// may only read the mapping. Errors: `unsupported` if the device cannot pin such memory.
  virtual result<std::shared_ptr<memory>> pin_for_reading(std::shared_ptr<const mapping> pages,
                                                          uint64_t offset, uint64_t bytes) = 0;
  /// Maps memory of another process. Errors: `denied`, `bad_request`, `gone`.
  virtual result<std::shared_ptr<memory>> import(memory_handle handle) = 0;
  /// Errors: `unsupported` if the device has no memory operations in its streams.
  virtual result<std::shared_ptr<attached_page>> attach(std::shared_ptr<const generation_page> page) = 0;
  /// Attaches a page with an event for each of the first `events` generations, for other processes: their
  /// handles are the last `event_handle_bytes` x `events` bytes of the page. The events end with the returned
  /// object, which must outlive the imports. Precondition: they have room behind the generations. Errors:
  /// `unsupported` if the device has no such events; `no_space`.
  virtual result<std::shared_ptr<attached_page>> attach_with_events(std::shared_ptr<const generation_page>,
                                                                    uint32_t) {
    return fail(errc::unsupported, name() + " has no events that other processes can wait for");
  }
  /// Makes a separate stream, which reports its completions to `completions`.
  virtual result<std::unique_ptr<copy_engine>> make_engine(std::shared_ptr<completion_queue> completions) = 0;
  /// Opens a reader with `bytes` of device memory, into which files are read without passing through host
  /// memory. Blocks. Errors: `unsupported`, with the reason.
  virtual result<std::shared_ptr<disk_reader>> open_disk_reader(uint64_t) {
    return fail(errc::unsupported, name() + " reads no files itself");
  }
};

// Reads objects from files straight into memory of a device, and verifies them there before anybody uses a byte.

/// An object on disk, and its place in a slot: header block, payload, padding.
struct disk_extent {
  uint64_t file = 0; ///< number of the file
  uint64_t file_offset = 0;
  uint64_t bytes = 0; ///< a multiple of 4 KiB, like both offsets
  uint64_t at = 0;    ///< offset in the slot
  expected_object expected;
};

/// The result of a batch.
struct read_batch {
  error failure;       ///< `bad_request`; `gone` if the device is lost
  uint64_t good = 0;   ///< bit i: extent i is in its slot, with its header and checksum as expected
  uint64_t unread = 0; ///< bit i: the library could not read extent i
  std::string why;     ///< reason for the first extent that is not good
};

/// Safe on all threads, and never blocks: its own threads do the work and also call `done`, once. Its
/// destructor waits for them.
class disk_reader {
 public:
  static constexpr uint64_t slots = 4;
  static constexpr size_t extents_max = 64; ///< in a batch
  /// Smaller payloads are not verified on a device.
  static constexpr uint64_t payload_bytes_min = 241;

  virtual ~disk_reader() = default;
  /// The slots, one after the other and of one size.
  virtual const std::shared_ptr<memory>& staging() const = 0;
  uint64_t slot_bytes() const { return staging()->bytes() / slots; }

  /// Opens the file for reads under this number. The descriptor is open for O_DIRECT. Files are opened one after the
  /// other, and reads do not wait for that. Errors: `unsupported` if the file cannot be read directly.
  virtual void add_file(uint64_t number, unique_fd descriptor, std::function<void(result<void>)> done) = 0;
  /// Precondition: nothing else uses the slot.
  virtual void read(uint64_t slot, std::vector<disk_extent> extents,
                    std::function<void(read_batch)> done) = 0;
};

} // namespace terrace::gpu
