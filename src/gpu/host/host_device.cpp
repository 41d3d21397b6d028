#include "gpu/host/host_device.hpp"

#include "gpu/host/host_engine.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace::gpu {

namespace {

class host_device : public device {
 public:
  explicit host_device(host_device_options options) : state_(std::make_shared<host_device_state>()) {
    state_->options = std::move(options);
  }

  std::string name() const override { return "host memory"; }

  result<std::shared_ptr<memory>> allocate(uint64_t bytes) override {
    unique_fd descriptor(memfd_create("terrace-host-device", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor || bytes > static_cast<uint64_t>(INT64_MAX) ||
        ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0 ||
        fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return fail(errc::no_space, "no memory of " + std::to_string(bytes) + " bytes");
    return map(std::move(descriptor), bytes);
  }

  result<std::shared_ptr<memory>> pin(std::shared_ptr<const mapping> pages) override {
    return std::make_shared<host_memory>(std::move(pages));
  }

  result<std::shared_ptr<memory>> pin_for_reading(std::shared_ptr<const mapping> pages, uint64_t offset,
                                                  uint64_t bytes) override {
    return std::make_shared<host_memory>(std::move(pages), offset, bytes);
  }

  result<std::shared_ptr<memory>> import(memory_handle handle) override {
    struct stat about = {};
    int seals =
        handle.kind == memory_handle::kind_t::descriptor ? fcntl(handle.descriptor.get(), F_GET_SEALS) : -1;
    if (seals < 0 || fstat(handle.descriptor.get(), &about) != 0)
      return fail(errc::bad_request, "memory for the host device is a memfd");
    if (!(seals & F_SEAL_SHRINK))
      return fail(errc::denied, "memory that can shrink is not mapped: seal it with F_SEAL_SHRINK");
    auto bytes = static_cast<uint64_t>(about.st_size);
    if (handle.bytes == 0 || handle.bytes > bytes)
      return fail(errc::bad_request,
                  std::to_string(handle.bytes) + " bytes of a memfd of " + std::to_string(bytes));
    return map(std::move(handle.descriptor), handle.bytes);
  }

  result<std::shared_ptr<attached_page>> attach(std::shared_ptr<const generation_page> page) override {
    return std::make_shared<host_page>(std::move(page));
  }

  result<std::unique_ptr<copy_engine>> make_engine(std::shared_ptr<completion_queue> completions) override {
    return std::make_unique<host_engine>(state_, std::move(completions));
  }

 private:
  static result<std::shared_ptr<memory>> map(unique_fd descriptor, uint64_t bytes) {
    auto pages = mapping::map(descriptor.get(), bytes, true);
    if (!pages)
      return tl::unexpected(pages.error());
    return std::make_shared<host_memory>(std::move(descriptor), std::move(*pages));
  }

  std::shared_ptr<host_device_state> state_;
};

} // namespace

result<memory_handle> host_memory::share() const {
  if (!descriptor_)
    return fail(errc::unsupported, "pinned pages are shared by whoever mapped them");
  memory_handle handle;
  handle.descriptor.reset(fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0));
  handle.bytes = bytes();
  if (!handle.descriptor)
    return fail(errc::no_space, "no descriptor to share memory with");
  return handle;
}

result<std::shared_ptr<device>> make_host_device(host_device_options options) {
  return std::make_shared<host_device>(std::move(options));
}

} // namespace terrace::gpu
