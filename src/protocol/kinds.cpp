#include "protocol/kinds.hpp"

namespace terrace::protocol {

std::string_view to_string(kind k) {
  auto number = static_cast<uint16_t>(k);
  if (k == kind::error)
    return "error";
  if (is_request(k))
    return detail::verb_rows[number - 1].name;
  return is_answer(k) ? detail::verb_rows[(number & ~answer_bit) - 1].answer_name : "unknown";
}

} // namespace terrace::protocol
