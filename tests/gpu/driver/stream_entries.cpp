// Streams, events, values in memory, and host functions.
#include "driver/machine.hpp"

#include <cstring>
#include <thread>
#include <unistd.h>

namespace terrace::cuda {

namespace {

bool reached(uint32_t now, uint32_t wanted) { return static_cast<int32_t>(now - wanted) >= 0; }

bool done(const sim::event_words& words) { return reached(words.completed.load(), words.recorded.load()); }

/// Waits with the lock until `condition` holds or the context is lost.
template <class Condition>
status wait(sim::machine& m, std::unique_lock<std::mutex>& lock, const std::shared_ptr<sim::context>& home,
            bool polls, Condition condition) {
  while (home->lost == status::success && !condition()) {
    if (polls)
      m.changed.wait_for(lock, std::chrono::microseconds(100));
    else
      m.changed.wait(lock);
  }
  return home->lost;
}

} // namespace

SIM_EXPORT status cuStreamCreateWithPriority(stream_handle* stream, unsigned flags, int) {
  SIM_ENTER("cuStreamCreateWithPriority", context);
  if (flags != stream_non_blocking)
    m.violation("a stream that waits for the default stream");
  auto made = std::make_shared<sim::stream>();
  made->home = m.current();
  *stream = m.new_handle<stream_handle>();
  m.streams[*stream] = made;
  std::thread(sim::run_stream, made).detach();
  return status::success;
}

SIM_EXPORT status cuStreamDestroy_v2(stream_handle stream) {
  SIM_ENTER("cuStreamDestroy", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  found->destroyed = true; // queued operations are still done
  m.streams.erase(stream);
  m.ended.insert(reinterpret_cast<uint64_t>(stream));
  m.changed.notify_all();
  return status::success;
}

SIM_EXPORT status cuStreamQuery(stream_handle stream) {
  SIM_ENTER("cuStreamQuery", context);
  auto found = m.find(stream);
  return !found                                 ? status::invalid_handle
         : found->queue.empty() && !found->busy ? status::success
                                                : status::not_ready;
}

SIM_EXPORT status cuStreamSynchronize(stream_handle stream) {
  SIM_ENTER("cuStreamSynchronize", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  return wait(m, entered.lock, found->home, false, [&] { return found->queue.empty() && !found->busy; });
}

SIM_EXPORT status cuStreamWaitEvent(stream_handle stream, event_handle event, unsigned flags) {
  SIM_ENTER("cuStreamWaitEvent", context);
  auto found = m.find(stream);
  auto awaited = m.find(event);
  if (!found || !awaited)
    return status::invalid_handle;
  if (flags != 0)
    return status::invalid_value;
  auto wanted = awaited->words->recorded.load();
  if (wanted == 0)
    return status::success; // never recorded: there is nothing to wait for
  sim::operation wait_for;
  wait_for.ready = [words = awaited->words, wanted] { return reached(words->completed.load(), wanted); };
  wait_for.polls = awaited->interprocess;
  m.push(found, std::move(wait_for));
  return status::success;
}

SIM_EXPORT status cuEventCreate(event_handle* event, unsigned flags) {
  SIM_ENTER("cuEventCreate", context);
  if ((flags & event_interprocess) && !(flags & event_disable_timing))
    return status::invalid_value;
  auto made = std::make_shared<sim::event>();
  made->home = m.current();
  made->interprocess = flags & event_interprocess;
  if (made->interprocess) {
    made->slot_id = m.random() | 1;
    made->slot = m.page->take(made->slot_id);
    if (!made->slot)
      return status::out_of_memory;
    made->words = {m.page, &made->slot->words};
  } else {
    made->words = std::make_shared<sim::event_words>();
  }
  *event = m.new_handle<event_handle>();
  m.events[*event] = std::move(made);
  return status::success;
}

SIM_EXPORT status cuEventDestroy_v2(event_handle event) {
  SIM_ENTER("cuEventDestroy", context);
  auto it = m.events.find(event);
  if (it == m.events.end()) {
    m.find(event); // says why
    return status::invalid_handle;
  }
  auto& found = *it->second;
  if (found.imported) {
    sim::remove_importer(*found.slot);
  } else if (found.slot) {
    if (sim::importers(*found.slot) > 0)
      m.violation("cuEventDestroy: another process still has it open");
    found.slot->id.store(0);
  }
  m.events.erase(it);
  m.ended.insert(reinterpret_cast<uint64_t>(event));
  return status::success;
}

SIM_EXPORT status cuEventRecord(event_handle event, stream_handle stream) {
  SIM_ENTER("cuEventRecord", context);
  auto found = m.find(stream);
  auto recorded = m.find(event);
  if (!found || !recorded)
    return status::invalid_handle;
  auto number = recorded->words->recorded.fetch_add(1) + 1;
  sim::operation record;
  record.done = [words = recorded->words, number] {
    if (reached(number, words->completed.load()))
      words->completed.store(number);
  };
  m.push(found, std::move(record));
  return status::success;
}

SIM_EXPORT status cuEventQuery(event_handle event) {
  SIM_ENTER("cuEventQuery", context);
  auto found = m.find(event);
  return !found ? status::invalid_handle : done(*found->words) ? status::success : status::not_ready;
}

SIM_EXPORT status cuEventSynchronize(event_handle event) {
  SIM_ENTER("cuEventSynchronize", context);
  auto found = m.find(event);
  if (!found)
    return status::invalid_handle;
  auto wanted = found->words->recorded.load();
  return wait(m, entered.lock, found->home, found->interprocess,
              [&] { return reached(found->words->completed.load(), wanted); });
}

SIM_EXPORT status cuIpcGetEventHandle(ipc_event_handle* handle, event_handle event) {
  SIM_ENTER("cuIpcGetEventHandle", context);
  auto found = m.find(event);
  if (!found)
    return status::invalid_handle;
  if (!found->interprocess || found->imported) {
    m.violation("cuIpcGetEventHandle: not an event of this process made for others");
    return status::invalid_handle;
  }
  sim::export_record record{sim::export_magic,
                            getpid(),
                            m.page->descriptor(),
                            -1,
                            m.page->index_of(found->slot),
                            static_cast<uint32_t>(found->home->device),
                            found->slot_id,
                            0,
                            0};
  std::memcpy(handle->reserved, &record, sizeof record);
  return status::success;
}

SIM_EXPORT status cuIpcOpenEventHandle(event_handle* event, ipc_event_handle handle) {
  SIM_ENTER("cuIpcOpenEventHandle", context);
  sim::export_record record;
  std::memcpy(static_cast<void*>(&record), handle.reserved, sizeof record);
  if (record.magic != sim::export_magic || record.memory >= 0 || record.slot >= sim::control_page::slots)
    return status::invalid_handle;
  if (record.process == getpid()) {
    m.violation("cuIpcOpenEventHandle: in the process that made the handle");
    return status::invalid_context;
  }
  auto page = sim::control_page::open(record.process, record.page);
  if (!page)
    return status::map_failed;
  auto& slot = page->slot(record.slot);
  if (slot.id.load() != record.id) {
    m.violation("cuIpcOpenEventHandle: the event was destroyed");
    return status::invalid_handle;
  }
  if (!sim::add_importer(slot))
    return status::map_failed;
  auto made = std::make_shared<sim::event>();
  made->home = m.current();
  made->interprocess = made->imported = true;
  made->slot = &slot;
  made->slot_id = record.id;
  made->page = page;
  made->words = {page, &slot.words};
  *event = m.new_handle<event_handle>();
  m.events[*event] = std::move(made);
  return status::success;
}

SIM_EXPORT status cuStreamWriteValue32_v2(stream_handle stream, device_pointer address, uint32_t value,
                                          unsigned flags) {
  SIM_ENTER("cuStreamWriteValue32", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (flags != write_value_default || address % 4 != 0)
    return status::invalid_value;
  auto memory = m.find(address, 4, true, "cuStreamWriteValue32");
  if (!memory)
    return status::invalid_value;
  auto* word = reinterpret_cast<uint32_t*>(memory->data + (address - memory->base));
  sim::operation write;
  write.run = [word, value] {
    std::atomic_ref(*word).store(value, std::memory_order_release);
    return status::success;
  };
  write.pins = {memory};
  m.push(found, std::move(write));
  return status::success;
}

SIM_EXPORT status cuStreamWaitValue32_v2(stream_handle stream, device_pointer address, uint32_t value,
                                         unsigned flags) {
  SIM_ENTER("cuStreamWaitValue32", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (flags > wait_value_and || address % 4 != 0)
    return status::invalid_value;
  auto memory = m.find(address, 4, false, "cuStreamWaitValue32");
  if (!memory)
    return status::invalid_value;
  auto* word = reinterpret_cast<uint32_t*>(memory->data + (address - memory->base));
  sim::operation wait_for;
  wait_for.polls = true;
  wait_for.ready = [word, value, flags] {
    auto now = std::atomic_ref(*word).load(std::memory_order_acquire);
    return flags == wait_value_geq     ? reached(now, value)
           : flags == wait_value_equal ? now == value
                                       : (now & value) != 0;
  };
  wait_for.pins = {memory};
  m.push(found, std::move(wait_for));
  return status::success;
}

SIM_EXPORT status cuLaunchHostFunc(stream_handle stream, host_function function, void* argument) {
  SIM_ENTER("cuLaunchHostFunc", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (!function)
    return status::invalid_value;
  sim::operation call;
  call.run = [function, argument] {
    sim::in_host_function = true;
    function(argument);
    sim::in_host_function = false;
    return status::success;
  };
  m.push(found, std::move(call));
  return status::success;
}

} // namespace terrace::cuda
