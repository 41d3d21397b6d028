// Owners of everything that cuFile gives and wants back: the library's own state, files, and device memory.
// Each has one owner, and each owner keeps the one from which it was taken.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cufile/cufile_types.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace terrace::cufile {

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
