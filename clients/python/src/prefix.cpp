#include "prefix.hpp"

#include "arguments.hpp"
#include "memory_argument.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <limits>

namespace terrace::python {

namespace {

template <class Item>
void append_items(std::vector<uint32_t>& to, std::span<const uint8_t> bytes) {
  size_t count = bytes.size() / sizeof(Item);
  to.resize(count);
  if constexpr (sizeof(Item) == sizeof(uint32_t)) {
    if (count != 0)
      std::memcpy(to.data(), bytes.data(), count * sizeof(Item));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    Item one;
    std::memcpy(&one, bytes.data() + i * sizeof(Item), sizeof one);
    if (one > std::numeric_limits<uint32_t>::max())
      refuse("expected numbers that fit in 32 bits, got " + std::to_string(one));
    to[i] = static_cast<uint32_t>(one);
  }
}

/// Twice as fast as an iterator, which matters for a long prompt.
std::vector<uint32_t> numbers_of_list(nb::handle list) {
  auto count = static_cast<size_t>(PyList_Size(list.ptr()));
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* one = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i));
    if (one == nullptr) // a number's own code has shortened the list
      throw nb::python_error();
    size_t value = PyLong_Check(one) ? PyLong_AsSize_t(one) : SIZE_MAX;
    if (value > std::numeric_limits<uint32_t>::max()) {
      PyErr_Clear();
      value = part_of<uint32_t>(nb::borrow(one), "a number of 32 bits");
    }
    numbers[i] = static_cast<uint32_t>(value);
  }
  return numbers;
}

} // namespace

// An array of 4 or 8 byte integers is read as a whole; anything else one number after the other. Tokens are never
// negative, so the sign of an array's type does not matter: a negative number of 8 bytes is too large.
std::vector<uint32_t> read_numbers(nb::handle from, const char* what) {
  std::vector<uint32_t> numbers;
  if (PyObject_CheckBuffer(from.ptr()) || nb::hasattr(from, "__dlpack__")) {
    memory_argument given(from, memory_argument::access::reading);
    const std::string& format = given.format();
    bool integers =
        !format.empty() && std::string_view("iIlLqQ").find(format.back()) != std::string_view::npos;
    if (integers && given.item_bytes() == sizeof(uint32_t)) {
      append_items<uint32_t>(numbers, given.bytes());
      return numbers;
    }
    if (integers && given.item_bytes() == sizeof(uint64_t)) {
      append_items<uint64_t>(numbers, given.bytes());
      return numbers;
    }
    throw nb::type_error((std::string("expected ") + what + " as integers of 4 or 8 bytes").c_str());
  }
  if (PyList_Check(from.ptr()))
    return numbers_of_list(from);
  return numbers_of<uint32_t>(from, "a number of 32 bits");
}

namespace {

void set_tags(owned_prefix& of, nb::handle tags) {
  for (nb::handle tag : tags)
    of.tag_texts.push_back(part_of<std::string>(tag, "a tag"));
  of.tags.assign(of.tag_texts.begin(), of.tag_texts.end());
}

std::unique_ptr<owned_prefix> of_tokens(nb::handle tokens, const nb::bytes& parent, uint32_t parent_tokens,
                                        const std::string& lora, const std::string& salt, nb::handle items,
                                        nb::handle tags) {
  auto made = std::make_unique<owned_prefix>();
  made->tokens = read_numbers(tokens, "tokens");
  auto* raw = static_cast<const uint8_t*>(parent.data());
  made->parent.assign(raw, raw + parent.size());
  made->parent_tokens = parent_tokens;
  made->lora = lora;
  made->salt = salt;
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (nb::handle item : items) {
    made->identifiers.push_back(part_of<std::string>(item[0], "an item's identifier"));
    places.emplace_back(part_of<uint32_t>(item[1], "an item's first token"),
                        part_of<uint32_t>(item[2], "an item's tokens"));
  }
  for (size_t i = 0; i < places.size(); ++i)
    made->items.push_back({made->identifiers[i], places[i].first, places[i].second});
  set_tags(*made, tags);
  return made;
}

// One buffer with all digests behind each other, or an iterable with one bytes object each.
std::unique_ptr<owned_prefix> of_digests(nb::handle digests, std::optional<uint8_t> width, int unit,
                                         nb::handle end_offsets, const std::string& lora,
                                         const std::string& salt, nb::handle tags) {
  auto made = std::make_unique<owned_prefix>();
  if (PyObject_CheckBuffer(digests.ptr()) || nb::hasattr(digests, "__dlpack__")) {
    memory_argument given(digests, memory_argument::access::reading);
    made->digests.assign(given.bytes().begin(), given.bytes().end());
    made->digest_width = width.value_or(digest::max_size);
  } else {
    size_t each = width.value_or(0); // 0: as the first one is
    for (nb::handle one : digests) {
      memory_argument given(one, memory_argument::access::reading);
      if (each == 0)
        each = given.bytes().size();
      if (given.bytes().size() != each || each > digest::max_size)
        refuse("expected digests of the same width, at most 32 bytes, got one of " +
               std::to_string(given.bytes().size()));
      made->digests.insert(made->digests.end(), given.bytes().begin(), given.bytes().end());
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
  return p;
}

size_t owned_prefix::wire_bytes() const {
  size_t bytes =
      tokens.size() * 4 + parent.size() + digests.size() + end_offsets.size() * 4 + lora.size() + salt.size();
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
