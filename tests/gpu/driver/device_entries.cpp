// Initialisation, devices, contexts, and finding functions.
#include "driver/machine.hpp"

#include <cstdio>
#include <cstring>

namespace terrace::cuda {

using sim::machine;

namespace {

struct exported {
  const char* name;
  int version;
  void* address;
};

const exported all[] = {
#define SIM_ROW(need, version, symbol, name, parameters)                                                     \
  {"cu" #name, version, reinterpret_cast<void*>(&symbol)},
    TERRACE_CUDA_FUNCTIONS(SIM_ROW)
#undef SIM_ROW
};

const struct {
  status code;
  const char* name;
} names[] = {
    {status::success, "CUDA_SUCCESS"},
    {status::invalid_value, "CUDA_ERROR_INVALID_VALUE"},
    {status::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {status::not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
    {status::no_device, "CUDA_ERROR_NO_DEVICE"},
    {status::invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
    {status::map_failed, "CUDA_ERROR_MAP_FAILED"},
    {status::ecc_uncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {status::invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
    {status::not_ready, "CUDA_ERROR_NOT_READY"},
    {status::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {status::launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},
    {status::not_supported, "CUDA_ERROR_NOT_SUPPORTED"},
};

/// Returns 0, and the reason, if no function has that name or none is that old.
void* find(const char* symbol, int version, lookup_result& reason) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  reason = lookup_result::not_found;
  for (const auto& one : all) {
    if (std::strcmp(one.name, symbol) != 0 || m.hidden.contains(symbol))
      continue;
    reason = one.version > version || one.version > m.version ? lookup_result::version_not_sufficient
                                                              : lookup_result::success;
    return reason == lookup_result::success ? one.address : nullptr;
  }
  return nullptr;
}

bool is_device(machine& m, device_ordinal device) {
  return device >= 0 && static_cast<size_t>(device) < m.devices.size();
}

} // namespace

SIM_EXPORT status cuGetProcAddress_v2(const char* symbol, void** address, int version, uint64_t,
                                      lookup_result* reason) {
  lookup_result found;
  *address = find(symbol, version, found);
  if (reason)
    *reason = found;
  return found == lookup_result::not_found ? status::not_found : status::success;
}

SIM_EXPORT status cuGetProcAddress(const char* symbol, void** address, int version, uint64_t) {
  lookup_result found;
  *address = find(symbol, version, found);
  return found == lookup_result::success ? status::success : status::not_found;
}

SIM_EXPORT status cuInit(unsigned flags) {
  SIM_ENTER("cuInit", nothing);
  if (flags != 0)
    return status::invalid_value;
  if (m.devices.empty())
    return status::no_device;
  m.initialised = true;
  return status::success;
}

SIM_EXPORT status cuDriverGetVersion(int* version) {
  SIM_ENTER("cuDriverGetVersion", nothing);
  *version = m.version;
  return status::success;
}

SIM_EXPORT status cuGetErrorName(status code, const char** name) {
  for (const auto& one : names)
    if (one.code == code) {
      *name = one.name;
      return status::success;
    }
  *name = nullptr;
  return status::invalid_value;
}

SIM_EXPORT status cuGetErrorString(status code, const char** text) { return cuGetErrorName(code, text); }

SIM_EXPORT status cuDeviceGetCount(int* count) {
  SIM_ENTER("cuDeviceGetCount", initialised);
  *count = static_cast<int>(m.devices.size());
  return status::success;
}

SIM_EXPORT status cuDeviceGet(device_ordinal* device, int ordinal) {
  SIM_ENTER("cuDeviceGet", initialised);
  *device = ordinal;
  return is_device(m, ordinal) ? status::success : status::invalid_device;
}

SIM_EXPORT status cuDeviceGetName(char* name, int bytes, device_ordinal device) {
  SIM_ENTER("cuDeviceGetName", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  snprintf(name, static_cast<size_t>(bytes), "simulated device %d", device);
  return status::success;
}

SIM_EXPORT status cuDeviceGetUuid_v2(device_uuid* uuid, device_ordinal device) {
  SIM_ENTER("cuDeviceGetUuid", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  for (int i = 0; i < 16; ++i)
    uuid->bytes[i] = static_cast<char>(0xa0 + i); // every process sees the same
  uuid->bytes[15] = static_cast<char>(device);
  return status::success;
}

SIM_EXPORT status cuDeviceGetAttribute(int* value, device_attribute attribute, device_ordinal device) {
  SIM_ENTER("cuDeviceGetAttribute", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  switch (attribute) {
    case device_attribute::multiprocessor_count: *value = 4; break;
    case device_attribute::async_engine_count: *value = 2; break;
    case device_attribute::compute_capability_major: *value = 9; break;
    case device_attribute::compute_capability_minor: *value = 0; break;
    case device_attribute::gpu_direct_rdma:
    case device_attribute::dma_buf: *value = 0; break;
    default: *value = 1;
  }
  if (m.lacking.contains(attribute))
    *value = 0;
  return status::success;
}

SIM_EXPORT status cuDeviceTotalMem_v2(size_t* bytes, device_ordinal device) {
  SIM_ENTER("cuDeviceTotalMem", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  *bytes = m.devices[static_cast<size_t>(device)].bytes;
  return status::success;
}

SIM_EXPORT status cuDevicePrimaryCtxRetain(context_handle* context, device_ordinal device) {
  SIM_ENTER("cuDevicePrimaryCtxRetain", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  auto& one = *m.contexts[static_cast<size_t>(device)];
  if (one.lost != status::success)
    return one.lost;
  ++one.retains;
  *context = reinterpret_cast<context_handle>(&one);
  return status::success;
}

SIM_EXPORT status cuDevicePrimaryCtxRelease_v2(device_ordinal device) {
  SIM_ENTER("cuDevicePrimaryCtxRelease", initialised);
  if (!is_device(m, device))
    return status::invalid_device;
  auto& one = *m.contexts[static_cast<size_t>(device)];
  if (one.retains == 0) {
    m.violation("a context that was released more often than retained");
    return status::invalid_context;
  }
  if (--one.retains > 0 || one.lost != status::success) // nobody could give back what a lost context had
    return status::success;
  for (const auto& [handle, left] : m.streams)
    if (left->home.get() == &one)
      m.violation("a stream was left in a context that ended");
  for (const auto& [handle, left] : m.events)
    if (left->home.get() == &one)
      m.violation("an event was left in a context that ended");
  for (const auto& [base, left] : m.ranges)
    if (left->owner == device)
      m.violation("memory was left in a context that ended");
  return status::success;
}

SIM_EXPORT status cuCtxPushCurrent_v2(context_handle context) {
  SIM_ENTER("cuCtxPushCurrent", initialised);
  sim::context_stack.push_back(context);
  if (m.current())
    return status::success;
  sim::context_stack.pop_back();
  m.violation("a context that has ended");
  return status::invalid_context;
}

SIM_EXPORT status cuCtxPopCurrent_v2(context_handle* context) {
  SIM_ENTER("cuCtxPopCurrent", initialised);
  if (sim::context_stack.empty())
    return status::invalid_context;
  if (context)
    *context = sim::context_stack.back();
  sim::context_stack.pop_back();
  return status::success;
}

SIM_EXPORT status cuCtxGetCurrent(context_handle* context) {
  SIM_ENTER("cuCtxGetCurrent", initialised);
  *context = sim::context_stack.empty() ? nullptr : sim::context_stack.back();
  return status::success;
}

} // namespace terrace::cuda
