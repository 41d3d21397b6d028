// Converts Python's arguments to libterrace's values.
#pragma once

#include "client/client.hpp"
#include "failure.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace terrace::python {

namespace nb = nanobind;

/// Seconds from now; None: no deadline.
using timeout = std::optional<double>;

inline std::chrono::nanoseconds nanoseconds_of(double seconds) {
  constexpr double most = 1e9; // thirty years, well within the range of a time_point
  if (std::isnan(seconds))
    refuse("expected a time in seconds, got nan");
  return std::chrono::nanoseconds(static_cast<int64_t>(std::fmin(std::fmax(seconds, 0), most) * 1e9));
}

inline client::deadline deadline_of(const timeout& seconds) {
  if (!seconds || (std::isinf(*seconds) && *seconds > 0))
    return {};
  return client::within(nanoseconds_of(*seconds));
}

/// Reads the 16 bytes of a lease's or a lookup's id.
template <class Id>
Id id_of(const nb::bytes& raw) {
  Id id;
  if (raw.size() != id.bytes.size())
    refuse("expected an id of 16 bytes, got " + std::to_string(raw.size()));
  std::memcpy(id.bytes.data(), raw.c_str(), id.bytes.size());
  return id;
}

template <class Bytes>
nb::bytes to_bytes(const Bytes& raw) {
  return nb::bytes(reinterpret_cast<const char*>(raw.data()), raw.size());
}

[[noreturn]] inline void refuse_part(nb::handle given, const char* what) {
  throw nb::type_error(("expected " + std::string(what) + ", got " + nb::repr(given).c_str()).c_str());
}

/// Returns a number or a text that an argument contains. `what` names it in the error, such as "a token". A
/// number must be a whole one: nanobind alone would take 1 for True, for "1" and for a NumPy float of 1.5.
template <class T>
T part_of(nb::handle given, const char* what) {
  constexpr bool whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  T value{};
  if (whole && (PyBool_Check(given.ptr()) || !PyIndex_Check(given.ptr())))
    refuse_part(given, what);
  if (!nb::try_cast(given, value))
    refuse_part(given, what);
  return value;
}

/// Refuses a collection without an order: a mapping would give its keys.
inline void check_sequence(nb::handle given, const char* what) {
  auto kinds = nb::module_::import_("collections.abc");
  if (nb::isinstance(given, kinds.attr("Mapping")) || nb::isinstance(given, kinds.attr("Set")))
    throw nb::type_error(("expected " + std::string(what) + " as a sequence, got " +
                          nb::str(given.type().attr("__name__")).c_str())
                             .c_str());
}

/// `what` names one of the numbers in errors.
template <class Number>
std::vector<Number> numbers_of(nb::handle list, const char* what) {
  if (!PyTuple_Check(list.ptr())) // most lists are empty tuples
    check_sequence(list, what);
  std::vector<Number> numbers;
  for (nb::handle one : list)
    numbers.push_back(part_of<Number>(one, what));
  return numbers;
}

/// Returns a bit for each tier of a sequence.
inline uint32_t tiers_of(nb::handle list) {
  uint32_t mask = 0;
  for (nb::handle one : list) {
    auto tier = part_of<uint32_t>(one, "a tier");
    if (tier > 31)
      refuse("expected a tier, got " + std::to_string(tier));
    mask |= 1U << tier;
  }
  return mask;
}

} // namespace terrace::python
