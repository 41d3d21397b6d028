// The content of a message that never leaves the process. CAF makes some fifty functions for each type of message in each
// source that sends it, most of them to print it, to serialize it, and to copy a part of it. None of that is asked of messages
// between our actors, so these share one answer; that is a quarter of the compiler's time for an actor.
#pragma once

#include <caf/detail/message_data.hpp>
#include <caf/error.hpp>
#include <caf/rtti_pair.hpp>
#include <caf/sec.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/type_erased_value.hpp>
#include <caf/type_nr.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace terrace::runtime {

/// A message of one value, as far as its type does not matter. `Base` is one of the two classes of CAF that messages derive
/// from: `message_data` and `type_erased_tuple`.
template <class Base>
class local_message : public Base {
 public:
  explicit local_message(const std::type_info& type) noexcept : type_(&type) {}

  size_t size() const noexcept final { return 1; }
  /// All types that CAF does not number have the same.
  uint32_t type_token() const noexcept final { return caf::make_type_token<local_message>(); }
  caf::rtti_pair type(size_t) const noexcept final { return {0, type_}; }

  std::string stringify(size_t) const final { return "<unprintable>"; }
  using Base::load;
  caf::error load(size_t, caf::deserializer&) final { return caf::sec::unknown_type; }
  using Base::save;
  caf::error save(size_t, caf::serializer&) const final { return caf::sec::unknown_type; }
  using Base::copy;
  caf::type_erased_value_ptr copy(size_t) const final {
    assert(!"messages of one value are not taken apart");
    return nullptr;
  }

 private:
  const std::type_info* type_;
};

/// A message that is one `Value`. It has what CAF's `tuple_vals_impl<Base, Value>` has, so that a specialization of that can
/// derive from it.
template <class Base, class Value>
class local_value : public local_message<Base> {
 public:
  using data_type = std::tuple<Value>;

  template <class From>
  requires std::is_constructible_v<Value, From&&>
  explicit local_value(From&& from) : local_message<Base>(typeid(Value)), data_(std::forward<From>(from)) {}
  local_value(const local_value&) = default;

  data_type& data() noexcept { return data_; }
  const data_type& data() const noexcept { return data_; }
  const void* get(size_t) const noexcept final { return &std::get<0>(data_); }
  void* get_mutable(size_t) final { return &std::get<0>(data_); }

 private:
  data_type data_;
};

} // namespace terrace::runtime
