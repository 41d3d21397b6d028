// Our own libcufile.so.0 over the simulated driver. It reads files into the memory of simulated devices, and
// reports uses that the real library leaves undefined, or that it fails at only later. It shares the driver's
// faults, hangs, calls and violations (tests/gpu/driver/simulation.hpp): sim_fail("cuFileRead", ...) and so
// on. It finds them in the loaded libcuda.so.1.
#include "gpu/cufile/owners.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace terrace::cufile {

#define SIM_DECLARE(need, name, answer, parameters) SIM_EXPORT answer cuFile##name parameters;
TERRACE_CUFILE_FUNCTIONS(SIM_DECLARE)
#undef SIM_DECLARE

namespace {

/// The functions that the simulated driver has for this library.
struct driver {
  using enter_function = uint32_t (*)(const char*);
  using pin_function = void* (*) (uint64_t, uint64_t);
  using unpin_function = void (*)(uint64_t);
  using violation_function = void (*)(const char*);

  /// Counts the call, hangs if it should, and returns the code with which it should fail; 0: none.
  enter_function enter = find<enter_function>("sim_enter");
  /// Returns the bytes of device memory, which is not freed until `unpin`; null if it is not the current context's.
  pin_function pin = find<pin_function>("sim_pin");
  unpin_function unpin = find<unpin_function>("sim_unpin");
  violation_function violation = find<violation_function>("sim_note_violation");

  template <class Function>
  static Function find(const char* name) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
  }
  static driver& get() {
    static driver one;
    return one;
  }
};

/// With this code of a fault, a read brings half of the bytes that it was asked for.
constexpr uint32_t half = 9999;

struct registered_file {
  int fd = -1;
  ino_t inode = 0;
};

struct registered_buffer {
  size_t bytes = 0;
  std::byte* data = nullptr;
};

struct simulated_library {
  std::mutex mutex;
  bool open = false;
  bool compatibility = true; ///< like the real one without a configuration
  uint64_t next = 0x6100;
  std::map<uint64_t, registered_file> files;
  std::map<uint64_t, registered_buffer> buffers;

  static simulated_library& get() {
    static simulated_library one;
    return one;
  }
};

status failed(op_error code) { return {code, cuda::status::success}; }

status of_fault(uint32_t code) { return failed(code > 5000 ? op_error{code} : op_error::internal_error); }

void broken(const std::string& rule) { driver::get().violation(rule.c_str()); }

ino_t inode_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? found.st_ino : 0;
}

} // namespace

SIM_EXPORT status cuFileSetParameterBool(bool_parameter parameter, bool value) {
  if (auto code = driver::get().enter("cuFileSetParameterBool"))
    return of_fault(code);
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (l.open)
    return failed(op_error::driver_already_open);
  if (parameter == bool_parameter::allow_compatibility)
    l.compatibility = value;
  return {};
}

SIM_EXPORT status cuFileGetVersion(int* version) {
  if (auto code = driver::get().enter ? driver::get().enter("cuFileGetVersion") : 0)
    return of_fault(code);
  *version = 1150;
  return {};
}

SIM_EXPORT status cuFileDriverOpen() {
  if (auto code = driver::get().enter("cuFileDriverOpen"))
    return of_fault(code);
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (l.open)
    return failed(op_error::driver_already_open);
  l.open = true;
  return {};
}

SIM_EXPORT status cuFileDriverClose() {
  driver::get().enter("cuFileDriverClose");
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (!l.open)
    broken("cuFileDriverClose: twice");
  if (!l.files.empty() || !l.buffers.empty())
    broken("cuFileDriverClose: files or memory are still registered");
  l.open = false;
  l.compatibility = true;
  return {};
}

SIM_EXPORT status cuFileDriverGetProperties(driver_properties* properties) {
  if (auto code = driver::get().enter("cuFileDriverGetProperties"))
    return of_fault(code);
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (!l.open)
    return failed(op_error::driver_not_initialized);
  *properties = {};
  properties->nvidia_fs.major_version = 2;
  properties->nvidia_fs.max_direct_io_bytes = 16384;
  if (l.compatibility)
    properties->nvidia_fs.control_flags |= 1U << static_cast<uint32_t>(control_flag::allow_compatibility);
  return {};
}

SIM_EXPORT status cuFileHandleRegister(file_handle* handle, file_descriptor* descriptor) {
  if (auto code = driver::get().enter("cuFileHandleRegister"))
    return of_fault(code);
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (!l.open)
    return failed(op_error::driver_not_initialized);
  if (descriptor->type != handle_type::opaque_fd)
    return failed(op_error::invalid_value);
  int fd = descriptor->of.fd;
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0)
    return failed(op_error::invalid_value);
  if ((flags & O_DIRECT) == 0)
    return failed(op_error::dio_not_set);
  for (const auto& [number, file] : l.files)
    if (file.fd == fd)
      return failed(op_error::handle_already_registered);
  uint64_t number = l.next += 16;
  l.files[number] = {fd, inode_of(fd)};
  *handle = reinterpret_cast<file_handle>(number);
  return {};
}

SIM_EXPORT void cuFileHandleDeregister(file_handle handle) {
  driver::get().enter("cuFileHandleDeregister");
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  auto file = l.files.find(reinterpret_cast<uint64_t>(handle));
  if (file == l.files.end()) {
    broken("cuFileHandleDeregister: twice, or no handle");
    return;
  }
  if (inode_of(file->second.fd) != file->second.inode)
    broken("cuFileHandleDeregister: the file was closed before");
  l.files.erase(file);
}

SIM_EXPORT status cuFileBufRegister(const void* address, size_t bytes, int flags) {
  if (auto code = driver::get().enter("cuFileBufRegister"))
    return of_fault(code);
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  if (!l.open)
    return failed(op_error::driver_not_initialized);
  auto base = reinterpret_cast<uint64_t>(address);
  if (flags != 0 || bytes == 0)
    return failed(op_error::invalid_value);
  if (l.buffers.contains(base))
    return failed(op_error::memory_already_registered);
  auto* data = static_cast<std::byte*>(driver::get().pin(base, bytes));
  if (!data)
    return failed(op_error::invalid_value);
  l.buffers[base] = {bytes, data};
  return {};
}

SIM_EXPORT status cuFileBufDeregister(const void* address) {
  driver::get().enter("cuFileBufDeregister");
  auto& l = simulated_library::get();
  std::lock_guard lock(l.mutex);
  auto base = reinterpret_cast<uint64_t>(address);
  if (l.buffers.erase(base) == 0) {
    broken("cuFileBufDeregister: memory that is not registered");
    return failed(op_error::memory_not_registered);
  }
  driver::get().unpin(base);
  return {};
}

SIM_EXPORT ssize_t cuFileRead(file_handle handle, void* address, size_t bytes, off_t file_offset,
                              off_t address_offset) {
  auto code = driver::get().enter("cuFileRead");
  if (code > 5000 && code != half)
    return -static_cast<ssize_t>(code);
  if (code != 0 && code != half) {
    errno = EIO;
    return -1;
  }
  int fd = -1;
  std::byte* to = nullptr;
  {
    auto& l = simulated_library::get();
    std::lock_guard lock(l.mutex);
    auto file = l.files.find(reinterpret_cast<uint64_t>(handle));
    auto buffer = l.buffers.find(reinterpret_cast<uint64_t>(address));
    auto at = static_cast<uint64_t>(address_offset);
    if (file == l.files.end()) {
      broken("cuFileRead: a file that is not registered");
      return -static_cast<ssize_t>(op_error::handle_not_registered);
    }
    if (inode_of(file->second.fd) != file->second.inode) {
      broken("cuFileRead: the file was closed while it was registered");
      return -static_cast<ssize_t>(op_error::handle_not_registered);
    }
    if (buffer == l.buffers.end()) {
      broken("cuFileRead: memory that is not registered, which the real one copies");
      return -static_cast<ssize_t>(op_error::memory_not_registered);
    }
    if (at > buffer->second.bytes || bytes > buffer->second.bytes - at) {
      broken("cuFileRead: beyond the registered memory");
      return -static_cast<ssize_t>(op_error::invalid_value);
    }
    if ((bytes | at | static_cast<uint64_t>(file_offset)) % 4096 != 0) {
      broken("cuFileRead: not in whole blocks, which the real one copies");
      return -static_cast<ssize_t>(op_error::invalid_value);
    }
    fd = file->second.fd;
    to = buffer->second.data + at;
  }
  // O_DIRECT cannot read into the simulation's memory.
  std::unique_ptr<std::byte, void (*)(void*)> block(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)),
                                                    std::free);
  ssize_t n = ::pread(fd, block.get(), code == half ? bytes / 2 / 4096 * 4096 : bytes, file_offset);
  for (ssize_t i = 0; i < n; ++i)
    to[i] = block.get()[i];
  return n;
}

} // namespace terrace::cufile
