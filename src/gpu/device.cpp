#include "gpu/device.hpp"

namespace terrace::gpu {

result<std::shared_ptr<disk_reader>> device::open_disk_reader(uint64_t) {
  return fail(errc::unsupported, name() + " reads no files itself");
}

} // namespace terrace::gpu
