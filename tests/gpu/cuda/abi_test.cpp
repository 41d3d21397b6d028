// Compares our declarations of the driver's types and functions with NVIDIA's headers, at compile time, and
// only where the toolkit is installed.
#include "driver_fixture.hpp"
#include "gpu/cuda/driver.hpp"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace terrace::cuda {
namespace {

/// True if two types are passed alike: numbers of one size and sign, structs of one size and alignment,
/// pointers to such.
template <class Ours, class Theirs>
constexpr bool alike() {
  using ours = std::remove_cv_t<Ours>;
  using theirs = std::remove_cv_t<Theirs>;
  if constexpr (std::is_same_v<ours, theirs>)
    return true;
  else if constexpr (std::is_pointer_v<ours> && std::is_pointer_v<theirs>) {
    using our_target = std::remove_pointer_t<ours>;
    using their_target = std::remove_pointer_t<theirs>;
    if constexpr (std::is_void_v<our_target> || std::is_void_v<their_target> ||
                  std::is_function_v<our_target>)
      return std::is_same_v<our_target, their_target>;
    else if constexpr (requires { sizeof(our_target), sizeof(their_target); })
      return std::is_const_v<our_target> == std::is_const_v<their_target> &&
             alike<our_target, their_target>();
    else // handles: pointers to objects that only the driver knows
      return !requires { sizeof(our_target); }
    &&!requires { sizeof(their_target); };
  } else if constexpr ((std::is_integral_v<ours> || std::is_enum_v<ours>) &&(std::is_integral_v<theirs> ||
                                                                             std::is_enum_v<theirs>) )
    return sizeof(ours) == sizeof(theirs) &&
           (std::is_enum_v<theirs> || std::is_signed_v<ours> == std::is_signed_v<theirs>);
  else
    return std::is_class_v<ours> && std::is_class_v<theirs> && sizeof(ours) == sizeof(theirs) &&
           alignof(ours) == alignof(theirs) && std::is_trivially_copyable_v<ours>;
}

template <class Ours, class Theirs>
struct compare;
template <class R, class... A, class S, class... B>
struct compare<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return alike<R, S>() && (alike<A, B>() && ...);
    else
      return false;
  }();
};

// The typedefs name the version that a signature came with, so these check our versions as well.
#define TERRACE_CHECK(need, version, symbol, name, parameters)                                               \
  static_assert(compare<decltype(functions::name), PFN_cu##name##_v##version>::value, "cu" #name);
TERRACE_CUDA_FUNCTIONS(TERRACE_CHECK)
#undef TERRACE_CHECK

#define SAME_SIZE(ours, theirs)                                                                              \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_PLACE(ours, our_member, theirs, their_member)                                                   \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&                              \
                sizeof(ours::our_member) == sizeof(theirs::their_member))
#define SAME_VALUE(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))

SAME_SIZE(device_uuid, CUuuid);
SAME_SIZE(ipc_memory_handle, CUipcMemHandle);
SAME_SIZE(ipc_event_handle, CUipcEventHandle);
SAME_SIZE(memory_location, CUmemLocation);
SAME_PLACE(memory_location, id, CUmemLocation, id);

SAME_SIZE(copy_2d, CUDA_MEMCPY2D);
SAME_PLACE(copy_2d, source_x, CUDA_MEMCPY2D, srcXInBytes);
SAME_PLACE(copy_2d, source_y, CUDA_MEMCPY2D, srcY);
SAME_PLACE(copy_2d, source_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(copy_2d, source_host, CUDA_MEMCPY2D, srcHost);
SAME_PLACE(copy_2d, source, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(copy_2d, source_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(copy_2d, destination_x, CUDA_MEMCPY2D, dstXInBytes);
SAME_PLACE(copy_2d, destination_y, CUDA_MEMCPY2D, dstY);
SAME_PLACE(copy_2d, destination_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(copy_2d, destination_host, CUDA_MEMCPY2D, dstHost);
SAME_PLACE(copy_2d, destination, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(copy_2d, destination_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(copy_2d, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(copy_2d, height, CUDA_MEMCPY2D, Height);

SAME_SIZE(copy_3d, CUDA_MEMCPY3D);
SAME_PLACE(copy_3d, source_z, CUDA_MEMCPY3D, srcZ);
SAME_PLACE(copy_3d, source_lod, CUDA_MEMCPY3D, srcLOD);
SAME_PLACE(copy_3d, source_type, CUDA_MEMCPY3D, srcMemoryType);
SAME_PLACE(copy_3d, source_host, CUDA_MEMCPY3D, srcHost);
SAME_PLACE(copy_3d, source, CUDA_MEMCPY3D, srcDevice);
SAME_PLACE(copy_3d, reserved_0, CUDA_MEMCPY3D, reserved0);
SAME_PLACE(copy_3d, source_pitch, CUDA_MEMCPY3D, srcPitch);
SAME_PLACE(copy_3d, source_height, CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(copy_3d, destination_x, CUDA_MEMCPY3D, dstXInBytes);
SAME_PLACE(copy_3d, destination_z, CUDA_MEMCPY3D, dstZ);
SAME_PLACE(copy_3d, destination_type, CUDA_MEMCPY3D, dstMemoryType);
SAME_PLACE(copy_3d, destination, CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(copy_3d, reserved_1, CUDA_MEMCPY3D, reserved1);
SAME_PLACE(copy_3d, destination_pitch, CUDA_MEMCPY3D, dstPitch);
SAME_PLACE(copy_3d, destination_height, CUDA_MEMCPY3D, dstHeight);
SAME_PLACE(copy_3d, width, CUDA_MEMCPY3D, WidthInBytes);
SAME_PLACE(copy_3d, height, CUDA_MEMCPY3D, Height);
SAME_PLACE(copy_3d, depth, CUDA_MEMCPY3D, Depth);

SAME_SIZE(copy_attributes, CUmemcpyAttributes);
SAME_PLACE(copy_attributes, order, CUmemcpyAttributes, srcAccessOrder);
SAME_PLACE(copy_attributes, source_hint, CUmemcpyAttributes, srcLocHint);
SAME_PLACE(copy_attributes, destination_hint, CUmemcpyAttributes, dstLocHint);
SAME_PLACE(copy_attributes, flags, CUmemcpyAttributes, flags);

SAME_SIZE(batch_operand, CUmemcpy3DOperand);
static_assert(offsetof(batch_operand, pointer) == offsetof(CUmemcpy3DOperand, op));
using their_pointer = decltype(CUmemcpy3DOperand::op.ptr);
SAME_PLACE(batch_operand::pointer_operand, address, their_pointer, ptr);
SAME_PLACE(batch_operand::pointer_operand, row_bytes, their_pointer, rowLength);
SAME_PLACE(batch_operand::pointer_operand, layer_rows, their_pointer, layerHeight);
SAME_PLACE(batch_operand::pointer_operand, hint, their_pointer, locHint);

SAME_SIZE(batch_copy, CUDA_MEMCPY3D_BATCH_OP);
SAME_PLACE(batch_copy, source, CUDA_MEMCPY3D_BATCH_OP, src);
SAME_PLACE(batch_copy, destination, CUDA_MEMCPY3D_BATCH_OP, dst);
static_assert(offsetof(batch_copy, width) ==
              offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) + offsetof(CUextent3D, width));
static_assert(offsetof(batch_copy, height) ==
              offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) + offsetof(CUextent3D, height));
static_assert(offsetof(batch_copy, depth) ==
              offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) + offsetof(CUextent3D, depth));
SAME_PLACE(batch_copy, order, CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder);
SAME_PLACE(batch_copy, flags, CUDA_MEMCPY3D_BATCH_OP, flags);

SAME_SIZE(allocation_properties, CUmemAllocationProp);
SAME_PLACE(allocation_properties, handles, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(allocation_properties, location, CUmemAllocationProp, location);
SAME_PLACE(allocation_properties, win32_metadata, CUmemAllocationProp, win32HandleMetaData);
SAME_SIZE(access_description, CUmemAccessDesc);
SAME_PLACE(access_description, flags, CUmemAccessDesc, flags);

SAME_VALUE(status::invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(status::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(status::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(status::deinitialized, CUDA_ERROR_DEINITIALIZED);
SAME_VALUE(status::stub_library, CUDA_ERROR_STUB_LIBRARY);
SAME_VALUE(status::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME_VALUE(status::no_device, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(status::invalid_device, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(status::invalid_image, CUDA_ERROR_INVALID_IMAGE);
SAME_VALUE(status::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(status::map_failed, CUDA_ERROR_MAP_FAILED);
SAME_VALUE(status::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_VALUE(status::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_VALUE(status::nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME_VALUE(status::contained, CUDA_ERROR_CONTAINED);
SAME_VALUE(status::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(status::not_found, CUDA_ERROR_NOT_FOUND);
SAME_VALUE(status::not_ready, CUDA_ERROR_NOT_READY);
SAME_VALUE(status::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(status::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_VALUE(status::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_VALUE(status::assertion, CUDA_ERROR_ASSERT);
SAME_VALUE(status::host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME_VALUE(status::host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME_VALUE(status::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_VALUE(status::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME_VALUE(status::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME_VALUE(status::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME_VALUE(status::invalid_pc, CUDA_ERROR_INVALID_PC);
SAME_VALUE(status::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
SAME_VALUE(status::not_permitted, CUDA_ERROR_NOT_PERMITTED);
SAME_VALUE(status::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(status::unknown, CUDA_ERROR_UNKNOWN);

SAME_VALUE(device_attribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(device_attribute::async_engine_count, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME_VALUE(device_attribute::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME_VALUE(device_attribute::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(device_attribute::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(device_attribute::host_pointer_for_registered_memory,
           CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME_VALUE(device_attribute::host_register_supported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME_VALUE(device_attribute::virtual_memory_management,
           CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_VALUE(device_attribute::posix_file_descriptor_handles,
           CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(device_attribute::read_only_host_register, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
SAME_VALUE(device_attribute::gpu_direct_rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
SAME_VALUE(device_attribute::dma_buf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME_SIZE(pointer_attribute, CUpointer_attribute);
SAME_VALUE(pointer_attribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(pointer_attribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(device_attribute::ipc_events, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);

SAME_VALUE(stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(event_disable_timing, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(event_interprocess, CU_EVENT_INTERPROCESS);
SAME_VALUE(host_register_portable, CU_MEMHOSTREGISTER_PORTABLE);
SAME_VALUE(host_register_device_map, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME_VALUE(host_register_read_only, CU_MEMHOSTREGISTER_READ_ONLY);
SAME_VALUE(ipc_lazy_enable_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME_VALUE(wait_value_geq, CU_STREAM_WAIT_VALUE_GEQ);
SAME_VALUE(wait_value_equal, CU_STREAM_WAIT_VALUE_EQ);
SAME_VALUE(wait_value_and, CU_STREAM_WAIT_VALUE_AND);
SAME_VALUE(write_value_default, CU_STREAM_WRITE_VALUE_DEFAULT);
SAME_VALUE(memory_type::host, CU_MEMORYTYPE_HOST);
SAME_VALUE(memory_type::device, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(memory_type::unified, CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(location_type::device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(location_type::host, CU_MEM_LOCATION_TYPE_HOST);
SAME_VALUE(source_order::stream, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
SAME_VALUE(source_order::during_call, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
SAME_VALUE(source_order::any, CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
SAME_VALUE(operand_type::pointer, CU_MEMCPY_OPERAND_TYPE_POINTER);
SAME_VALUE(operand_type::array, CU_MEMCPY_OPERAND_TYPE_ARRAY);
SAME_VALUE(allocation_type::pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(handle_type::posix_file_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(granularity::minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(granularity::recommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME_VALUE(access::read, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME_VALUE(access::read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(lookup_result::not_found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME_VALUE(lookup_result::version_not_sufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

TEST(DriverAbi, IsThatOfTheInstalledToolkit) { SUCCEED() << "everything above is compared by the compiler"; }

// The toolkit has a library to link against on machines without a driver. It has every symbol but no function.
TEST(Driver, AStubLibraryIsNoDriver) {
  SKIP_ON_REAL_DRIVER(); // it has the same name, so it would be found from then on instead of the real one
  auto opened = driver::open(TERRACE_CUDA_STUB);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported) << opened.error().text;
}

} // namespace
} // namespace terrace::cuda
