// Owners of everything that cuFile gives and wants back: the library's own state, files, and device memory.
// Each has one owner, and each owner keeps the one from which it was taken.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace terrace::cufile {

// The types of cuFile (GPUDirect Storage) that Terrace uses, as its header declares them, so that no toolkit is needed
// to build. If the header is installed, tests/gpu/cufile/abi_test.cpp compares every size, offset and number.

enum class op_error : uint32_t {
  success = 0,
  driver_not_initialized = 5001, ///< nvidia-fs is not loaded
  platform_not_supported = 5007,
  io_not_supported = 5008, ///< not on this file system
  invalid_file_type = 5018,
  dio_not_set = 5020,
  invalid_value = 5022,
  memory_already_registered = 5023,
  memory_not_registered = 5024,
  driver_already_open = 5026,
  handle_not_registered = 5027,
  handle_already_registered = 5028,
  internal_error = 5030,
};

/// The result of functions. `driver` is the code of CUDA's driver if that failed.
struct status {
  op_error code = op_error::success;
  cuda::status driver = cuda::status::success;
};

using file_handle = void*;

enum class handle_type : uint32_t { opaque_fd = 1 };

struct file_descriptor {
  handle_type type = handle_type::opaque_fd;
  union {
    int fd;
    void* handle;
  } of{};
  const void* operations = nullptr; ///< for file systems in user space
};

struct driver_properties {
  struct {
    uint32_t major_version = 0;
    uint32_t minor_version = 0;
    size_t poll_threshold_bytes = 0;
    size_t max_direct_io_bytes = 0;
    uint32_t status_flags = 0;
    uint32_t control_flags = 0; ///< bits: `control_flag`
  } nvidia_fs;
  uint32_t features = 0;
  uint32_t max_device_cache_bytes = 0;
  uint32_t per_buffer_cache_bytes = 0;
  uint32_t max_pinned_bytes = 0;
  uint32_t max_batch = 0;
  uint32_t max_batch_timeout_ms = 0;
};

/// Bits of `control_flags`, by number. Each lets reads pass through host memory inside the library.
enum class control_flag : uint32_t { allow_compatibility = 1, posix_io = 2, fallback_io = 4 };

enum class bool_parameter : uint32_t { allow_compatibility = 1, force_compatibility = 2 };

static_assert(sizeof(op_error) == 4 && sizeof(handle_type) == 4 && sizeof(bool_parameter) == 4);
static_assert(sizeof(status) == 8 && offsetof(status, code) == 0 && offsetof(status, driver) == 4);
static_assert(sizeof(file_handle) == 8);
static_assert(sizeof(file_descriptor) == 24 && offsetof(file_descriptor, type) == 0 &&
              offsetof(file_descriptor, of) == 8 && offsetof(file_descriptor, operations) == 16);
static_assert(sizeof(file_descriptor::of) == 8 && offsetof(file_descriptor, of.fd) == 8);
static_assert(sizeof(driver_properties) == 56 && sizeof(driver_properties::nvidia_fs) == 32);
static_assert(offsetof(driver_properties, nvidia_fs.major_version) == 0 &&
              offsetof(driver_properties, nvidia_fs.minor_version) == 4 &&
              offsetof(driver_properties, nvidia_fs.poll_threshold_bytes) == 8 &&
              offsetof(driver_properties, nvidia_fs.max_direct_io_bytes) == 16 &&
              offsetof(driver_properties, nvidia_fs.status_flags) == 24 &&
              offsetof(driver_properties, nvidia_fs.control_flags) == 28);
static_assert(offsetof(driver_properties, features) == 32 &&
              offsetof(driver_properties, max_device_cache_bytes) == 36 &&
              offsetof(driver_properties, per_buffer_cache_bytes) == 40 &&
              offsetof(driver_properties, max_pinned_bytes) == 44 &&
              offsetof(driver_properties, max_batch) == 48 &&
              offsetof(driver_properties, max_batch_timeout_ms) == 52);

} // namespace terrace::cufile

// The functions of cuFile that Terrace uses, one per line: whether it is required, its name without `cuFile`,
// its result and its parameters.

// clang-format off
#define TERRACE_CUFILE_FUNCTIONS(X) \
  X(required, DriverOpen, status, ()) \
  X(required, DriverClose, status, ()) \
  X(required, DriverGetProperties, status, (driver_properties* properties)) \
  X(required, HandleRegister, status, (file_handle* handle, file_descriptor* descriptor)) \
  X(required, HandleDeregister, void, (file_handle handle)) \
  X(required, BufRegister, status, (const void* address, size_t bytes, int flags)) \
  X(required, BufDeregister, status, (const void* address)) \
  X(required, Read, ssize_t, (file_handle handle, void* address, size_t bytes, off_t file_offset, off_t address_offset)) \
  X(optional, GetVersion, status, (int* version)) \
  X(optional, SetParameterBool, status, (bool_parameter parameter, bool value))
// clang-format on

namespace terrace::cufile {

/// The library's entry points, named as in its manual without `cuFile`. Optional ones that were not found are null.
struct functions {
#define TERRACE_CUFILE_MEMBER(need, name, answer, parameters) answer(*name) parameters = nullptr;
  TERRACE_CUFILE_FUNCTIONS(TERRACE_CUFILE_MEMBER)
#undef TERRACE_CUFILE_MEMBER
};

// cuFile, loaded at run time: one binary runs with and without it.

/// A loaded library. Immutable, safe on all threads. Never unloaded, because the real one keeps threads.
class library {
 public:
  /// Errors: `unsupported` if there is no such library, or it lacks a required function; the text says which.
  static result<std::shared_ptr<const library>> open(const std::string& name = "libcufile.so.0");

  const functions& api() const { return api_; }
  /// 1000 * major + 10 * minor; 0: the library does not say.
  int version() const { return version_; }

  /// Returns no error, or `code` as an error: `unsupported`, or `internal`. The text contains `what` and the code.
  static result<void> check(status code, std::string_view text);

 private:
  library() = default;

  functions api_;
  int version_ = 0;
};

/// Returns a line with the version, or with the reason why there is no library.
std::string report(const result<std::shared_ptr<const library>>& found);

/// The use of cuFile in this process, for one device. Reads go from the disk to the device or fail:
/// compatibility mode, in which the library reads into host memory and copies, is off.
class session {
 public:
  /// Errors: `unsupported` if nothing can be read directly here, or the library insists on compatibility
  /// mode; the text says why.
  static result<std::shared_ptr<const session>> open(std::shared_ptr<const library> from,
                                                     std::shared_ptr<const cuda::context> context);
  ~session();
  session(const session&) = delete;

  const functions& api() const { return library_->api(); }
  /// This context must be current when cuFile is called.
  const cuda::context& context() const { return *context_; }

 private:
  session(std::shared_ptr<const library> from, std::shared_ptr<const cuda::context> context)
      : library_(std::move(from)), context_(std::move(context)) {}

  std::shared_ptr<const library> library_;
  std::shared_ptr<const cuda::context> context_;
};

/// A file, which is open for O_DIRECT.
class file {
 public:
  file() = default;
  /// Errors: `unsupported` if cuFile does not read this file directly.
  static result<file> open(std::shared_ptr<const session> turns, unique_fd descriptor);
  file(file&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), descriptor_(std::move(other.descriptor_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  file& operator=(file&& other) noexcept;
  ~file() { reset(); }

  /// Reads `bytes` at `file_offset` of the file to offset `at` of registered memory. Blocks. Errors:
  /// `internal`, also if fewer bytes came.
  result<void> read(cuda::device_pointer memory, uint64_t at, uint64_t bytes, uint64_t file_offset) const;

 private:
  void reset();

  std::shared_ptr<const session> session_;
  unique_fd descriptor_; ///< closed after the handle
  file_handle handle_ = nullptr;
};

/// Memory of the device into which files are read, registered as a whole.
class buffer {
 public:
  buffer() = default;
  /// Errors: `no_space`, and those of the library.
  static result<buffer> make(std::shared_ptr<const session> turns, cuda::allocation memory);
  buffer(buffer&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), memory_(std::move(other.memory_)) {}
  buffer& operator=(buffer&& other) noexcept;
  ~buffer() { reset(); }

  const cuda::address_range& range() const { return memory_.get(); }

 private:
  void reset();

  std::shared_ptr<const session> session_;
  cuda::allocation memory_;
};

} // namespace terrace::cufile
