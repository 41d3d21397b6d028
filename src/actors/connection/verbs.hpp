// The verbs that clients may send: one file each in verbs/, named here and in the registry (verbs.cpp).
//
// A verb parses its frame, refuses what contradicts the connection's state, and answers now or later, always through
// `connection::reply` or `connection::refuse`. The frame's body lives only until it returns, unless it holds it.
#pragma once

#include "actors/connection/connection.hpp"

#include <span>

namespace terrace::actors {

struct verb {
  protocol::kind kind;
  const char* name;
  void (*serve)(connection& client, const connection::request& what, protocol::frame& frame);
  size_t descriptors = 0;      ///< that its frame carries
  bool while_draining = false; ///< it gives something back, or only looks
};

/// Null for a kind that no client sends.
const verb* find_verb(protocol::kind kind);

std::span<const verb> all_verbs();

namespace verbs {
void hello(connection&, const connection::request&, protocol::frame&);
void open_space(connection&, const connection::request&, protocol::frame&);
void register_region(connection&, const connection::request&, protocol::frame&);
void unregister_region(connection&, const connection::request&, protocol::frame&);
void map_segment(connection&, const connection::request&, protocol::frame&);
void lookup(connection&, const connection::request&, protocol::frame&);
void read_lease(connection&, const connection::request&, protocol::frame&);
void load(connection&, const connection::request&, protocol::frame&);
void store(connection&, const connection::request&, protocol::frame&);
void reserve(connection&, const connection::request&, protocol::frame&);
void commit(connection&, const connection::request&, protocol::frame&);
void abort(connection&, const connection::request&, protocol::frame&);
void release(connection&, const connection::request&, protocol::frame&);
void cancel(connection&, const connection::request&, protocol::frame&);
void end_inference(connection&, const connection::request&, protocol::frame&);
void clear(connection&, const connection::request&, protocol::frame&);
void await_lookup(connection&, const connection::request&, protocol::frame&);
void policies(connection&, const connection::request&, protocol::frame&);
void set_policy(connection&, const connection::request&, protocol::frame&);
void status(connection&, const connection::request&, protocol::frame&);
} // namespace verbs

} // namespace terrace::actors
