// The bytes of a Python object that is given as an argument: by the buffer protocol, or else by DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace::python {

namespace nb = nanobind;

/// Holds the object's buffer while it lives, so that the bytes stay in place. Made and destroyed with the
/// GIL; the bytes may be used without it.
class memory_argument {
 public:
  enum class access { reading, writing };

  /// Throws TypeError if the object has no bytes in this process's memory, and BufferError if they are not
  /// contiguous, or are read-only and to be written.
  memory_argument(nb::handle object, access wanted);
  ~memory_argument();
  memory_argument(memory_argument&& other) noexcept;
  memory_argument(const memory_argument&) = delete;
  memory_argument& operator=(const memory_argument&) = delete;

  std::span<uint8_t> bytes() const { return bytes_; }
  const std::string& format() const { return format_; } ///< format as in Python's struct
  size_t item_bytes() const { return item_bytes_; }
  const std::vector<size_t>& shape() const { return shape_; } ///< number of items in each dimension

 private:
  void take_buffer(nb::handle object, access wanted);
  void take_array(nb::handle object, access wanted);

  Py_buffer buffer_{};
  bool has_buffer_ = false;
  nb::object array_;
  std::span<uint8_t> bytes_;
  std::string format_;
  size_t item_bytes_ = 1;
  std::vector<size_t> shape_;
};

/// Objects that bytes are copied into.
struct destinations {
  explicit destinations(nb::handle list);

  std::vector<memory_argument> memory;
  std::vector<std::span<uint8_t>> bytes; ///< parallel to the objects
};

void bind_memory_arguments(nb::module_& in);

} // namespace terrace::python
