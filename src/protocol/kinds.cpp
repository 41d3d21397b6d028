#include "protocol/kinds.hpp"

namespace terrace::protocol {

std::string_view to_string(kind k) {
  switch (k) {
    case kind::hello: return "hello";
    case kind::open_space: return "open_space";
    case kind::register_region: return "register_region";
    case kind::unregister_region: return "unregister_region";
    case kind::map_segment: return "map_segment";
    case kind::lookup: return "lookup";
    case kind::read_lease: return "read_lease";
    case kind::load: return "load";
    case kind::store: return "store";
    case kind::reserve: return "reserve";
    case kind::commit: return "commit";
    case kind::abort: return "abort";
    case kind::release: return "release";
    case kind::cancel: return "cancel";
    case kind::status: return "status";
    case kind::end_inference: return "end_inference";
    case kind::clear: return "clear";
    case kind::await_lookup: return "await_lookup";
    case kind::policies: return "policies";
    case kind::set_policy: return "set_policy";
    case kind::error: return "error";
  }
  constexpr std::string_view answers[] = {"",
                                          "answer to hello",
                                          "answer to open_space",
                                          "answer to register_region",
                                          "answer to unregister_region",
                                          "answer to map_segment",
                                          "answer to lookup",
                                          "answer to read_lease",
                                          "answer to load",
                                          "answer to store",
                                          "answer to reserve",
                                          "answer to commit",
                                          "answer to abort",
                                          "answer to release",
                                          "answer to cancel",
                                          "answer to status",
                                          "answer to end_inference",
                                          "answer to clear",
                                          "answer to await_lookup",
                                          "answer to policies",
                                          "answer to set_policy"};
  static_assert(std::size(answers) == last_request + 1);
  return is_answer(k) ? answers[static_cast<uint16_t>(k) & 0xff] : "unknown";
}

} // namespace terrace::protocol
