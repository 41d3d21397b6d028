#include "gpu/cuda/cuda_device.hpp"

#include "gpu/cuda/cuda_engine.hpp"
#include "gpu/cufile/cuda_disk_reader.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <cstring>

namespace terrace::gpu {

namespace {

class cuda_device : public device {
 public:
  cuda_device(std::shared_ptr<const cuda_shared> shared, std::string name)
      : shared_(std::move(shared)), name_(std::move(name)) {}

  std::string name() const override { return name_; }

  result<std::shared_ptr<memory>> allocate(uint64_t bytes) override {
    if (!shared_->options.virtual_memory)
      return own(cuda::allocation::make(shared_->context, bytes));
    auto page = cuda::page_bytes(*shared_->context);
    if (!page)
      return tl::unexpected(page.error());
    if (bytes > UINT64_MAX - *page)
      return fail(errc::no_space, "no memory of " + std::to_string(bytes) + " bytes");
    auto whole = (bytes + *page - 1) / *page * *page;
    auto physical = cuda::physical_memory::make(shared_->context, whole);
    if (!physical)
      return tl::unexpected(physical.error());
    return own(cuda::virtual_memory::make(std::move(*physical), whole), bytes);
  }

  result<std::shared_ptr<memory>> pin(std::shared_ptr<const mapping> pages) override {
    auto registration = cuda::registration::make(shared_->context, pages->bytes());
    if (!registration)
      return tl::unexpected(registration.error());
    cuda::address_range range{registration->address(), pages->size()};
    return std::make_shared<cuda_memory>(shared_->context.get(),
                                         pinned_pages{std::move(pages), std::move(*registration)}, range);
  }

  result<std::shared_ptr<memory>> pin_for_reading(std::shared_ptr<const mapping> pages, uint64_t offset,
                                                  uint64_t bytes) override {
    if (!shared_->read_only_pins)
      return fail(errc::unsupported, name_ + " cannot pin memory that is mapped for reading");
    auto registration =
        cuda::registration::make_read_only(shared_->context, pages->bytes().subspan(offset, bytes));
    if (!registration)
      return tl::unexpected(registration.error());
    cuda::address_range range{registration->address(), bytes};
    return std::make_shared<cuda_memory>(
        shared_->context.get(), pinned_pages{std::move(pages), std::move(*registration)}, range, false);
  }

  result<std::shared_ptr<memory>> import(memory_handle handle) override {
    if (handle.bytes == 0)
      return fail(errc::bad_request, "0 bytes of another process's memory");
    if (handle.kind == memory_handle::kind_t::ipc) {
      cuda::ipc_memory_handle raw;
      std::memcpy(raw.reserved, handle.ipc.data(), sizeof raw.reserved);
      auto opened = cuda::ipc_import::open(shared_->context, raw);
      // The driver reports the size. It may be more than requested, but never less.
      if (opened && handle.bytes > opened->get().bytes)
        return fail(errc::bad_request, std::to_string(handle.bytes) + " bytes of memory of " +
                                           std::to_string(opened->get().bytes));
      return own(std::move(opened), handle.bytes);
    }
    auto page = cuda::page_bytes(*shared_->context);
    if (!page)
      return tl::unexpected(page.error());
    if (handle.bytes > UINT64_MAX - *page)
      return fail(errc::bad_request, std::to_string(handle.bytes) + " bytes of physical memory");
    auto physical = cuda::physical_memory::open(shared_->context, handle.descriptor.get());
    if (!physical)
      return tl::unexpected(physical.error());
    // The driver refuses a view larger than the memory.
    return own(cuda::virtual_memory::make(std::move(*physical), (handle.bytes + *page - 1) / *page * *page),
               handle.bytes);
  }

  result<std::shared_ptr<attached_page>> attach(std::shared_ptr<const generation_page> page) override {
    if (!shared_->stream_memory_ops)
      return fail(errc::unsupported,
                  name_ + " has no stream memory operations: register generations with events");
    auto registration = cuda::registration::make(shared_->context, page->memory().bytes());
    if (!registration)
      return tl::unexpected(registration.error());
    return std::make_shared<cuda_counters>(std::move(page), std::move(*registration));
  }

  result<std::shared_ptr<attached_page>> attach_with_events(std::shared_ptr<const generation_page> page,
                                                            uint32_t events) override {
    auto made = cuda_events::make(shared_->context, std::move(page), events);
    if (!made)
      return tl::unexpected(made.error());
    return std::shared_ptr<attached_page>(std::move(*made));
  }

  result<std::unique_ptr<copy_engine>> make_engine(std::shared_ptr<completion_queue> completions) override {
    auto stream = cuda::stream::make(shared_->context), reports = cuda::stream::make(shared_->context);
    auto issued = cuda::event::make(shared_->context);
    for (const error* failure : {error_of(stream), error_of(reports), error_of(issued)})
      if (failure != nullptr)
        return tl::unexpected(*failure);
    return std::make_unique<cuda_engine>(shared_, std::move(*stream), std::move(*reports), std::move(*issued),
                                         std::move(completions));
  }

  result<std::shared_ptr<disk_reader>> open_disk_reader(uint64_t bytes) override {
    return make_cuda_disk_reader(shared_->context, bytes);
  }

 private:
  template <class Made>
  static const error* error_of(const result<Made>& made) {
    return made ? nullptr : &made.error();
  }
  static cuda::address_range range_of(const cuda::virtual_memory& made) { return made.range(); }
  template <class Made>
  static cuda::address_range range_of(const Made& made) {
    return made.get();
  }

  /// `bytes` is the size to use, 0 for all.
  template <class Made>
  result<std::shared_ptr<memory>> own(result<Made> made, uint64_t bytes = 0) {
    if (!made)
      return tl::unexpected(made.error());
    auto range = range_of(*made);
    if (bytes != 0)
      range.bytes = bytes;
    return std::make_shared<cuda_memory>(shared_->context.get(), std::move(*made), range);
  }

  std::shared_ptr<const cuda_shared> shared_;
  std::string name_;
};

} // namespace

result<memory_handle> cuda_memory::share() const {
  memory_handle handle;
  handle.bytes = bytes();
  if (auto* legacy = std::get_if<cuda::allocation>(&owner_)) {
    auto raw = legacy->share();
    if (!raw)
      return tl::unexpected(raw.error());
    handle.kind = memory_handle::kind_t::ipc;
    std::memcpy(handle.ipc.data(), raw->reserved, handle.ipc.size());
    return handle;
  }
  if (auto* physical = std::get_if<cuda::virtual_memory>(&owner_)) {
    auto descriptor = physical->memory().share();
    if (!descriptor)
      return tl::unexpected(descriptor.error());
    handle.descriptor = std::move(*descriptor);
    return handle;
  }
  return fail(errc::unsupported, "only memory of the device's own is shared by it");
}

result<std::shared_ptr<device>> make_cuda_device(std::shared_ptr<const cuda::driver> driver,
                                                 const cuda::device_uuid& uuid, cuda_device_options options) {
  auto properties = driver->find_device(uuid);
  if (!properties)
    return tl::unexpected(properties.error());
  const auto& api = driver->api();
  auto name = properties->name + " (" + to_text(uuid) + ")";
  if (options.virtual_memory && !properties->virtual_memory)
    return fail(errc::unsupported, name + " cannot share memory by descriptors");
  if (options.method == copy_method::batch && !api.MemcpyBatchAsync)
    return fail(errc::unsupported, "batched copies need a driver of CUDA 13");
  auto context = cuda::context::retain(driver, properties->ordinal);
  if (!context)
    return tl::unexpected(context.error());
  auto shared = std::make_shared<cuda_shared>();
  shared->context = *context;
  shared->options = options;
  shared->read_only_pins = properties->read_only_pins;
  shared->stream_memory_ops = properties->stream_memory_ops;
  const bool needed = options.method == copy_method::kernel || options.kernel_below_bytes > 0;
  if (needed || options.method == copy_method::automatic)
    if (auto loaded = shared->load_kernel(); !loaded && (needed || loaded.error().code == errc::gone))
      return tl::unexpected(loaded.error());
  return std::make_shared<cuda_device>(std::move(shared), std::move(name));
}

} // namespace terrace::gpu
