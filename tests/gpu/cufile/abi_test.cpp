// Our types and functions against those of cuFile's header.
#include "gpu/cufile/owners.hpp"

#include <cufile.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace terrace::cufile {
namespace {

/// Checks that both members have the same offset and size.
#define SAME_MEMBER(ours, our_member, theirs, their_member)                                                  \
  EXPECT_EQ(offsetof(ours, our_member), offsetof(theirs, their_member)) << #our_member;                      \
  EXPECT_EQ(sizeof(std::declval<ours>().our_member), sizeof(std::declval<theirs>().their_member))            \
      << #our_member

TEST(CufileAbi, TypesHaveTheSizesAndOffsetsOfTheHeader) {
  EXPECT_EQ(sizeof(op_error), sizeof(CUfileOpError));
  EXPECT_EQ(sizeof(handle_type), sizeof(CUfileFileHandleType));
  EXPECT_EQ(sizeof(file_handle), sizeof(CUfileHandle_t));
  EXPECT_EQ(sizeof(status), sizeof(CUfileError_t));
  SAME_MEMBER(status, code, CUfileError_t, err);
  SAME_MEMBER(status, driver, CUfileError_t, cu_err);
  EXPECT_EQ(sizeof(file_descriptor), sizeof(CUfileDescr_t));
  SAME_MEMBER(file_descriptor, type, CUfileDescr_t, type);
  SAME_MEMBER(file_descriptor, of, CUfileDescr_t, handle);
  SAME_MEMBER(file_descriptor, of.fd, CUfileDescr_t, handle.fd);
  SAME_MEMBER(file_descriptor, of.handle, CUfileDescr_t, handle.handle);
  SAME_MEMBER(file_descriptor, operations, CUfileDescr_t, fs_ops);
  EXPECT_EQ(sizeof(driver_properties), sizeof(CUfileDrvProps_t));
  SAME_MEMBER(driver_properties, nvidia_fs, CUfileDrvProps_t, nvfs);
  SAME_MEMBER(driver_properties, nvidia_fs.major_version, CUfileDrvProps_t, nvfs.major_version);
  SAME_MEMBER(driver_properties, nvidia_fs.minor_version, CUfileDrvProps_t, nvfs.minor_version);
  SAME_MEMBER(driver_properties, nvidia_fs.poll_threshold_bytes, CUfileDrvProps_t, nvfs.poll_thresh_size);
  SAME_MEMBER(driver_properties, nvidia_fs.max_direct_io_bytes, CUfileDrvProps_t, nvfs.max_direct_io_size);
  SAME_MEMBER(driver_properties, nvidia_fs.status_flags, CUfileDrvProps_t, nvfs.dstatusflags);
  SAME_MEMBER(driver_properties, nvidia_fs.control_flags, CUfileDrvProps_t, nvfs.dcontrolflags);
  SAME_MEMBER(driver_properties, features, CUfileDrvProps_t, fflags);
  SAME_MEMBER(driver_properties, max_device_cache_bytes, CUfileDrvProps_t, max_device_cache_size);
  SAME_MEMBER(driver_properties, per_buffer_cache_bytes, CUfileDrvProps_t, per_buffer_cache_size);
  SAME_MEMBER(driver_properties, max_pinned_bytes, CUfileDrvProps_t, max_device_pinned_mem_size);
  SAME_MEMBER(driver_properties, max_batch, CUfileDrvProps_t, max_batch_io_size);
  SAME_MEMBER(driver_properties, max_batch_timeout_ms, CUfileDrvProps_t, max_batch_io_timeout_msecs);
}
#undef SAME_MEMBER

TEST(CufileAbi, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(static_cast<int>(op_error::success), CU_FILE_SUCCESS);
  EXPECT_EQ(static_cast<int>(op_error::driver_not_initialized), CU_FILE_DRIVER_NOT_INITIALIZED);
  EXPECT_EQ(static_cast<int>(op_error::platform_not_supported), CU_FILE_PLATFORM_NOT_SUPPORTED);
  EXPECT_EQ(static_cast<int>(op_error::io_not_supported), CU_FILE_IO_NOT_SUPPORTED);
  EXPECT_EQ(static_cast<int>(op_error::invalid_file_type), CU_FILE_INVALID_FILE_TYPE);
  EXPECT_EQ(static_cast<int>(op_error::dio_not_set), CU_FILE_DIO_NOT_SET);
  EXPECT_EQ(static_cast<int>(op_error::invalid_value), CU_FILE_INVALID_VALUE);
  EXPECT_EQ(static_cast<int>(op_error::memory_already_registered), CU_FILE_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(static_cast<int>(op_error::memory_not_registered), CU_FILE_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(static_cast<int>(op_error::driver_already_open), CU_FILE_DRIVER_ALREADY_OPEN);
  EXPECT_EQ(static_cast<int>(op_error::handle_not_registered), CU_FILE_HANDLE_NOT_REGISTERED);
  EXPECT_EQ(static_cast<int>(op_error::handle_already_registered), CU_FILE_HANDLE_ALREADY_REGISTERED);
  EXPECT_EQ(static_cast<int>(op_error::internal_error), CU_FILE_INTERNAL_ERROR);
  EXPECT_EQ(static_cast<int>(handle_type::opaque_fd), CU_FILE_HANDLE_TYPE_OPAQUE_FD);
  EXPECT_EQ(static_cast<int>(control_flag::allow_compatibility), CU_FILE_ALLOW_COMPAT_MODE);
#if CUDA_VERSION >= 13000 // older headers have no names for these
  EXPECT_EQ(static_cast<int>(control_flag::posix_io), CU_FILE_POSIX_IO_MODE);
  EXPECT_EQ(static_cast<int>(control_flag::fallback_io), CU_FILE_FALLBACK_IO_MODE);
  EXPECT_EQ(static_cast<int>(bool_parameter::allow_compatibility), CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE);
  EXPECT_EQ(static_cast<int>(bool_parameter::force_compatibility), CUFILE_PARAM_FORCE_COMPAT_MODE);
  EXPECT_EQ(sizeof(bool_parameter), sizeof(CUFileBoolConfigParameter_t));
#endif
}

/// Checks that both have the same number of parameters of the same sizes: pointers to our types stand for
/// pointers to the header's.
template <class Ours, class Theirs>
struct alike : std::false_type {};
template <class OurAnswer, class... Ours, class TheirAnswer, class... Theirs>
struct alike<OurAnswer (*)(Ours...), TheirAnswer (*)(Theirs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else if constexpr (std::is_void_v<OurAnswer> || std::is_void_v<TheirAnswer>)
      return std::is_void_v<OurAnswer> && std::is_void_v<TheirAnswer> &&
             ((sizeof(Ours) == sizeof(Theirs)) && ...);
    else
      return sizeof(OurAnswer) == sizeof(TheirAnswer) && ((sizeof(Ours) == sizeof(Theirs)) && ...);
  }();
};

#define ALIKE(name) static_assert(alike<decltype(functions::name), decltype(&cuFile##name)>::value)
ALIKE(DriverOpen);
ALIKE(DriverClose);
ALIKE(DriverGetProperties);
ALIKE(HandleRegister);
ALIKE(HandleDeregister);
ALIKE(BufRegister);
ALIKE(BufDeregister);
ALIKE(Read);
#if CUDA_VERSION >= 13000
ALIKE(GetVersion);
ALIKE(SetParameterBool);
#endif
#undef ALIKE

} // namespace
} // namespace terrace::cufile
