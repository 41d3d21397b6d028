#include "gpu/host/host_engine.hpp"

#include "base/copy_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace::gpu {

namespace {

void copy(const strided_copy& run, std::byte* region, std::byte* object, direction way) {
  for (uint64_t i = 0; i < run.count; ++i) {
    auto* in_region = region + run.region_offset + i * run.region_stride;
    auto* in_object = object + run.object_offset + i * run.object_stride;
    if (way == direction::load)
      copy_memory(in_region, in_object, run.bytes);
    else
      copy_memory(in_object, in_region, run.bytes);
  }
}

} // namespace

host_engine::host_engine(std::shared_ptr<host_device_state> state,
                         std::shared_ptr<completion_queue> completions)
    : state_(std::move(state)), completions_(std::move(completions)), thread_([this] { run(); }) {}

host_engine::~host_engine() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

result<void> host_engine::issue(const step& wanted) {
  if (auto alive = check(); !alive)
    return alive;
  auto next = wanted;
  bool ours = !next.part || (dynamic_cast<const host_memory*>(next.region) &&
                             dynamic_cast<const host_memory*>(next.object));
  if (!ours)
    next.part = nullptr; // its ticket still arrives in order
  {
    std::lock_guard lock(mutex_);
    steps_.push_back(std::move(next));
  }
  changed_.notify_one();
  if (!ours)
    return fail(errc::bad_request, "memory of another device");
  return {};
}

result<void> host_engine::check() {
  if (state_->lost)
    return fail(errc::gone, "the host device is lost");
  return {};
}

void host_engine::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !steps_.empty(); });
    if (steps_.empty())
      return;
    auto next = steps_.front();
    steps_.pop_front();
    lock.unlock();
    auto failure = perform(next);
    if (!state_->lost) // a GPU reports nothing then, either
      completions_->push({next.ticket, std::move(failure)});
    lock.lock();
  }
}

std::optional<error> host_engine::perform(const step& wanted) {
  if (!wanted.part) {
    if (wanted.await)
      wanted.page->page().wait(*wanted.await);
    return {};
  }
  if (state_->lost || failed_request_ == wanted.request)
    return error{errc::gone, "a part before it failed"};
  auto failure = state_->options.fault ? state_->options.fault() : std::nullopt;
  if (failure) {
    failed_request_ = wanted.request;
    if (failure->code == errc::gone)
      state_->lost = true;
    return failure;
  }
  auto* region = static_cast<const host_memory*>(wanted.region)->data();
  auto* object = static_cast<const host_memory*>(wanted.object)->data();
  for (const auto& run : wanted.part->copies)
    copy(run, region, object, wanted.way);
  if (wanted.part->signal)
    wanted.page->page().write(*wanted.part->signal);
  return {};
}

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
