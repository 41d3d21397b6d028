#include "protocol/resp/reply.hpp"

namespace terrace::resp {

void append_error(std::string& to, std::string_view code, std::string_view text) {
  to.push_back('-');
  to.append(code);
  to.push_back(' ');
  for (char c : text)
    to.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  to.append("\r\n");
}

void append_failure(std::string& to, const error& why) {
  switch (why.code) {
    case errc::no_space: return append_error(to, "OOM", why.text);
    case errc::busy:
    case errc::deadline: return append_error(to, "BUSY", why.text);
    case errc::denied: return append_error(to, "NOPERM", why.text);
    default: return append_error(to, "ERR", std::string(to_string(why.code)) + ": " + why.text);
  }
}

} // namespace terrace::resp
