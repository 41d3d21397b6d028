#include "gpu/cuda/driver.hpp"

#include <dlfcn.h>

namespace terrace::cuda {

namespace {

// The types of cuGetProcAddress in CUDA 12, and in 11.3, where it returns no reason.
using get_address_v2 = status (*)(const char* symbol, void** address, int version, uint64_t flags,
                                  lookup_result* reason);
using get_address_v1 = status (*)(const char* symbol, void** address, int version, uint64_t flags);

class symbol_finder {
 public:
  explicit symbol_finder(void* library)
      : v2_(reinterpret_cast<get_address_v2>(dlsym(library, "cuGetProcAddress_v2"))),
        v1_(reinterpret_cast<get_address_v1>(dlsym(library, "cuGetProcAddress"))) {}

  explicit operator bool() const { return v2_ || v1_; }

  void* find(const char* name, int version) const {
    void* address = nullptr;
    lookup_result reason = lookup_result::success;
    auto code = v2_ ? v2_(name, &address, version, 0, &reason) : v1_(name, &address, version, 0);
    return code == status::success && reason == lookup_result::success ? address : nullptr;
  }

 private:
  get_address_v2 v2_;
  get_address_v1 v1_;
};

int attribute(const functions& api, device_ordinal device, device_attribute which) {
  int value = 0;
  // An older driver does not know newer attributes: then the device lacks the capability.
  return api.DeviceGetAttribute(&value, which, device) == status::success ? value : 0;
}

} // namespace

result<std::shared_ptr<const driver>> driver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return fail(errc::unsupported, "no CUDA driver: " + std::string(reason ? reason : library));
  }
  symbol_finder finder(handle);
  if (!finder)
    return fail(errc::unsupported, library + " has no cuGetProcAddress; CUDA 11.3 or newer is needed");
  std::shared_ptr<driver> found(new driver);
  enum class need { required, optional };
  std::string lacking;
  auto keep = [&](need how, const char* name, void* address) {
    if (!address && how == need::optional)
      found->missing_.emplace_back(name);
    else if (!address)
      lacking += (lacking.empty() ? "" : ", ") + std::string(name);
    return address;
  };
#define TERRACE_CUDA_FIND(how, version, symbol, name, parameters)                                            \
  found->api_.name = reinterpret_cast<decltype(functions::name)>(                                            \
      keep(need::how, "cu" #name, finder.find("cu" #name, version)));
  TERRACE_CUDA_FUNCTIONS(TERRACE_CUDA_FIND)
#undef TERRACE_CUDA_FIND
  if (!lacking.empty())
    return fail(errc::unsupported, library + " lacks " + lacking);
  const auto& api = found->api_;
  if (auto code = api.Init(0); code != status::success)
    return fail(errc::unsupported, "cuInit: " + found->name_of(code));
  if (auto ok = found->check(api.DriverGetVersion(&found->version_), "cuDriverGetVersion"); !ok)
    return tl::unexpected(ok.error());
  return found;
}

result<std::vector<device_properties>> driver::devices() const {
  int count = 0;
  if (auto ok = check(api_.DeviceGetCount(&count), "cuDeviceGetCount"); !ok)
    return tl::unexpected(ok.error());
  std::vector<device_properties> all;
  for (int i = 0; i < count; ++i) {
    device_properties one;
    char name[256] = {};
    size_t bytes = 0;
    for (auto code : {api_.DeviceGet(&one.ordinal, i), api_.DeviceGetName(name, sizeof name - 1, one.ordinal),
                      api_.DeviceGetUuid(&one.uuid, one.ordinal), api_.DeviceTotalMem(&bytes, one.ordinal)})
      if (auto ok = check(code, "device " + std::to_string(i)); !ok)
        return tl::unexpected(ok.error());
    auto can = [&](device_attribute which) { return attribute(api_, one.ordinal, which) != 0; };
    one.name = name;
    one.memory_bytes = bytes;
    one.compute_major = attribute(api_, one.ordinal, device_attribute::compute_capability_major);
    one.compute_minor = attribute(api_, one.ordinal, device_attribute::compute_capability_minor);
    one.copy_engines = attribute(api_, one.ordinal, device_attribute::async_engine_count);
    one.ipc = api_.IpcGetMemHandle && api_.IpcOpenMemHandle && api_.IpcCloseMemHandle &&
              api_.IpcGetEventHandle && api_.IpcOpenEventHandle &&
              can(device_attribute::unified_addressing) && can(device_attribute::ipc_events);
    one.virtual_memory = api_.MemAddressReserve && api_.MemAddressFree && api_.MemCreate && api_.MemRelease &&
                         api_.MemMap && api_.MemUnmap && api_.MemSetAccess &&
                         api_.MemGetAllocationGranularity && api_.MemExportToShareableHandle &&
                         api_.MemImportFromShareableHandle &&
                         can(device_attribute::virtual_memory_management) &&
                         can(device_attribute::posix_file_descriptor_handles);
    // Version 2 of these functions works on every device; there is no attribute for it.
    one.stream_memory_ops = api_.StreamWriteValue32 && api_.StreamWaitValue32;
    one.read_only_pins = can(device_attribute::read_only_host_register);
    one.gpu_direct_rdma = can(device_attribute::gpu_direct_rdma);
    one.dma_buf = can(device_attribute::dma_buf);
    all.push_back(std::move(one));
  }
  return all;
}

result<device_properties> driver::find_device(const device_uuid& uuid) const {
  auto all = devices();
  if (!all)
    return tl::unexpected(all.error());
  for (auto& one : *all)
    if (one.uuid == uuid)
      return one;
  return fail(errc::not_found, "no device " + to_text(uuid) + " among " + std::to_string(all->size()));
}

result<located_device> locate(const std::string& uuid, const std::string& library) {
  auto wanted = parse_uuid(uuid);
  if (!wanted)
    return tl::unexpected(wanted.error());
  auto by = driver::open(library);
  if (!by)
    return tl::unexpected(by.error());
  auto properties = (*by)->find_device(*wanted);
  if (!properties)
    return tl::unexpected(properties.error());
  return located_device{std::move(*by), std::move(*properties)};
}

result<void> driver::check(status code, std::string_view text) const {
  if (code == status::success)
    return {};
  auto kind = code == status::out_of_memory   ? errc::no_space
              : code == status::not_supported ? errc::unsupported
              : is_sticky(code)               ? errc::gone
                                              : errc::internal;
  return fail(kind, std::string(text) + ": " + name_of(code));
}

std::string driver::name_of(status code) const {
  const char* name = nullptr;
  if (api_.GetErrorName(code, &name) == status::success && name)
    return name;
  return "CUDA error " + std::to_string(static_cast<uint32_t>(code));
}

bool is_sticky(status code) {
  switch (code) {
    case status::deinitialized:
    case status::device_unavailable:
    case status::ecc_uncorrectable:
    case status::nvlink_uncorrectable:
    case status::contained:
    case status::illegal_address:
    case status::launch_timeout:
    case status::context_is_destroyed:
    case status::assertion:
    case status::hardware_stack_error:
    case status::illegal_instruction:
    case status::misaligned_address:
    case status::invalid_address_space:
    case status::invalid_pc:
    case status::launch_failed:
    case status::unknown: return true;
    default: return false;
  }
}

std::string to_text(const device_uuid& uuid) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    auto byte = static_cast<uint8_t>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

result<device_uuid> parse_uuid(std::string_view text) {
  auto digits = text.starts_with("GPU-") ? text.substr(4) : text;
  device_uuid uuid;
  size_t nibbles = 0;
  for (char c : digits) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (c == '-')
      continue;
    if (value < 0 || nibbles == 32)
      return fail(errc::bad_request,
                  "`" + std::string(text) + "` is no UUID of a GPU, such as nvidia-smi -L shows");
    auto& byte = uuid.bytes[nibbles / 2];
    byte = static_cast<char>(static_cast<uint8_t>(byte) | value << (nibbles % 2 ? 0 : 4));
    ++nibbles;
  }
  if (nibbles != 32)
    return fail(errc::bad_request, "`" + std::string(text) + "` is no UUID of a GPU: 32 digits are needed");
  return uuid;
}

std::string report(const result<std::shared_ptr<const driver>>& found) {
  if (!found)
    return found.error().text + "\n";
  const auto& loaded = **found;
  std::string text = "CUDA driver " + std::to_string(loaded.version() / 1000) + "." +
                     std::to_string(loaded.version() % 1000 / 10);
  for (const auto& name : loaded.missing())
    text += (&name == &loaded.missing().front() ? ", without " : ", ") + name;
  text += '\n';
  auto devices = loaded.devices();
  if (!devices)
    return text + devices.error().text + "\n";
  for (const auto& one : *devices) {
    text += to_text(one.uuid) + " " + one.name + ", " + std::to_string(one.memory_bytes >> 20) +
            " MiB, compute " + std::to_string(one.compute_major) + "." + std::to_string(one.compute_minor) +
            ":";
    auto say = [&](const char* what, bool can) { text += std::string(can ? " " : " no ") + what; };
    say("IPC", one.ipc);
    say("VMM", one.virtual_memory);
    say("stream-memory-ops", one.stream_memory_ops);
    say("read-only-pins", one.read_only_pins);
    say("GPUDirect", one.gpu_direct_rdma);
    say("dma-buf", one.dma_buf);
    text += '\n';
  }
  return text;
}

} // namespace terrace::cuda
