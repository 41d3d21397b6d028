#include "memory_argument.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <utility>

namespace terrace::python {

memory_argument::memory_argument(nb::handle object, access wanted) {
  if (PyObject_CheckBuffer(object.ptr()))
    take_buffer(object, wanted);
  else
    take_array(object, wanted);
}

memory_argument::~memory_argument() {
  if (has_buffer_)
    PyBuffer_Release(&buffer_);
}

memory_argument::memory_argument(memory_argument&& other) noexcept
    : buffer_(other.buffer_), has_buffer_(std::exchange(other.has_buffer_, false)),
      array_(std::move(other.array_)), bytes_(other.bytes_), format_(std::move(other.format_)),
      item_bytes_(other.item_bytes_), shape_(std::move(other.shape_)) {}

void memory_argument::take_buffer(nb::handle object, access wanted) {
  int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (wanted == access::writing ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0)
    throw nb::python_error();
  has_buffer_ = true;
  bytes_ = {static_cast<uint8_t*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  format_ = buffer_.format != nullptr ? buffer_.format : "B";
  item_bytes_ = static_cast<size_t>(buffer_.itemsize);
  shape_.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
}

void memory_argument::take_array(nb::handle object, access wanted) {
  using readable = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  using writable = nb::ndarray<nb::c_contig, nb::device::cpu>;
  auto take = [&](const auto& array) {
    auto* data = const_cast<uint8_t*>(static_cast<const uint8_t*>(static_cast<const void*>(array.data())));
    bytes_ = {data, array.nbytes()};
    item_bytes_ = array.itemsize();
    for (size_t i = 0; i < array.ndim(); ++i)
      shape_.push_back(array.shape(i));
    bool is_signed = array.dtype().code == static_cast<uint8_t>(nb::dlpack::dtype_code::Int);
    bool is_unsigned = array.dtype().code == static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);
    format_ = is_signed ? "i" : is_unsigned ? "I" : "?";
    array_ = nb::borrow(object);
  };
  // No conversion, because a copy would be another object's memory.
  if (readable given; wanted == access::reading && nb::try_cast(object, given, false))
    take(given);
  else if (writable open; wanted == access::writing && nb::try_cast(object, open, false))
    take(open);
  else
    throw nb::type_error(
        "expected contiguous memory of the CPU (an object with the buffer protocol, a NumPy array or "
        "a tensor by DLPack)");
}

destinations::destinations(nb::handle list) {
  for (nb::handle one : list) {
    memory.emplace_back(one, memory_argument::access::writing);
    bytes.push_back(memory.back().bytes());
  }
}

void bind_memory_arguments(nb::module_& in) {
  in.def(
      "address_of",
      [](nb::handle object) {
        auto bytes = memory_argument(object, memory_argument::access::reading).bytes();
        return std::pair(reinterpret_cast<uintptr_t>(bytes.data()), bytes.size());
      },
      nb::arg("object"), "Where an object's bytes lie in this process, and how many there are.");
}

} // namespace terrace::python
