#include "engine_memory.hpp"

#include "gpu/copy_stream.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/host/host_engine.hpp"
#include "tests/support/gpu_driver.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace terrace::e2e {

namespace {

template <class T>
T expected_value(result<T> made) {
  if (!made)
    throw std::runtime_error(made.error().text);
  return std::move(*made);
}

std::shared_ptr<const mapping> pages_of(uint64_t bytes) {
  unique_fd memory(::memfd_create("engine", MFD_CLOEXEC));
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    throw std::runtime_error("no memory for a test");
  return std::make_shared<const mapping>(expected_value(mapping::map(memory.get(), bytes, true)));
}

} // namespace

std::string to_string(device_kind kind) {
  return kind == device_kind::host          ? "host"
         : kind == device_kind::cuda_handle ? "cuda_handle"
                                            : "cuda_descriptor";
}

size_t gpus() {
  return expected_value(expected_value(cuda::driver::open(test::driver_library()))->devices()).size();
}

engine_memory::engine_memory(device_kind kind, uint64_t bytes, size_t number) {
  if (kind == device_kind::host) {
    name_ = "host";
    device_ = expected_value(gpu::make_host_device());
  } else {
    auto driver = expected_value(cuda::driver::open(test::driver_library()));
    auto uuid = expected_value(driver->devices()).at(number).uuid;
    name_ = cuda::to_text(uuid);
    gpu::cuda_device_options options;
    options.virtual_memory = kind == device_kind::cuda_descriptor;
    device_ = expected_value(gpu::make_cuda_device(driver, uuid, options));
  }
  memory_ = expected_value(device_->allocate(bytes));
  handle_ = expected_value(memory_->share());
}

client::device_allocation engine_memory::shared() const {
  client::device_allocation made;
  made.device = name_;
  made.bytes = handle_.bytes;
  if (handle_.kind == gpu::memory_handle::kind_t::descriptor)
    made.descriptor = handle_.descriptor.get();
  else
    std::transform(handle_.ipc.begin(), handle_.ipc.end(), made.handle.begin(),
                   [](std::byte byte) { return static_cast<uint8_t>(byte); });
  return made;
}

uint64_t engine_memory::address() const { return dynamic_cast<const gpu::cuda_memory&>(*memory_).address(); }

void engine_memory::write(std::span<const uint8_t> all) {
  std::vector<uint8_t> bytes(all.begin(), all.end());
  copy(bytes, true);
}

std::vector<uint8_t> engine_memory::read() {
  std::vector<uint8_t> bytes(memory_->bytes());
  copy(bytes, false);
  return bytes;
}

void engine_memory::copy(std::span<uint8_t> host, bool into_device) {
  auto pages = pages_of(host.size());
  auto* data = reinterpret_cast<uint8_t*>(pages->data());
  if (into_device)
    std::copy(host.begin(), host.end(), data);
  auto stream = expected_value(
      gpu::copy_stream::open(device_, into_device ? gpu::direction::load : gpu::direction::store));
  gpu::copy_request request;
  request.region = memory_;
  request.object = expected_value(device_->pin(pages));
  request.parts.resize(1);
  request.parts.front().copies.push_back({0, 0, host.size(), 0, 0, 1});
  if (auto ok = stream->submit(std::move(request)); !ok)
    throw std::runtime_error(ok.error().text);
  std::vector<gpu::completion> done;
  while (done.empty()) {
    pollfd ready{stream->descriptor(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    done = stream->drain();
  }
  if (done.front().failure)
    throw std::runtime_error(done.front().failure->text);
  if (!into_device)
    std::copy(data, data + host.size(), host.begin());
}

// ---- a stream ----

engine_stream::engine_stream(const engine_memory& of, const client::region& page)
    : from_(of.memory_.get()), device_(of.device_), pages_(pages_of(read_max)),
      read_into_(expected_value(device_->pin(pages_))),
      page_(expected_value(device_->attach(std::make_shared<const gpu::generation_page>(expected_value(
          gpu::generation_page::open(unique_fd(::fcntl(page.descriptor(), F_DUPFD_CLOEXEC, 0)))))))),
      completions_(expected_value(gpu::completion_queue::make())),
      engine_(expected_value(device_->make_engine(completions_))) {}

void engine_stream::queue(gpu::copy_engine::step step) {
  step.ticket = step.request = ++queued_;
  step.way = gpu::direction::store;
  step.region = from_;
  step.object = read_into_.get();
  step.page = page_.get();
  auto ok = engine_->issue(step);
  if (ok)
    ok = engine_->flush();
  if (!ok)
    throw std::runtime_error(ok.error().text);
}

void engine_stream::wait(const client::layer_counter& counter) {
  gpu::copy_engine::step step;
  step.await = gpu::generation{static_cast<uint32_t>(counter.offset / sizeof(uint32_t)), counter.value};
  queue(step);
}

void engine_stream::write(const client::layer_counter& counter) {
  gpu::copy_part& part = parts_.emplace_back();
  part.signal = gpu::generation{static_cast<uint32_t>(counter.offset / sizeof(uint32_t)), counter.value};
  gpu::copy_engine::step step;
  step.part = &part;
  queue(step);
}

void engine_stream::read(uint64_t offset, uint64_t bytes) {
  gpu::copy_part& part = parts_.emplace_back();
  part.copies.push_back({offset, read_, bytes, 0, 0, 1});
  read_ += bytes;
  gpu::copy_engine::step step;
  step.part = &part;
  queue(step);
}

size_t engine_stream::ended() {
  for (const gpu::over_part& over : completions_->take()) {
    if (over.failure)
      throw std::runtime_error(over.failure->text);
    ++ended_;
  }
  return ended_;
}

std::vector<uint8_t> engine_stream::finish() {
  while (ended() != queued_) {
    pollfd ready{completions_->descriptor(), POLLIN, 0};
    ::poll(&ready, 1, -1);
  }
  auto* data = reinterpret_cast<const uint8_t*>(pages_->data());
  std::vector<uint8_t> read(data, data + read_);
  read_ = 0;
  return read;
}

} // namespace terrace::e2e
