#include "sessions.hpp"

#include "arguments.hpp"
#include "options.hpp"
#include "prefix.hpp"
#include "spaces.hpp"
#include "ticket.hpp"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace terrace::python {

namespace {

client::session_options session_options_of(bool held, bool keep, const std::string& lora,
                                           const std::string& salt) {
  return {.mode = held ? client::session_mode::held : client::session_mode::tagged,
          .keep = keep,
          .lora = lora,
          .salt = salt};
}

session_handle open_session(connection_handle& self, space_handle& space, bool held, bool keep,
                            const std::string& lora, const std::string& salt, const timeout& limit) {
  const client::space& in = space_in(self.in, space);
  auto options = session_options_of(held, keep, lora, salt);
  auto until = deadline_of(limit);
  return {self.in, value_of(self.in->use(until, [&](client::connection& daemon) {
            return daemon.open_session(in, options, until);
          }))};
}

/// Refuses the session of another connection, and one that was closed.
client::session& session_in(const connection_handle& self, session_handle& given) {
  if (given.in != self.in)
    refuse("expected a session of this connection, got another's: adopt_session continues it here");
  return given.turns;
}

client::session_id open_id(const client::session& turns) {
  if (!turns)
    throw failure({errc::bad_request, "expected a session that is open, got one that was closed"});
  return turns.id();
}

session_handle fork_session(connection_handle& self, session_handle& session, uint64_t tokens, bool keep,
                            const timeout& limit) {
  client::session& turns = session_in(self, session);
  auto until = deadline_of(limit);
  return {self.in, value_of(self.in->use(
                       until, [&](client::connection&) { return turns.fork(tokens, keep, until); }))};
}

session_handle adopt_session(connection_handle& self, space_handle& space, const nb::bytes& id,
                             uint64_t tokens, const nb::bytes& tokens_digest, bool held, bool keep,
                             const std::string& lora, const std::string& salt) {
  const client::space& in = space_in(self.in, space);
  auto options = session_options_of(held, keep, lora, salt);
  if (tokens_digest.size() > digest::max_size)
    refuse("expected the digest of a session, at most 32 bytes, got " + std::to_string(tokens_digest.size()));
  client::session_point at{
      .tokens = tokens, .last = {}, .digest_width = static_cast<uint32_t>(tokens_digest.size())};
  std::memcpy(at.last.bytes.data(), tokens_digest.c_str(), tokens_digest.size());
  auto name = id_of<client::session_id>(id);
  return {self.in, self.in->use({}, [&](client::connection& daemon) {
            return daemon.adopt_session(in, name, at, options);
          })};
}

bool close_session(connection_handle& self, const nb::bytes& id, const timeout& limit) {
  auto name = id_of<client::session_id>(id);
  auto until = deadline_of(limit);
  return value_of(self.in->use(
      until, [&](client::connection& daemon) { return daemon.admin().close_session(name, until); }));
}

/// A turn's prompt, as its arguments give it.
struct turn_argument {
  turn_argument(nb::handle tokens, nb::handle items, bool tail) {
    prompt.tokens = read_numbers(tokens, "tokens");
    prompt.set_items(items);
    prompt.tail = tail;
  }
  owned_prefix prompt;
};

nb::object lookup_turn(connection_handle& self, session_handle& session, nb::handle prompt,
                       uint64_t unchanged, bool lease, bool tail, nb::handle items, nb::handle tiers,
                       std::optional<nb::bytes> id, std::optional<owned_options*> options,
                       const timeout& limit) {
  client::session& turns = session_in(self, session);
  turn_argument turn(prompt, items, tail);
  client::lookup_request request{.in = {},
                                 .what = turn.prompt.view(),
                                 .lease = lease,
                                 .tiers = tiers_of(tiers),
                                 .options = options_of(options)};
  if (id)
    request.id = id_of<lookup_id>(*id);
  auto until = deadline_of(limit);
  auto found = self.in->use(until, [&](client::connection&) {
    return turns.lookup(turn.prompt.tokens, unchanged, request, until);
  });
  return to_python({self.in, nullptr}, value_of(std::move(found)));
}

client::saved_session save_turn(connection_handle& self, session_handle& session, nb::handle prompt,
                                uint64_t unchanged, bool tail, nb::handle cursors, nb::handle items,
                                std::optional<owned_options*> options, const timeout& limit) {
  client::session& turns = session_in(self, session);
  turn_argument turn(prompt, items, tail);
  auto places = numbers_of<uint64_t>(cursors, "a cursor");
  if (!places.empty() && !tail)
    refuse("expected cursors with tail=True, which saves the end of the turn they belong to");
  auto with = options_of(options);
  auto until = deadline_of(limit);
  return value_of(self.in->use(until, [&](client::connection&) {
    return tail ? turns.save_with_tail(turn.prompt.tokens, unchanged, places, turn.prompt.items, with, until)
                : turns.save(turn.prompt.tokens, unchanged, turn.prompt.items, with, until);
  }));
}

std::unique_ptr<owned_prefix> continued(session_handle& self, nb::handle prompt, uint64_t unchanged,
                                        bool tail) {
  auto tokens = read_numbers(prompt, "tokens");
  auto made = std::make_unique<owned_prefix>();
  self.in->use({}, [&](client::connection&) {
    open_id(self.turns);
    made->take(self.turns.continued(tokens, unchanged));
  });
  made->tail = tail;
  return made;
}

/// Does nothing if the connection was closed, with which the session has ended unless it is kept.
void close(session_handle& self) {
  if (!self.in->closed())
    self.in->use({}, [&](client::connection&) { self.turns.close(); });
}

client::session_point point_of(session_handle& self) {
  return self.in->use({}, [&](client::connection&) { return self.turns.at(); });
}

} // namespace

void bind_sessions(nb::module_& in, connection_class& to) {
  nb::class_<client::saved_session>(in, "SavedTurn")
      .def_prop_ro("tokens", [](const client::saved_session& self) { return self.at.tokens; })
      .def_ro("held_chunks", &client::saved_session::held_chunks)
      .def_ro("held_bytes", &client::saved_session::held_bytes)
      .def_prop_ro("lease", [](const client::saved_session& self) { return to_bytes(self.lease.bytes); })
      .def_ro("unheld", &client::saved_session::unheld);

  nb::class_<session_handle>(in, "Session")
      .def_prop_ro("id",
                   [](session_handle& self) {
                     return to_bytes(
                         self.in->use({}, [&](client::connection&) { return open_id(self.turns); }).bytes);
                   })
      .def_prop_ro("tokens", [](session_handle& self) { return point_of(self).tokens; })
      .def_prop_ro("digest",
                   [](session_handle& self) {
                     auto at = point_of(self);
                     return to_bytes(std::span(at.last.bytes).first(at.digest_width));
                   })
      .def("continued", continued, nb::arg("prompt"), nb::arg("unchanged"), nb::kw_only(),
           nb::arg("tail") = false)
      .def("close", close)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](session_handle& self, const nb::args&) { close(self); });

  auto none = nb::none();
  nb::tuple nothing;
  to.def("open_session", open_session, nb::arg("space"), nb::kw_only(), nb::arg("held") = false,
         nb::arg("keep") = false, nb::arg("lora") = "", nb::arg("salt") = "", nb::arg("timeout") = none);
  to.def("fork_session", fork_session, nb::arg("session"), nb::arg("tokens"), nb::kw_only(),
         nb::arg("keep") = false, nb::arg("timeout") = none);
  to.def("adopt_session", adopt_session, nb::arg("space"), nb::arg("id"), nb::arg("tokens"),
         nb::arg("digest"), nb::kw_only(), nb::arg("held") = false, nb::arg("keep") = false,
         nb::arg("lora") = "", nb::arg("salt") = "");
  to.def("close_session", close_session, nb::arg("id"), nb::kw_only(), nb::arg("timeout") = none);
  to.def("lookup_turn", lookup_turn, nb::arg("session"), nb::arg("prompt"), nb::arg("unchanged"),
         nb::kw_only(), nb::arg("lease") = false, nb::arg("tail") = false, nb::arg("items") = nothing,
         nb::arg("tiers") = nothing, nb::arg("id") = none, nb::arg("options") = none,
         nb::arg("timeout") = none);
  to.def("save_turn", save_turn, nb::arg("session"), nb::arg("prompt"), nb::arg("unchanged"), nb::kw_only(),
         nb::arg("tail") = false, nb::arg("cursors") = nothing, nb::arg("items") = nothing,
         nb::arg("options") = none, nb::arg("timeout") = none);
}

} // namespace terrace::python
