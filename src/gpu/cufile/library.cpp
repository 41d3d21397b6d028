#include "gpu/cufile/library.hpp"

#include <dlfcn.h>

namespace terrace::cufile {

namespace {

/// In newer headers, functions whose behaviour has changed have another symbol.
void* find_symbol(void* handle, const char* name) {
  void* newer = dlsym(handle, (std::string(name) + "_v2").c_str());
  return newer ? newer : dlsym(handle, name);
}

const char* meaning_of(op_error code) {
  switch (code) {
    case op_error::driver_not_initialized: return "nvidia-fs is not loaded";
    case op_error::platform_not_supported: return "not supported on this machine";
    case op_error::io_not_supported: return "not supported by the file system";
    case op_error::invalid_file_type: return "not supported for this kind of file";
    case op_error::dio_not_set: return "the file is not open for O_DIRECT";
    default: return nullptr;
  }
}

} // namespace

result<std::shared_ptr<const library>> library::open(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return fail(errc::unsupported, "no cuFile: " + std::string(reason ? reason : name));
  }
  std::shared_ptr<library> found(new library);
  std::string lacking;
  enum class need { required, optional };
  auto keep = [&](need how, const char* symbol) {
    void* address = find_symbol(handle, symbol);
    if (!address && how == need::required)
      lacking += (lacking.empty() ? "" : ", ") + std::string(symbol);
    return address;
  };
#define TERRACE_CUFILE_FIND(how, name, answer, parameters)                                                   \
  found->api_.name = reinterpret_cast<decltype(functions::name)>(keep(need::how, "cuFile" #name));
  TERRACE_CUFILE_FUNCTIONS(TERRACE_CUFILE_FIND)
#undef TERRACE_CUFILE_FIND
  if (!lacking.empty())
    return fail(errc::unsupported, name + " lacks " + lacking);
  if (found->api_.GetVersion && found->api_.GetVersion(&found->version_).code != op_error::success)
    found->version_ = 0;
  return found;
}

result<void> library::check(status code, std::string_view what) {
  if (code.code == op_error::success)
    return {};
  const char* meaning = meaning_of(code.code);
  std::string text =
      std::string(what) + ": error " + std::to_string(static_cast<uint32_t>(code.code)) + " of cuFile";
  if (code.driver != cuda::status::success)
    text += ", " + std::to_string(static_cast<uint32_t>(code.driver)) + " of CUDA";
  return fail(meaning ? errc::unsupported : errc::internal,
              text + (meaning ? std::string(", ") + meaning : ""));
}

std::string report(const result<std::shared_ptr<const library>>& found) {
  if (!found)
    return found.error().text + "\n";
  int version = (*found)->version();
  std::string text = "cuFile";
  if (version != 0)
    text += " " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  return text + "; `terrace status` tells of each GPU in use whether it reads disks directly\n";
}

} // namespace terrace::cufile
