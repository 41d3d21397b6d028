// The types of the CUDA driver's ABI that Terrace uses, declared here so that no toolkit is needed to build.
// tests/gpu/cuda/abi_test.cpp compares every size, offset, number and signature with NVIDIA's cuda.h if it is
// installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::cuda {

/// CUresult. Only the values that the code or its tests use; the driver may return others.
enum class status : uint32_t {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  map_failed = 205,
  no_binary_for_gpu = 209,
  ecc_uncorrectable = 214,
  nvlink_uncorrectable = 220,
  peer_access_unsupported = 217,
  contained = 226,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_timeout = 702,
  context_is_destroyed = 709,
  assertion = 710,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  unknown = 999,
};

/// CUdevice_attribute.
enum class device_attribute : uint32_t {
  multiprocessor_count = 16,
  async_engine_count = 40,
  unified_addressing = 41,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  host_pointer_for_registered_memory = 91,
  host_register_supported = 99,
  virtual_memory_management = 102,
  posix_file_descriptor_handles = 103,
  read_only_host_register = 113,
  gpu_direct_rdma = 116,
  dma_buf = 124,
  ipc_events = 125,
};

/// CUpointer_attribute.
enum class pointer_attribute : uint32_t { memory_type = 2, device_ordinal = 9 };

using device_ordinal = int;                   ///< CUdevice
using device_pointer = unsigned long long;    ///< CUdeviceptr
using allocation_handle = unsigned long long; ///< CUmemGenericAllocationHandle
using context_handle = struct opaque_context*;
using stream_handle = struct opaque_stream*;
using event_handle = struct opaque_event*;
using module_handle = struct opaque_module*;
using function_handle = struct opaque_function*;
using array_handle = struct opaque_array*; ///< always null: CUDA arrays are not used
using host_function = void (*)(void*);

struct device_uuid {
  char bytes[16] = {};
  friend bool operator==(const device_uuid&, const device_uuid&) = default;
};

struct ipc_memory_handle {
  char reserved[64] = {};
};

struct ipc_event_handle {
  char reserved[64] = {};
};

constexpr unsigned stream_non_blocking = 1;

constexpr unsigned event_disable_timing = 2;
constexpr unsigned event_interprocess = 4;

constexpr unsigned host_register_portable = 1;
constexpr unsigned host_register_device_map = 2;
constexpr unsigned host_register_read_only = 8;

constexpr unsigned ipc_lazy_enable_peer_access = 1;

constexpr unsigned wait_value_geq = 0; ///< int32_t(*address - value) >= 0
constexpr unsigned wait_value_equal = 1;
constexpr unsigned wait_value_and = 2;
constexpr unsigned write_value_default = 0; ///< earlier writes of the stream are visible before the value

enum class memory_type : uint32_t { host = 1, device = 2, array = 3, unified = 4 };

struct copy_2d {
  size_t source_x = 0; ///< in bytes
  size_t source_y = 0;
  memory_type source_type = memory_type::unified;
  const void* source_host = nullptr;
  device_pointer source = 0;
  array_handle source_array = nullptr;
  size_t source_pitch = 0;
  size_t destination_x = 0;
  size_t destination_y = 0;
  memory_type destination_type = memory_type::unified;
  void* destination_host = nullptr;
  device_pointer destination = 0;
  array_handle destination_array = nullptr;
  size_t destination_pitch = 0;
  size_t width = 0; ///< in bytes
  size_t height = 0;
};

struct copy_3d {
  size_t source_x = 0; ///< in bytes
  size_t source_y = 0;
  size_t source_z = 0;
  size_t source_lod = 0;
  memory_type source_type = memory_type::unified;
  const void* source_host = nullptr;
  device_pointer source = 0;
  array_handle source_array = nullptr;
  void* reserved_0 = nullptr;
  size_t source_pitch = 0;
  size_t source_height = 0;
  size_t destination_x = 0;
  size_t destination_y = 0;
  size_t destination_z = 0;
  size_t destination_lod = 0;
  memory_type destination_type = memory_type::unified;
  void* destination_host = nullptr;
  device_pointer destination = 0;
  array_handle destination_array = nullptr;
  void* reserved_1 = nullptr;
  size_t destination_pitch = 0;
  size_t destination_height = 0;
  size_t width = 0; ///< in bytes
  size_t height = 0;
  size_t depth = 0;
};

enum class location_type : uint32_t { none = 0, device = 1, host = 2 };

struct memory_location {
  location_type type = location_type::none;
  int id = 0;
};

/// Says when a batched copy may read its source.
enum class source_order : uint32_t { invalid = 0, stream = 1, during_call = 2, any = 3 };

struct copy_attributes {
  source_order order = source_order::stream;
  memory_location source_hint;
  memory_location destination_hint;
  unsigned flags = 0;
};

enum class operand_type : uint32_t { pointer = 1, array = 2 };

struct batch_operand {
  operand_type type = operand_type::pointer;
  struct pointer_operand {
    device_pointer address = 0;
    size_t row_bytes = 0;  ///< distance between the starts of rows; 0: packed
    size_t layer_rows = 0; ///< 0: packed
    memory_location hint;
  } pointer;
};

struct batch_copy {
  batch_operand source;
  batch_operand destination;
  size_t width = 0; ///< in bytes
  size_t height = 0;
  size_t depth = 1;
  source_order order = source_order::stream;
  unsigned flags = 0;
};

enum class allocation_type : uint32_t { pinned = 1 };
enum class handle_type : uint32_t { none = 0, posix_file_descriptor = 1 };
enum class granularity : uint32_t { minimum = 0, recommended = 1 };
enum class access : uint32_t { none = 0, read = 1, read_write = 3 };

struct allocation_properties {
  allocation_type type = allocation_type::pinned;
  handle_type handles = handle_type::none;
  memory_location location;
  void* win32_metadata = nullptr;
  unsigned char compression = 0;
  unsigned char gpu_direct_rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

struct access_description {
  memory_location location;
  access flags = access::none;
};

/// CUdriverProcAddressQueryResult
enum class lookup_result : uint32_t { success = 0, not_found = 1, version_not_sufficient = 2 };

} // namespace terrace::cuda
