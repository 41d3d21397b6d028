// The device's own memory, pinned memory of the host, and legacy IPC of the former.
#include "driver/machine.hpp"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace terrace::cuda {

using sim::range;

namespace {

constexpr uint64_t allocation_unit = 4096; // the unit that mmap can cut

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// First fit; none if the memory is full.
std::optional<uint64_t> take(sim::device& device, uint64_t bytes) {
  uint64_t at = 0;
  for (const auto& [offset, size] : device.used) {
    if (offset - at >= bytes)
      break;
    at = offset + size;
  }
  if (at + bytes > device.bytes)
    return {};
  device.used[at] = bytes;
  return at;
}

/// Makes a range over a part of a memfd: addresses without access for the program, and a view for us.
std::shared_ptr<range> map(range::kind_t kind, int descriptor, uint64_t offset, uint64_t bytes, int owner) {
  auto mapped = round_up(bytes, allocation_unit);
  void* addresses = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* data =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  if (addresses == MAP_FAILED || data == MAP_FAILED)
    return nullptr;
  auto made = std::make_shared<range>();
  made->kind = kind;
  made->base = reinterpret_cast<uint64_t>(addresses);
  made->bytes = bytes;
  made->owner = owner;
  made->data = static_cast<std::byte*>(data);
  made->memory = std::make_shared<sim::view>(made->data, mapped);
  made->addresses = std::make_shared<sim::view>(static_cast<std::byte*>(addresses), mapped);
  made->offset = offset;
  return made;
}

/// Returns the range in which the address lies; null: none.
std::shared_ptr<range> range_around(sim::machine& m, uint64_t address) {
  auto it = m.ranges.upper_bound(address);
  auto found = it == m.ranges.begin() ? nullptr : std::prev(it)->second;
  return found && address < found->base + found->bytes ? found : nullptr;
}

/// True if this process has the pages mapped for writing (or reading). They exist afterwards, as pinned ones do.
bool may_access(uint64_t base, uint64_t bytes, bool writes) {
  uint64_t begin = base / allocation_unit * allocation_unit;
  auto* pages = reinterpret_cast<void*>(begin);
  int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  bool known = madvise(pages, 0, advice) == 0; // by this kernel
  return !known || madvise(pages, round_up(base + bytes - begin, allocation_unit), advice) == 0;
}

} // namespace

SIM_EXPORT status cuMemAlloc_v2(device_pointer* address, size_t bytes) {
  SIM_ENTER("cuMemAlloc", context);
  if (bytes == 0)
    return status::invalid_value;
  auto owner = m.current()->device;
  auto& device = m.devices[static_cast<size_t>(owner)];
  auto offset = take(device, round_up(bytes, allocation_unit));
  if (!offset)
    return status::out_of_memory;
  auto made = map(range::device, device.descriptor, *offset, bytes, owner);
  if (!made)
    return status::out_of_memory;
  std::memset(made->data, 0xa5, bytes); // memory that was never written need not be zero
  m.ranges[made->base] = made;
  m.ended.erase(made->base);
  *address = made->base;
  return status::success;
}

SIM_EXPORT status cuMemFree_v2(device_pointer address) {
  SIM_ENTER("cuMemFree", context);
  auto found = m.range_at(address);
  if (!found || found->kind != range::device) {
    m.violation(m.ended.contains(address) ? "cuMemFree: twice" : "cuMemFree: not an allocation");
    return status::invalid_value;
  }
  if (found->slot) {
    if (sim::importers(*found->slot) > 0)
      m.violation("cuMemFree: another process still has it open");
    found->slot->id.store(0);
  }
  m.devices[static_cast<size_t>(found->owner)].used.erase(found->offset);
  m.drop(found, "cuMemFree");
  return status::success;
}

SIM_EXPORT status cuMemGetInfo_v2(size_t* free, size_t* total) {
  SIM_ENTER("cuMemGetInfo", context);
  const auto& device = m.devices[static_cast<size_t>(m.current()->device)];
  *total = *free = device.bytes;
  for (const auto& [offset, bytes] : device.used)
    *free -= bytes;
  return status::success;
}

SIM_EXPORT status cuMemGetAddressRange_v2(device_pointer* base, size_t* bytes, device_pointer address) {
  SIM_ENTER("cuMemGetAddressRange", context);
  auto found = range_around(m, address);
  if (!found || found->kind == range::registered)
    return status::not_found;
  if (base)
    *base = found->base;
  if (bytes)
    *bytes = found->bytes;
  return status::success;
}

SIM_EXPORT status cuPointerGetAttribute(void* value, pointer_attribute attribute, device_pointer address) {
  SIM_ENTER("cuPointerGetAttribute", initialised);
  auto found = range_around(m, address);
  if (!found)
    return status::invalid_value;
  switch (attribute) {
    case pointer_attribute::memory_type:
      *static_cast<memory_type*>(value) =
          found->kind == range::registered ? memory_type::host : memory_type::device;
      return status::success;
    case pointer_attribute::device_ordinal:
      *static_cast<device_ordinal*>(value) = found->owner;
      return status::success;
  }
  return status::invalid_value;
}

SIM_EXPORT status cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  SIM_ENTER("cuMemHostRegister", context);
  auto base = reinterpret_cast<uint64_t>(address);
  if (base == 0 || bytes == 0)
    return status::invalid_value;
  auto next = m.ranges.lower_bound(base);
  bool overlaps = next != m.ranges.end() && next->first < base + bytes;
  if (next != m.ranges.begin()) {
    auto& before = *std::prev(next)->second;
    overlaps = overlaps || before.base + before.bytes > base;
  }
  if (overlaps)
    return status::host_memory_already_registered;
  bool reads = flags & host_register_read_only;
  bool read_only_pins = !m.lacking.contains(device_attribute::read_only_host_register);
  if (reads && !read_only_pins)
    return status::not_supported;
  if (!may_access(base, bytes, !reads))
    return status::invalid_value;
  auto made = std::make_shared<range>();
  made->kind = range::registered;
  made->base = base;
  made->bytes = bytes;
  made->owner = m.current()->device;
  made->data = static_cast<std::byte*>(address);
  made->writable = !reads;
  m.ranges[base] = made;
  m.ended.erase(base);
  return status::success;
}

SIM_EXPORT status cuMemHostUnregister(void* address) {
  SIM_ENTER("cuMemHostUnregister", context);
  auto base = reinterpret_cast<uint64_t>(address);
  auto found = m.range_at(base);
  if (!found || found->kind != range::registered) {
    m.violation(m.ended.contains(base) ? "cuMemHostUnregister: twice"
                                       : "cuMemHostUnregister: never registered");
    return status::host_memory_not_registered;
  }
  // Like real devices, this returns when all streams of the context are idle, also those that wait for a
  // value in memory.
  auto home = m.current();
  if (found->pins == 0)
    m.changed.wait(entered.lock, [&] { return home->unfinished == 0 || home->lost != status::success; });
  m.drop(found, "cuMemHostUnregister");
  return status::success;
}

SIM_EXPORT status cuMemHostGetDevicePointer_v2(device_pointer* device, void* address, unsigned flags) {
  SIM_ENTER("cuMemHostGetDevicePointer", context);
  auto at = reinterpret_cast<uint64_t>(address);
  auto found = range_around(m, at);
  if (flags != 0 || !found || found->kind != range::registered)
    return status::invalid_value;
  *device = at;
  return status::success;
}

SIM_EXPORT status cuIpcGetMemHandle(ipc_memory_handle* handle, device_pointer address) {
  SIM_ENTER("cuIpcGetMemHandle", context);
  auto found = m.range_at(address);
  if (found && found->kind == range::reserved)
    return status::invalid_value; // virtual memory has descriptors instead
  if (!found || found->kind != range::device) {
    m.violation("cuIpcGetMemHandle: not the begin of an allocation of cuMemAlloc");
    return status::invalid_value;
  }
  if (!found->slot) {
    found->slot_id = m.random() | 1;
    found->slot = m.page->take(found->slot_id);
    if (!found->slot)
      return status::out_of_memory;
  }
  sim::export_record record{sim::export_magic,
                            getpid(),
                            m.page->descriptor(),
                            m.devices[static_cast<size_t>(found->owner)].descriptor,
                            m.page->index_of(found->slot),
                            static_cast<uint32_t>(found->owner),
                            found->slot_id,
                            found->offset,
                            found->bytes};
  std::memcpy(handle->reserved, &record, sizeof record);
  return status::success;
}

SIM_EXPORT status cuIpcOpenMemHandle_v2(device_pointer* address, ipc_memory_handle handle, unsigned flags) {
  SIM_ENTER("cuIpcOpenMemHandle", context);
  sim::export_record record;
  std::memcpy(static_cast<void*>(&record), handle.reserved, sizeof record);
  if (record.magic != sim::export_magic || record.memory < 0 || record.slot >= sim::control_page::slots)
    return status::invalid_handle;
  if (flags != ipc_lazy_enable_peer_access)
    return status::invalid_value;
  if (record.process == getpid()) {
    m.violation("cuIpcOpenMemHandle: in the process that made the handle");
    return status::invalid_context;
  }
  if (record.device != static_cast<uint32_t>(m.current()->device) && !m.peers)
    return status::peer_access_unsupported;
  for (const auto& [base, one] : m.ranges)
    if (one->kind == range::imported && one->slot_id == record.id) {
      ++one->opens;
      *address = base;
      return status::success;
    }
  auto page = sim::control_page::open(record.process, record.page);
  if (!page)
    return status::map_failed;
  auto& slot = page->slot(record.slot);
  if (slot.id.load() != record.id) {
    m.violation("cuIpcOpenMemHandle: the memory was freed");
    return status::invalid_value;
  }
  int memory = sim::open_descriptor_of(record.process, record.memory, true);
  auto made =
      memory < 0 ? nullptr : map(range::imported, memory, record.offset, record.bytes, m.current()->device);
  if (memory >= 0)
    close(memory);
  if (!made || !sim::add_importer(slot))
    return status::map_failed;
  made->slot = &slot;
  made->slot_id = record.id;
  made->page = page;
  made->opens = 1;
  m.ranges[made->base] = made;
  m.ended.erase(made->base);
  *address = made->base;
  return status::success;
}

SIM_EXPORT status cuIpcCloseMemHandle(device_pointer address) {
  SIM_ENTER("cuIpcCloseMemHandle", context);
  auto found = m.range_at(address);
  if (!found || found->kind != range::imported) {
    m.violation(m.ended.contains(address) ? "cuIpcCloseMemHandle: twice"
                                          : "cuIpcCloseMemHandle: not an import");
    return status::invalid_value;
  }
  if (--found->opens > 0)
    return status::success;
  sim::remove_importer(*found->slot);
  m.drop(found, "cuIpcCloseMemHandle");
  return status::success;
}

} // namespace terrace::cuda
