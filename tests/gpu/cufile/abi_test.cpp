// Our types and functions against those of cuFile's header.
#include "gpu/cufile/cufile_functions.hpp"

#include <cufile.h>
#include <gtest/gtest.h>

#include <type_traits>

namespace terrace::cufile {
namespace {

TEST(CufileAbi, TypesHaveTheSizesAndOffsetsOfTheHeader) {
  EXPECT_EQ(sizeof(status), sizeof(CUfileError_t));
  EXPECT_EQ(offsetof(status, driver), offsetof(CUfileError_t, cu_err));
  EXPECT_EQ(sizeof(file_descriptor), sizeof(CUfileDescr_t));
  EXPECT_EQ(offsetof(file_descriptor, of), offsetof(CUfileDescr_t, handle));
  EXPECT_EQ(offsetof(file_descriptor, operations), offsetof(CUfileDescr_t, fs_ops));
  EXPECT_EQ(sizeof(driver_properties), sizeof(CUfileDrvProps_t));
  EXPECT_EQ(offsetof(driver_properties, nvidia_fs.max_direct_io_bytes),
            offsetof(CUfileDrvProps_t, nvfs.max_direct_io_size));
  EXPECT_EQ(offsetof(driver_properties, nvidia_fs.control_flags),
            offsetof(CUfileDrvProps_t, nvfs.dcontrolflags));
  EXPECT_EQ(offsetof(driver_properties, features), offsetof(CUfileDrvProps_t, fflags));
  EXPECT_EQ(sizeof(file_handle), sizeof(CUfileHandle_t));
}

TEST(CufileAbi, NumbersAreThoseOfTheHeader) {
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
}

/// The same number of parameters of the same sizes: pointers to our types stand for pointers to the header's.
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
#undef ALIKE

} // namespace
} // namespace terrace::cufile
