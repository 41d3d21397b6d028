#include "prefix.hpp"

#include "arguments.hpp"
#include "memory_argument.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <limits>
#include <utility>

namespace terrace::python {

namespace {

template <class Item>
std::vector<uint32_t> numbers_of_bytes(std::span<const uint8_t> bytes) {
  std::vector<uint32_t> numbers(bytes.size() / sizeof(Item));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Item one;
    std::memcpy(&one, bytes.data() + i * sizeof(Item), sizeof one);
    if (!std::in_range<uint32_t>(one))
      refuse("expected numbers of 32 bits, got " + std::to_string(one));
    numbers[i] = static_cast<uint32_t>(one);
  }
  return numbers;
}

[[noreturn]] void refuse_array(const char* what, const std::string& form) {
  throw nb::type_error(("expected " + std::string(what) + " as " + form).c_str());
}

std::vector<uint32_t> numbers_of_array(const memory_argument& given, const char* what) {
  std::string_view format = given.format();
  char order = format.size() == 2 ? format.front() : '=';
  if (format.size() == 2)
    format.remove_prefix(1);
  bool is_signed = format == "i" || format == "l" || format == "q";
  bool is_unsigned = format == "I" || format == "L" || format == "Q";
  size_t each = given.item_bytes();
  if (!(is_signed || is_unsigned) || (each != sizeof(uint32_t) && each != sizeof(uint64_t)))
    refuse_array(what, "integers of 4 or 8 bytes, got an array of format \"" + given.format() + "\"");
  if (order != '=' && order != '@' && order != (std::endian::native == std::endian::little ? '<' : '>'))
    refuse_array(what,
                 "integers in this machine's byte order, got an array of format \"" + given.format() + "\"");
  if (given.shape().size() != 1)
    refuse_array(what, "an array of one dimension, got " + std::to_string(given.shape().size()));
  if (each == sizeof(uint32_t))
    return is_signed ? numbers_of_bytes<int32_t>(given.bytes()) : numbers_of_bytes<uint32_t>(given.bytes());
  return is_signed ? numbers_of_bytes<int64_t>(given.bytes()) : numbers_of_bytes<uint64_t>(given.bytes());
}

/// This is twice as fast as an iterator, which matters for a long prompt.
std::vector<uint32_t> numbers_of_list(nb::handle list) {
  auto count = static_cast<size_t>(PyList_Size(list.ptr()));
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* one = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i));
    if (one == nullptr) // a number's own code has shortened the list
      throw nb::python_error();
    size_t value = PyLong_CheckExact(one) ? PyLong_AsSize_t(one) : SIZE_MAX;
    if (value > std::numeric_limits<uint32_t>::max()) {
      PyErr_Clear();
      value = part_of<uint32_t>(nb::borrow(one), "a number of 32 bits");
    }
    numbers[i] = static_cast<uint32_t>(value);
  }
  return numbers;
}

} // namespace

// Reads an array of 4 or 8 byte integers as a whole, and anything else one number after the other.
std::vector<uint32_t> read_numbers(nb::handle from, const char* what) {
  if (PyList_Check(from.ptr()))
    return numbers_of_list(from);
  if (PyObject_CheckBuffer(from.ptr()) || nb::hasattr(from, "__dlpack__"))
    return numbers_of_array(memory_argument(from, memory_argument::access::reading), what);
  check_sequence(from, what);
  return numbers_of<uint32_t>(from, "a number of 32 bits");
}

namespace {

void set_tags(owned_prefix& of, nb::handle tags) {
  if (PyUnicode_Check(tags.ptr())) // each letter would be taken for one tag
    throw nb::type_error("expected tags as a sequence, got one text");
  for (nb::handle tag : tags)
    of.tag_texts.push_back(part_of<std::string>(tag, "a tag"));
  of.tags.assign(of.tag_texts.begin(), of.tag_texts.end());
}

std::unique_ptr<owned_prefix> of_tokens(nb::handle tokens, const nb::bytes& parent, nb::handle parent_tokens,
                                        const std::string& lora, const std::string& salt, nb::handle items,
                                        nb::handle tags) {
  auto made = std::make_unique<owned_prefix>();
  made->tokens = read_numbers(tokens, "tokens");
  auto* raw = static_cast<const uint8_t*>(parent.data());
  made->parent.assign(raw, raw + parent.size());
  made->parent_tokens = part_of<uint32_t>(parent_tokens, "a number of tokens");
  made->lora = lora;
  made->salt = salt;
  made->set_items(items);
  set_tags(*made, tags);
  return made;
}

void check_bytes(const memory_argument& given) {
  bool is_raw =
      given.format() == "B" || given.format() == "b" || given.format() == "c" || given.format() == "<B";
  if (!is_raw && !(given.item_bytes() == 1 && (given.format() == "i" || given.format() == "I")))
    throw nb::type_error(
        ("expected digests as bytes, got an array of format \"" + given.format() + "\"").c_str());
}

/// Takes all digests without gaps, or one per row, which gives their width.
void take_digests(owned_prefix& of, const memory_argument& given, std::optional<uint8_t> width) {
  check_bytes(given);
  const std::vector<size_t>& shape = given.shape();
  size_t row = shape.size() == 2 ? shape.back() : 0;
  if (shape.size() > 2 || row > digest::max_size || (shape.size() == 2 && row != width.value_or(row)) ||
      (shape.size() == 2 && row == 0))
    refuse("expected digests of 1 to 32 bytes, all behind each other or a row each, got an array of " +
           std::to_string(shape.size()) + " dimensions with rows of " +
           std::to_string(shape.empty() ? 1 : shape.back()) + " bytes");
  of.digests.assign(given.bytes().begin(), given.bytes().end());
  of.digest_width = row != 0 ? static_cast<uint8_t>(row) : width.value_or(digest::max_size);
}

// Takes one buffer with all digests, or an iterable with one bytes object each.
std::unique_ptr<owned_prefix> of_digests(nb::handle digests, std::optional<uint8_t> width, int unit,
                                         nb::handle end_offsets, const std::string& lora,
                                         const std::string& salt, nb::handle tags) {
  auto made = std::make_unique<owned_prefix>();
  if (PyObject_CheckBuffer(digests.ptr()) || nb::hasattr(digests, "__dlpack__")) {
    take_digests(*made, memory_argument(digests, memory_argument::access::reading), width);
  } else {
    check_sequence(digests, "digests");
    size_t each = width.value_or(0); // 0: the width of the first one
    auto add = [&](std::span<const uint8_t> bytes) {
      if (each == 0)
        each = bytes.size();
      if (bytes.size() != each || each > digest::max_size)
        refuse("expected digests of the same width, at most 32 bytes, got one of " +
               std::to_string(bytes.size()));
      made->digests.insert(made->digests.end(), bytes.begin(), bytes.end());
    };
    for (nb::handle one : digests) {
      if (PyBytes_CheckExact(one.ptr())) { // an engine has thousands of them
        add({reinterpret_cast<const uint8_t*>(PyBytes_AsString(one.ptr())),
             static_cast<size_t>(PyBytes_Size(one.ptr()))});
        continue;
      }
      memory_argument given(one, memory_argument::access::reading);
      check_bytes(given);
      add(given.bytes());
    }
    made->digest_width = static_cast<uint8_t>(each == 0 ? digest::max_size : each);
  }
  if (made->digest_width == 0 || made->digests.size() % made->digest_width != 0)
    refuse("expected whole digests of " + std::to_string(made->digest_width) + " bytes, got " +
           std::to_string(made->digests.size()) + " bytes");
  made->unit = static_cast<client::digest_unit>(unit);
  made->end_offsets = read_numbers(end_offsets, "end offsets");
  made->lora = lora;
  made->salt = salt;
  set_tags(*made, tags);
  return made;
}

} // namespace

void owned_prefix::set_items(nb::handle given) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (nb::handle item : given) {
    identifiers.push_back(part_of<std::string>(item[0], "an item's identifier"));
    places.emplace_back(part_of<uint32_t>(item[1], "an item's first token"),
                        part_of<uint32_t>(item[2], "an item's tokens"));
  }
  for (size_t i = 0; i < places.size(); ++i)
    items.push_back({identifiers[i], places[i].first, places[i].second});
}

void owned_prefix::take(const client::prefix& continued) {
  tokens.assign(continued.tokens.begin(), continued.tokens.end());
  parent.assign(continued.parent.begin(), continued.parent.end());
  parent_tokens = continued.parent_tokens;
  session.assign(continued.session.begin(), continued.session.end());
}

client::prefix owned_prefix::view() const {
  client::prefix p;
  p.tokens = tokens;
  p.parent = parent;
  p.parent_tokens = parent_tokens;
  p.digests = digests;
  p.digest_width = digest_width;
  p.unit = unit;
  p.end_offsets = end_offsets;
  p.lora = lora;
  p.salt = salt;
  p.items = items;
  p.tags = tags;
  p.session = session;
  p.tail = tail;
  return p;
}

size_t owned_prefix::wire_bytes() const {
  size_t bytes = tokens.size() * 4 + parent.size() + session.size() + digests.size() +
                 end_offsets.size() * 4 + lora.size() + salt.size();
  for (const auto& one : identifiers)
    bytes += one.size() + 32;
  for (const auto& one : tag_texts)
    bytes += one.size() + 16;
  return bytes;
}

prefix_argument::prefix_argument(nb::handle given) {
  if (nb::isinstance<owned_prefix>(given)) {
    prefix_ = nb::inst_ptr<owned_prefix>(given);
    return;
  }
  made_ = std::make_unique<owned_prefix>();
  made_->tokens = read_numbers(given, "tokens");
  prefix_ = made_.get();
}

void bind_prefix(nb::module_& in) {
  nb::class_<owned_prefix>(in, "Prefix")
      .def_static("of_tokens", of_tokens, nb::arg("tokens"), nb::kw_only(),
                  nb::arg("parent") = nb::bytes("", 0), nb::arg("parent_tokens") = 0, nb::arg("lora") = "",
                  nb::arg("salt") = "", nb::arg("items") = nb::tuple(), nb::arg("tags") = nb::tuple())
      .def_static("of_digests", of_digests, nb::arg("digests"), nb::kw_only(), nb::arg("width") = nb::none(),
                  nb::arg("unit") = 0, nb::arg("end_offsets") = nb::tuple(), nb::arg("lora") = "",
                  nb::arg("salt") = "", nb::arg("tags") = nb::tuple())
      .def_prop_ro("wire_bytes", &owned_prefix::wire_bytes)
      .def("__repr__", [](const owned_prefix& self) {
        return self.digests.empty()
                   ? "<terrace.Prefix of " + std::to_string(self.tokens.size()) + " tokens>"
                   : "<terrace.Prefix of " + std::to_string(self.digests.size() / self.digest_width) +
                         " digests>";
      });
}

} // namespace terrace::python
