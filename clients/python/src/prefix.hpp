// The chunks that a request is about, with the memory that libterrace's view of them points to.
#pragma once

#include "client/client.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::python {

namespace nb = nanobind;

/// Python's terrace.Prefix. Immutable, so any number of requests may read it without the GIL.
struct owned_prefix {
  owned_prefix() = default;
  owned_prefix(const owned_prefix&) = delete;
  owned_prefix& operator=(const owned_prefix&) = delete;

  std::vector<uint32_t> tokens;
  std::vector<uint8_t> parent;
  uint32_t parent_tokens = 0;
  std::vector<uint8_t> digests;
  uint8_t digest_width = digest::max_size;
  client::digest_unit unit = client::digest_unit::chunk;
  std::vector<uint32_t> end_offsets;
  std::string lora;
  std::string salt;
  std::vector<std::string> identifiers; ///< identifiers of the items
  std::vector<client::item> items;
  std::vector<std::string> tag_texts;
  std::vector<std::string_view> tags;
  std::vector<uint8_t> session; ///< id of the session that the tokens continue
  bool tail = false;

  void set_items(nb::handle given);           ///< of (identifier, first token, tokens)
  void take(const client::prefix& continued); ///< a copy of what continues a session
  client::prefix view() const;
  size_t wire_bytes() const; ///< approximate bytes that it takes in a frame
};

/// An argument that is a Prefix already, or tokens that become one for this call.
class prefix_argument {
 public:
  explicit prefix_argument(nb::handle given);
  client::prefix view() const { return prefix_->view(); }

 private:
  std::unique_ptr<owned_prefix> made_;
  const owned_prefix* prefix_;
};

/// Returns the numbers of an array of 4-byte or 8-byte integers, or of an iterable. `what` names them in
/// errors, such as "tokens".
std::vector<uint32_t> read_numbers(nb::handle from, const char* what);

void bind_prefix(nb::module_& in);

} // namespace terrace::python
