#include "gpu/cuda/stream.hpp"

namespace terrace::cuda {

namespace {

/// Returns the result of a query: whether it is done, or the error.
result<bool> answer_of(const context& context, status code, std::string_view text) {
  if (code == status::not_ready)
    return false;
  if (auto ok = context.owner().check(code, text); !ok)
    return tl::unexpected(ok.error());
  return true;
}

} // namespace

result<stream> stream::make(std::shared_ptr<const context> context) {
  stream_handle handle = nullptr;
  auto made = context->call("cuStreamCreateWithPriority", context->api().StreamCreateWithPriority, &handle,
                            stream_non_blocking, 0);
  if (!made)
    return tl::unexpected(made.error());
  return stream(std::move(context), handle);
}

result<void> stream::synchronize() const {
  return home()->call("cuStreamSynchronize", home()->api().StreamSynchronize, get());
}

result<bool> stream::idle() const {
  return answer_of(*home(), home()->raw(home()->api().StreamQuery, get()), "cuStreamQuery");
}

result<event> event::make(std::shared_ptr<const context> context, unsigned flags) {
  event_handle handle = nullptr;
  if (auto made = context->call("cuEventCreate", context->api().EventCreate, &handle, flags); !made)
    return tl::unexpected(made.error());
  return event(std::move(context), handle);
}

result<event> event::make(std::shared_ptr<const context> context) {
  return make(std::move(context), event_disable_timing);
}

result<event> event::make_shared(std::shared_ptr<const context> context) {
  return make(std::move(context), event_disable_timing | event_interprocess);
}

result<event> event::open(std::shared_ptr<const context> context, const ipc_event_handle& handle) {
  event_handle opened = nullptr;
  if (auto ok = context->call("cuIpcOpenEventHandle", context->api().IpcOpenEventHandle, &opened, handle);
      !ok)
    return tl::unexpected(ok.error());
  return event(std::move(context), opened);
}

result<ipc_event_handle> event::share() const {
  ipc_event_handle handle;
  if (auto ok = home()->call("cuIpcGetEventHandle", home()->api().IpcGetEventHandle, &handle, get()); !ok)
    return tl::unexpected(ok.error());
  return handle;
}

result<void> event::record(const stream& stream) const {
  return home()->call("cuEventRecord", home()->api().EventRecord, get(), stream.get());
}

result<void> event::block(const stream& stream) const {
  return home()->call("cuStreamWaitEvent", home()->api().StreamWaitEvent, stream.get(), get(), 0u);
}

result<bool> event::done() const {
  return answer_of(*home(), home()->raw(home()->api().EventQuery, get()), "cuEventQuery");
}

} // namespace terrace::cuda
