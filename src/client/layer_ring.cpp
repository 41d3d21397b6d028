#include "client/layer_ring.hpp"

#include "base/reached.hpp"
#include "client/bell.hpp"
#include "client/channel.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <climits>
#include <string>
#include <utility>

namespace terrace::client {

namespace {

std::atomic_ref<uint32_t> shared_word(uint32_t& counter) { return std::atomic_ref<uint32_t>(counter); }

} // namespace

layer_counter layered_load::layer(uint32_t layer) const {
  assert(layer < in->layers());
  return {in->offset_of(in->index_of(*this, layer)), value};
}

layer_counter layered_load::passed() const {
  return {in->offset_of(in->index_of(*this, in->layers())), value};
}

result<std::unique_ptr<layer_ring>> layer_ring::make(const region& memory, const registered_region& at,
                                                     layer_ring_options options) {
  if (options.loads < loads_min)
    return fail(errc::bad_request, "expected a ring of at least " + std::to_string(loads_min) +
                                       " loads, got " + std::to_string(options.loads));
  if (options.layers == 0)
    return fail(errc::bad_request, "expected a ring for loads of at least one layer, got 0");
  uint64_t bytes = bytes_for(options.loads, options.layers);
  uint64_t most = std::min(memory.size(), bytes_max);
  if (options.offset % sizeof(uint32_t) != 0 || options.offset > most || bytes > most - options.offset)
    return fail(errc::bad_request, "expected a ring of " + std::to_string(bytes) +
                                       " bytes at a multiple of 4 inside " + std::to_string(most) +
                                       " bytes of memory, got offset " + std::to_string(options.offset));
  std::unique_ptr<layer_ring> made(
      new layer_ring(reinterpret_cast<uint32_t*>(memory.data() + options.offset), at, options));
  for (uint64_t i = 0; i < bytes / sizeof(uint32_t); ++i)
    shared_word(made->counters_[i]).store(0, std::memory_order_release);
  return made;
}

bool layer_ring::reached(uint32_t index, uint32_t value) const {
  return terrace::reached(shared_word(counters_[index]).load(std::memory_order_acquire), value);
}

/// Raises the counter and never lowers it: the device may have written it meanwhile.
void layer_ring::raise(uint32_t index, uint32_t value) {
  auto counter = shared_word(counters_[index]);
  uint32_t now = counter.load(std::memory_order_relaxed);
  while (!terrace::reached(now, value) &&
         !counter.compare_exchange_weak(now, value, std::memory_order_release, std::memory_order_relaxed)) {
  }
  ::syscall(SYS_futex, &counters_[index], FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

result<void> layer_ring::reusable(uint32_t number) const {
  const slot& one = slots_[number];
  layered_load last{nullptr, number, one.value};
  auto refuse = [number](const std::string& text) {
    return fail(errc::busy, "slot " + std::to_string(number) + " of the ring cannot be used again: " + text);
  };
  if (lost_)
    return fail(errc::gone, "the device or the daemon of this ring was lost: restart it");
  if (one.begun)
    return refuse("its load has not ended; call end with its answer");
  if (one.asked && one.asked->alive() && one.asked->in_flight(one.request))
    return refuse("the daemon has not answered its load, which was given up");
  for (uint32_t layer = 0; layer < options_.layers; ++layer)
    if (!reached(index_of(last, layer), one.value))
      return refuse("layer " + std::to_string(layer) + " has not arrived");
  if (!reached(index_of(last, options_.layers), one.value))
    return refuse("its waiters have not passed; they write its last counter, or pass is called");
  return {};
}

result<layered_load> layer_ring::begin() {
  if (auto ok = reusable(next_); !ok)
    return tl::unexpected(ok.error());
  slot& one = slots_[next_];
  one.asked.reset();
  one.begun = true;
  layered_load load{this, next_, ++one.value};
  next_ = (next_ + 1) % options_.loads;
  return load;
}

void layer_ring::sent(const layered_load& load, std::shared_ptr<detail::channel> to, uint64_t request) {
  slots_[load.slot].asked = std::move(to);
  slots_[load.slot].request = request;
}

void layer_ring::end(const layered_load& load, errc answer) {
  slot& one = slots_[load.slot];
  assert(load.in == this && one.value == load.value);
  one.begun = false;
  lost_ = lost_ || answer == errc::gone;
  for (uint32_t layer = 0; layer < options_.layers; ++layer)
    raise(index_of(load, layer), load.value);
}

void layer_ring::pass(const layered_load& load) { raise(index_of(load, options_.layers), load.value); }

void layer_ring::restart() {
  for (uint32_t number = 0; number < options_.loads; ++number) {
    slot& one = slots_[number];
    one.asked.reset();
    one.begun = false;
    for (uint32_t i = 0; i <= options_.layers; ++i)
      raise(index_of({nullptr, number, one.value}, i), one.value);
  }
  lost_ = false;
}

bool layer_ring::arrived(const layered_load& load, uint32_t layer) const {
  return reached(index_of(load, layer), load.value);
}

bool layer_ring::wait(const layered_load& load, uint32_t layer, deadline until) const {
  uint32_t& counter = counters_[index_of(load, layer)];
  while (true) {
    uint32_t now = shared_word(counter).load(std::memory_order_acquire);
    if (terrace::reached(now, load.value))
      return true;
    if (!futex_wait(counter, now, until))
      return false;
  }
}

} // namespace terrace::client
