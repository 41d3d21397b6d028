// Virtual memory management: physical memory, addresses, and descriptors.
#include "driver/machine.hpp"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace::cuda {

using sim::range;
using sim::vmm_page_bytes;

namespace {

constexpr char physical_name[] = "/memfd:sim-physical-";

/// Returns the device that has the memory, by the name of its memfd; none: it is something else.
std::optional<int> device_of(int descriptor) {
  char name[128] = {};
  auto path = "/proc/self/fd/" + std::to_string(descriptor);
  if (readlink(path.c_str(), name, sizeof name - 1) <= 0 ||
      std::strncmp(name, physical_name, sizeof physical_name - 1) != 0)
    return {};
  return std::atoi(name + sizeof physical_name - 1);
}

/// Returns the reservation that has all of [address, address + bytes).
std::shared_ptr<range> reservation(sim::machine& m, uint64_t address, uint64_t bytes) {
  auto it = m.ranges.upper_bound(address);
  auto found = it == m.ranges.begin() ? nullptr : std::prev(it)->second;
  bool whole = found && found->kind == range::reserved && address - found->base <= found->bytes &&
               bytes <= found->bytes - (address - found->base);
  return whole ? found : nullptr;
}

} // namespace

SIM_EXPORT status cuMemGetAllocationGranularity(size_t* bytes, const allocation_properties*, granularity) {
  SIM_ENTER("cuMemGetAllocationGranularity", initialised);
  *bytes = vmm_page_bytes;
  return status::success;
}

SIM_EXPORT status cuMemCreate(allocation_handle* handle, size_t bytes,
                              const allocation_properties* properties, unsigned long long flags) {
  SIM_ENTER("cuMemCreate", initialised);
  auto device = static_cast<size_t>(properties->location.id);
  if (bytes == 0 || bytes % vmm_page_bytes != 0 || flags != 0 ||
      properties->type != allocation_type::pinned || properties->location.type != location_type::device ||
      device >= m.devices.size())
    return status::invalid_value;
  if (bytes > m.devices[device].bytes)
    return status::out_of_memory;
  auto made = std::make_shared<sim::physical>();
  made->bytes = bytes;
  made->shareable = properties->handles == handle_type::posix_file_descriptor;
  made->device = properties->location.id;
  auto name = physical_name + 7 + std::to_string(made->device);
  made->descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (made->descriptor < 0 || ftruncate(made->descriptor, static_cast<off_t>(bytes)) != 0)
    return status::out_of_memory;
  *handle = m.new_handle<allocation_handle>();
  m.allocations[*handle] = std::move(made);
  return status::success;
}

SIM_EXPORT status cuMemRelease(allocation_handle handle) {
  SIM_ENTER("cuMemRelease", initialised);
  if (m.allocations.erase(handle) == 0) {
    m.violation(m.ended.contains(handle) ? "cuMemRelease: twice" : "cuMemRelease: no allocation");
    return status::invalid_value;
  }
  m.ended.insert(handle);
  return status::success;
}

SIM_EXPORT status cuMemExportToShareableHandle(void* shareable, allocation_handle handle, handle_type type,
                                               unsigned long long flags) {
  SIM_ENTER("cuMemExportToShareableHandle", initialised);
  auto it = m.allocations.find(handle);
  if (it == m.allocations.end() || type != handle_type::posix_file_descriptor || flags != 0 ||
      !it->second->shareable)
    return status::invalid_value;
  int descriptor = fcntl(it->second->descriptor, F_DUPFD_CLOEXEC, 0);
  std::memcpy(shareable, &descriptor, sizeof descriptor);
  return descriptor < 0 ? status::unknown : status::success;
}

SIM_EXPORT status cuMemImportFromShareableHandle(allocation_handle* handle, void* shareable,
                                                 handle_type type) {
  SIM_ENTER("cuMemImportFromShareableHandle", initialised);
  auto descriptor = static_cast<int>(reinterpret_cast<uintptr_t>(shareable));
  struct stat about = {};
  auto device = device_of(descriptor);
  if (type != handle_type::posix_file_descriptor || fstat(descriptor, &about) != 0 || !device)
    return status::invalid_value;
  auto made = std::make_shared<sim::physical>();
  made->device = *device;
  made->bytes = static_cast<uint64_t>(about.st_size);
  made->shareable = true;
  made->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  *handle = m.new_handle<allocation_handle>();
  m.allocations[*handle] = std::move(made);
  return status::success;
}

SIM_EXPORT status cuMemAddressReserve(device_pointer* address, size_t bytes, size_t, device_pointer,
                                      unsigned long long flags) {
  SIM_ENTER("cuMemAddressReserve", context);
  if (bytes == 0 || bytes % vmm_page_bytes != 0 || flags != 0)
    return status::invalid_value;
  auto reserve = [&] {
    return mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* addresses = reserve();
  void* data = reserve();
  if (addresses == MAP_FAILED || data == MAP_FAILED)
    return status::out_of_memory;
  auto made = std::make_shared<range>();
  made->kind = range::reserved;
  made->base = reinterpret_cast<uint64_t>(addresses);
  made->bytes = bytes;
  made->owner = m.current()->device;
  made->data = static_cast<std::byte*>(data);
  made->memory = std::make_shared<sim::view>(made->data, bytes);
  made->addresses = std::make_shared<sim::view>(static_cast<std::byte*>(addresses), bytes);
  m.ranges[made->base] = made;
  m.ended.erase(made->base);
  *address = made->base;
  return status::success;
}

SIM_EXPORT status cuMemAddressFree(device_pointer address, size_t bytes) {
  SIM_ENTER("cuMemAddressFree", context);
  auto found = m.range_at(address);
  if (!found || found->kind != range::reserved || found->bytes != bytes) {
    m.violation(m.ended.contains(address) ? "cuMemAddressFree: twice"
                                          : "cuMemAddressFree: not a reservation");
    return status::invalid_value;
  }
  if (!found->parts.empty()) {
    m.violation("cuMemAddressFree: memory is still mapped there");
    return status::invalid_value;
  }
  m.drop(found, "cuMemAddressFree");
  return status::success;
}

SIM_EXPORT status cuMemMap(device_pointer address, size_t bytes, size_t offset, allocation_handle handle,
                           unsigned long long flags) {
  SIM_ENTER("cuMemMap", context);
  auto found = reservation(m, address, bytes);
  auto it = m.allocations.find(handle);
  if (!found || it == m.allocations.end() || flags != 0 || offset != 0 || bytes == 0 ||
      bytes % vmm_page_bytes != 0 || (address - found->base) % vmm_page_bytes != 0 ||
      bytes > it->second->bytes)
    return status::invalid_value;
  auto at = address - found->base;
  auto next = found->parts.lower_bound(at);
  bool taken = next != found->parts.end() && next->first < at + bytes;
  if (next != found->parts.begin())
    taken = taken || std::prev(next)->first + std::prev(next)->second.bytes > at;
  if (taken)
    return status::invalid_value;
  if (mmap(found->data + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, it->second->descriptor,
           0) == MAP_FAILED)
    return status::map_failed;
  found->parts[at] = {bytes, false, false, it->second->device};
  return status::success;
}

SIM_EXPORT status cuMemSetAccess(device_pointer address, size_t bytes, const access_description* descriptions,
                                 size_t count) {
  SIM_ENTER("cuMemSetAccess", context);
  auto found = reservation(m, address, bytes);
  auto at = found ? address - found->base : 0;
  if (!found || count != 1 || descriptions->location.type != location_type::device ||
      !found->parts.contains(at) || found->parts[at].bytes != bytes)
    return status::invalid_value;
  if (descriptions->location.id != found->parts[at].device && !m.peers)
    return status::invalid_device;
  found->parts[at].readable = descriptions->flags != access::none;
  found->parts[at].writable = descriptions->flags == access::read_write;
  return status::success;
}

SIM_EXPORT status cuMemUnmap(device_pointer address, size_t bytes) {
  SIM_ENTER("cuMemUnmap", context);
  auto found = reservation(m, address, bytes);
  auto at = found ? address - found->base : 0;
  if (!found || !found->parts.contains(at) || found->parts[at].bytes != bytes) {
    m.violation("cuMemUnmap: nothing is mapped there as a whole");
    return status::invalid_value;
  }
  found->parts.erase(at);
  if (found->pins > 0)
    m.violation(
        // Its bytes stay, so that the stream's thread survives.
        "cuMemUnmap: memory that a stream still uses");
  else
    mmap(found->data + at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return status::success;
}

} // namespace terrace::cuda
