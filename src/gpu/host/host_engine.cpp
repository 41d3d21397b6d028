#include "gpu/host/host_engine.hpp"

#include "base/copy_memory.hpp"

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

} // namespace terrace::gpu
