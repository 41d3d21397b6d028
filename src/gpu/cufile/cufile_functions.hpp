// The functions of cuFile that Terrace uses, one per line: whether it is required, its name without `cuFile`,
// its result and its parameters.
#pragma once

#include "gpu/cufile/cufile_types.hpp"

// clang-format off
#define TERRACE_CUFILE_FUNCTIONS(X) \
  X(required, DriverOpen, status, ()) \
  X(required, DriverClose, status, ()) \
  X(required, DriverGetProperties, status, (driver_properties* properties)) \
  X(required, HandleRegister, status, (file_handle* handle, file_descriptor* descriptor)) \
  X(required, HandleDeregister, void, (file_handle handle)) \
  X(required, BufRegister, status, (const void* address, size_t bytes, int flags)) \
  X(required, BufDeregister, status, (const void* address)) \
  X(required, Read, ssize_t, (file_handle handle, void* address, size_t bytes, off_t file_offset, off_t address_offset)) \
  X(optional, GetVersion, status, (int* version)) \
  X(optional, SetParameterBool, status, (bool_parameter parameter, bool value))
// clang-format on

namespace terrace::cufile {

/// The library's entry points, named as in its manual without `cuFile`. Optional ones that were not found are null.
struct functions {
#define TERRACE_CUFILE_MEMBER(need, name, answer, parameters) answer(*name) parameters = nullptr;
  TERRACE_CUFILE_FUNCTIONS(TERRACE_CUFILE_MEMBER)
#undef TERRACE_CUFILE_MEMBER
};

} // namespace terrace::cufile
