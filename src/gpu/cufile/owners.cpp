#include "gpu/cufile/owners.hpp"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>

namespace terrace::cufile {

namespace {

bool is_set(uint32_t flags, control_flag which) { return (flags >> static_cast<uint32_t>(which) & 1) != 0; }

/// The library's own ways through host memory are no faster than ours.
result<void> refuse_compatibility(const functions& api) {
  driver_properties found;
  if (auto ok = library::check(api.DriverGetProperties(&found), "cuFileDriverGetProperties"); !ok)
    return ok;
  for (auto flag : {control_flag::allow_compatibility, control_flag::posix_io, control_flag::fallback_io})
    if (is_set(found.nvidia_fs.control_flags, flag))
      return fail(errc::unsupported, "cuFile may read through host memory; set properties.allow_compat_mode, "
                                     "posix_io_mode and gds_fallback_io to false in cufile.json");
  return {};
}

} // namespace

result<std::shared_ptr<const session>> session::open(std::shared_ptr<const library> from,
                                                     std::shared_ptr<const cuda::context> context) {
  return context->within([&]() -> result<std::shared_ptr<const session>> {
    const auto& api = from->api();
    if (api.SetParameterBool) // older ones have only the configuration file; the result is checked below
      for (auto parameter : {bool_parameter::allow_compatibility, bool_parameter::force_compatibility})
        api.SetParameterBool(parameter, false);
    if (auto ok = library::check(api.DriverOpen(), "cuFileDriverOpen"); !ok)
      return tl::unexpected(ok.error());
    std::shared_ptr<const session> made(new session(std::move(from), context));
    if (auto ok = refuse_compatibility(made->api()); !ok)
      return tl::unexpected(ok.error());
    return made;
  });
}

session::~session() {
  context_->within([this] { api().DriverClose(); });
}

result<file> file::open(std::shared_ptr<const session> turns, unique_fd descriptor) {
  file made;
  file_descriptor wanted;
  wanted.of.fd = descriptor.get();
  auto code = turns->context().within([&] { return turns->api().HandleRegister(&made.handle_, &wanted); });
  if (auto ok = library::check(code, "cuFileHandleRegister"); !ok)
    return tl::unexpected(ok.error());
  made.descriptor_ = std::move(descriptor);
  made.session_ = std::move(turns);
  return made;
}

file& file::operator=(file&& other) noexcept {
  if (this != &other) {
    reset();
    session_ = std::exchange(other.session_, nullptr);
    descriptor_ = std::move(other.descriptor_);
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void file::reset() {
  if (!session_)
    return;
  session_->context().within([this] { session_->api().HandleDeregister(handle_); });
  session_ = nullptr;
  descriptor_.reset();
}

result<void> file::read(cuda::device_pointer memory, uint64_t at, uint64_t bytes,
                        uint64_t file_offset) const {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t n = session_->context().within([&] {
      return session_->api().Read(handle_, reinterpret_cast<void*>(memory), bytes - done,
                                  static_cast<off_t>(file_offset + done), static_cast<off_t>(at + done));
    });
    if (n < 0)
      return fail(errc::internal, n == -1 ? "cuFileRead: " + std::string(std::strerror(errno))
                                          : "cuFileRead: error " + std::to_string(-n) + " of cuFile");
    if (n == 0)
      return fail(errc::internal, "cuFileRead: the file ends at " + std::to_string(file_offset + done));
    // The rest must be read from a whole block on.
    if (static_cast<uint64_t>(n) < bytes - done && n % 4096 != 0)
      return fail(errc::internal,
                  "cuFileRead: " + std::to_string(n) + " of " + std::to_string(bytes - done) + " bytes came");
    done += static_cast<uint64_t>(n);
  }
  return {};
}

result<buffer> buffer::make(std::shared_ptr<const session> turns, cuda::allocation memory) {
  const auto range = memory.get();
  auto code = turns->context().within(
      [&] { return turns->api().BufRegister(reinterpret_cast<const void*>(range.address), range.bytes, 0); });
  if (auto ok = library::check(code, "cuFileBufRegister"); !ok)
    return tl::unexpected(ok.error());
  buffer made;
  made.session_ = std::move(turns);
  made.memory_ = std::move(memory);
  return made;
}

buffer& buffer::operator=(buffer&& other) noexcept {
  if (this != &other) {
    reset();
    session_ = std::exchange(other.session_, nullptr);
    memory_ = std::move(other.memory_);
  }
  return *this;
}

void buffer::reset() {
  if (!session_)
    return;
  session_->context().within(
      [this] { session_->api().BufDeregister(reinterpret_cast<const void*>(memory_.get().address)); });
  session_ = nullptr;
  memory_.reset();
}

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

result<void> library::check(status code, std::string_view name) {
  if (code.code == op_error::success)
    return {};
  const char* meaning = meaning_of(code.code);
  std::string text =
      std::string(name) + ": error " + std::to_string(static_cast<uint32_t>(code.code)) + " of cuFile";
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
