// Conversations whose turns send only their new tokens.
#pragma once

#include "connection.hpp"

namespace terrace::python {

/// Python's terrace.Session. Its members are read and written only inside of `in`.
struct session_handle {
  session_handle(std::shared_ptr<shared_connection> connection, client::session opened)
      : in(std::move(connection)), turns(std::move(opened)) {}
  session_handle(session_handle&&) = default;
  session_handle& operator=(session_handle&&) = delete;
  ~session_handle() {
    if (in)
      in->give_back(std::move(turns)); // whose end closes the session, without waiting
  }

  std::shared_ptr<shared_connection> in;
  client::session turns;
};

/// Binds the session and the requests about it.
void bind_sessions(nb::module_& in, connection_class& to);

} // namespace terrace::python
