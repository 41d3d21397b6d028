#include "gpu/process/device_child.hpp"

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/host/host_engine.hpp"

namespace terrace::gpu {

/// Starts the running binary, even if its file was replaced since.
result<device_child> start_device_child(const std::string& device) {
  return child_program::start("the process of a GPU", "/proc/self/exe", {"terraced", "--gpu", device});
}

result<std::string> canonical_device_name(const std::string& name) {
  if (name == host_device_name)
    return name;
  auto uuid = cuda::parse_uuid(name);
  if (!uuid)
    return fail(errc::bad_request, "a device \"" + name + "\": expected \"host\" or the UUID of a GPU (" +
                                       uuid.error().text + ")");
  return cuda::to_text(*uuid);
}

result<opened_device> open_device(const std::string& name) {
  if (name == host_device_name) {
    auto made = make_host_device();
    if (!made)
      return tl::unexpected(made.error());
    return opened_device{std::move(*made), "host memory, copied by threads"};
  }
  auto found = cuda::locate(name);
  if (!found)
    return tl::unexpected(found.error());
  const auto& about = found->properties;
  // Other devices may read memory that the process allocates: by a descriptor it outlives this process.
  cuda_device_options options;
  options.virtual_memory = about.virtual_memory;
  auto made = make_cuda_device(found->by, about.uuid, options);
  if (!made)
    return tl::unexpected(made.error());
  int version = found->by->version();
  std::string text = about.name + ", driver for CUDA " + std::to_string(version / 1000) + "." +
                     std::to_string(version % 1000 / 10);
  text += about.ipc ? ", handles" : ", no handles";
  text += about.virtual_memory ? ", descriptors" : ", no descriptors";
  if (!about.stream_memory_ops)
    text += ", no stream memory operations";
  return opened_device{std::move(*made), std::move(text)};
}

} // namespace terrace::gpu
