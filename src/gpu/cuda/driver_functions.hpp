// The functions of the driver that Terrace uses, one per line: whether it is required, the CUDA version of
// its signature (the driver keeps older ones under the same name), the symbol exported by the library, its
// name without `cu`, and its parameters. docs/gpu.md lists what the optional ones are needed for.
#pragma once

#include "gpu/cuda/driver_types.hpp"

// clang-format off
#define TERRACE_CUDA_FUNCTIONS(X) \
  X(required, 2000, cuInit, Init, (unsigned flags)) \
  X(required, 2020, cuDriverGetVersion, DriverGetVersion, (int* version)) \
  X(required, 6000, cuGetErrorName, GetErrorName, (status code, const char** name)) \
  X(required, 6000, cuGetErrorString, GetErrorString, (status code, const char** text)) \
  X(required, 2000, cuDeviceGetCount, DeviceGetCount, (int* count)) \
  X(required, 2000, cuDeviceGet, DeviceGet, (device_ordinal* device, int ordinal)) \
  X(required, 2000, cuDeviceGetName, DeviceGetName, (char* name, int bytes, device_ordinal device)) \
  X(required, 11040, cuDeviceGetUuid_v2, DeviceGetUuid, (device_uuid* uuid, device_ordinal device)) \
  X(required, 2000, cuDeviceGetAttribute, DeviceGetAttribute, (int* value, device_attribute attribute, device_ordinal device)) \
  X(required, 3020, cuDeviceTotalMem_v2, DeviceTotalMem, (size_t* bytes, device_ordinal device)) \
  X(required, 7000, cuDevicePrimaryCtxRetain, DevicePrimaryCtxRetain, (context_handle* context, device_ordinal device)) \
  X(required, 11000, cuDevicePrimaryCtxRelease_v2, DevicePrimaryCtxRelease, (device_ordinal device)) \
  X(required, 4000, cuCtxPushCurrent_v2, CtxPushCurrent, (context_handle context)) \
  X(required, 4000, cuCtxPopCurrent_v2, CtxPopCurrent, (context_handle* context)) \
  X(required, 4000, cuCtxGetCurrent, CtxGetCurrent, (context_handle* context)) \
  X(required, 5050, cuStreamCreateWithPriority, StreamCreateWithPriority, (stream_handle* stream, unsigned flags, int priority)) \
  X(required, 4000, cuStreamDestroy_v2, StreamDestroy, (stream_handle stream)) \
  X(required, 2000, cuStreamQuery, StreamQuery, (stream_handle stream)) \
  X(required, 2000, cuStreamSynchronize, StreamSynchronize, (stream_handle stream)) \
  X(required, 3020, cuStreamWaitEvent, StreamWaitEvent, (stream_handle stream, event_handle event, unsigned flags)) \
  X(required, 2000, cuEventCreate, EventCreate, (event_handle* event, unsigned flags)) \
  X(required, 2000, cuEventRecord, EventRecord, (event_handle event, stream_handle stream)) \
  X(required, 2000, cuEventQuery, EventQuery, (event_handle event)) \
  X(required, 2000, cuEventSynchronize, EventSynchronize, (event_handle event)) \
  X(required, 4000, cuEventDestroy_v2, EventDestroy, (event_handle event)) \
  X(required, 3020, cuMemAlloc_v2, MemAlloc, (device_pointer* address, size_t bytes)) \
  X(required, 3020, cuMemFree_v2, MemFree, (device_pointer address)) \
  X(required, 3020, cuMemGetInfo_v2, MemGetInfo, (size_t* free, size_t* total)) \
  X(required, 3020, cuMemGetAddressRange_v2, MemGetAddressRange, (device_pointer* base, size_t* bytes, device_pointer address)) \
  X(required, 4000, cuMemcpyAsync, MemcpyAsync, (device_pointer destination, device_pointer source, size_t bytes, stream_handle stream)) \
  X(required, 3020, cuMemcpy2DAsync_v2, Memcpy2DAsync, (const copy_2d* copy, stream_handle stream)) \
  X(required, 3020, cuMemcpy3DAsync_v2, Memcpy3DAsync, (const copy_3d* copy, stream_handle stream)) \
  X(required, 6050, cuMemHostRegister_v2, MemHostRegister, (void* address, size_t bytes, unsigned flags)) \
  X(required, 4000, cuPointerGetAttribute, PointerGetAttribute, (void* value, pointer_attribute attribute, device_pointer address)) \
  X(required, 4000, cuMemHostUnregister, MemHostUnregister, (void* address)) \
  X(required, 3020, cuMemHostGetDevicePointer_v2, MemHostGetDevicePointer, (device_pointer* device, void* address, unsigned flags)) \
  X(required, 10000, cuLaunchHostFunc, LaunchHostFunc, (stream_handle stream, host_function function, void* argument)) \
  X(required, 2000, cuModuleLoadData, ModuleLoadData, (module_handle* module, const void* image)) \
  X(required, 2000, cuModuleUnload, ModuleUnload, (module_handle module)) \
  X(required, 2000, cuModuleGetFunction, ModuleGetFunction, (function_handle* function, module_handle module, const char* name)) \
  X(required, 4000, cuLaunchKernel, LaunchKernel, (function_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, stream_handle stream, void** parameters, void** extra)) \
  X(optional, 4010, cuIpcGetMemHandle, IpcGetMemHandle, (ipc_memory_handle* handle, device_pointer address)) \
  X(optional, 11000, cuIpcOpenMemHandle_v2, IpcOpenMemHandle, (device_pointer* address, ipc_memory_handle handle, unsigned flags)) \
  X(optional, 4010, cuIpcCloseMemHandle, IpcCloseMemHandle, (device_pointer address)) \
  X(optional, 4010, cuIpcGetEventHandle, IpcGetEventHandle, (ipc_event_handle* handle, event_handle event)) \
  X(optional, 4010, cuIpcOpenEventHandle, IpcOpenEventHandle, (event_handle* event, ipc_event_handle handle)) \
  X(optional, 10020, cuMemAddressReserve, MemAddressReserve, (device_pointer* address, size_t bytes, size_t alignment, device_pointer wanted, unsigned long long flags)) \
  X(optional, 10020, cuMemAddressFree, MemAddressFree, (device_pointer address, size_t bytes)) \
  X(optional, 10020, cuMemCreate, MemCreate, (allocation_handle* handle, size_t bytes, const allocation_properties* properties, unsigned long long flags)) \
  X(optional, 10020, cuMemRelease, MemRelease, (allocation_handle handle)) \
  X(optional, 10020, cuMemMap, MemMap, (device_pointer address, size_t bytes, size_t offset, allocation_handle handle, unsigned long long flags)) \
  X(optional, 10020, cuMemUnmap, MemUnmap, (device_pointer address, size_t bytes)) \
  X(optional, 10020, cuMemSetAccess, MemSetAccess, (device_pointer address, size_t bytes, const access_description* descriptions, size_t count)) \
  X(optional, 10020, cuMemGetAllocationGranularity, MemGetAllocationGranularity, (size_t* bytes, const allocation_properties* properties, granularity option)) \
  X(optional, 10020, cuMemExportToShareableHandle, MemExportToShareableHandle, (void* shareable, allocation_handle handle, handle_type type, unsigned long long flags)) \
  X(optional, 10020, cuMemImportFromShareableHandle, MemImportFromShareableHandle, (allocation_handle* handle, void* shareable, handle_type type)) \
  X(optional, 11070, cuStreamWriteValue32_v2, StreamWriteValue32, (stream_handle stream, device_pointer address, uint32_t value, unsigned flags)) \
  X(optional, 11070, cuStreamWaitValue32_v2, StreamWaitValue32, (stream_handle stream, device_pointer address, uint32_t value, unsigned flags)) \
  X(optional, 13000, cuMemcpyBatchAsync_v2, MemcpyBatchAsync, (device_pointer* destinations, device_pointer* sources, size_t* bytes, size_t count, \
      copy_attributes* attributes, size_t* attribute_begins, size_t attribute_count, stream_handle stream)) \
  X(optional, 13000, cuMemcpy3DBatchAsync_v2, Memcpy3DBatchAsync, (size_t count, batch_copy* copies, unsigned long long flags, stream_handle stream))
// clang-format on

namespace terrace::cuda {

/// The driver's entry points, named as in its manual without `cu`. Optional ones that were not found are
/// null.
struct functions {
#define TERRACE_CUDA_MEMBER(need, version, symbol, name, parameters) status(*name) parameters = nullptr;
  TERRACE_CUDA_FUNCTIONS(TERRACE_CUDA_MEMBER)
#undef TERRACE_CUDA_MEMBER
};

} // namespace terrace::cuda
