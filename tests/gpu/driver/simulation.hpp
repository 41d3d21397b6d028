// The controls of the simulated driver, as it exports them beside the driver's own functions. Tests find them with dlsym
// (tests/gpu/driver_fixture.hpp); all are safe from all threads.
#pragma once

#include "gpu/cuda/driver_types.hpp"

#include <cstddef>
#include <cstdint>

extern "C" {

/// Forgets faults, holds, violations and everything that was left over, and starts again with `devices`
/// devices of `bytes` each. `seed` determines the order of events that may come in any order.
void sim_reset(unsigned devices, uint64_t bytes, uint64_t seed);

/// Makes calls of `function` ("cuMemAlloc") fail with `code`: `count` of them after the next `skip`. They
/// then do nothing.
void sim_fail(const char* function, terrace::cuda::status code, unsigned skip, unsigned count);
/// The next copy that a stream executes ends its context with `code`: every later call returns it, and
/// nothing queued is executed.
void sim_fail_execution(terrace::cuda::status code);
/// The next call of `function` does not return until `sim_release`.
void sim_hang(const char* function);
/// No call of `function` returns until then.
void sim_hang_all(const char* function);
/// How many calls hang now.
unsigned sim_hanging();
/// Streams stop before their next operation, until `sim_release`.
void sim_hold_streams();
/// Ends holds and hangs.
void sim_release();
/// Hides a function from cuGetProcAddress, as an older driver would.
void sim_hide(const char* function);
/// All devices report that they lack the capability of this attribute.
void sim_lack(terrace::cuda::device_attribute attribute);
/// No device can access the memory of another one.
void sim_lack_peers();
/// Sets the result of cuDriverGetVersion.
void sim_set_version(int version);

/// Returns how often a function was called since the reset.
uint64_t sim_calls(const char* function);
/// Returns the number of rules that were broken, and the text of one (valid until the next reset).
size_t sim_violations();
const char* sim_violation(size_t index);
/// The number of streams, events, allocations, reservations, imports and registrations that were not given back.
size_t sim_live();

// These are for the simulated cuFile (tests/gpu/cufile/simulated_library.cpp), whose functions have faults
// and hang like the driver's.

/// Begins a call of a function. Returns the code that a test wants, or 0.
uint32_t sim_enter(const char* function);
/// Returns the place of the bytes of this device memory; it must not be freed until `sim_unpin`. Null, and a
/// violation, if it is not device memory.
void* sim_pin(uint64_t address, uint64_t bytes);
void sim_unpin(uint64_t address);
void sim_note_violation(const char* text);
}
