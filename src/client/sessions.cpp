// Calls on sessions.
#include "client/client.hpp"
#include "client/core.hpp"

#include <algorithm>

namespace terrace::client {

using detail::ask;
using detail::body_builder;
using protocol::kind;

namespace {

session_id to_session(const flatbuffers::Vector<uint8_t>& bytes) {
  return {protocol::to_lease_id(&bytes).bytes};
}

auto write(body_builder& body, const session_id& id) {
  return body.CreateVector(id.bytes.data(), id.bytes.size());
}

flatbuffers::Offset<flatbuffers::String> optional_text(body_builder& body, const std::string& text) {
  return text.empty() ? flatbuffers::Offset<flatbuffers::String>() : body.CreateString(text);
}

} // namespace

// ---- the handle ----

void session::swap(session& other) noexcept {
  std::swap(channel_, other.channel_);
  std::swap(id_, other.id_);
  std::swap(in_, other.in_);
  std::swap(chunk_tokens_, other.chunk_tokens_);
  std::swap(options_, other.options_);
  std::swap(at_, other.at_);
}

prefix session::continued(std::span<const uint32_t> prompt, uint64_t unchanged) const {
  uint64_t base = std::min({unchanged, at_.tokens, uint64_t{prompt.size()}});
  if (base < at_.tokens / chunk_tokens_ * chunk_tokens_)
    base = base / chunk_tokens_ * chunk_tokens_; // the daemon does not know the tokens inside a whole chunk
  prefix what;
  what.session = id_.bytes;
  what.tokens = prompt.subspan(base);
  what.parent_tokens = static_cast<uint32_t>(base);
  if (base != 0)
    what.parent = std::span(at_.last.bytes).first(at_.digest_width);
  return what;
}

void session::moved(const lookup_result& found) {
  if (found.session)
    at_ = *found.session;
}

void session::close() {
  if (channel_ && !id_.empty() && !options_.keep)
    channel_->post(kind::close_session,
                   [&](body_builder& body) { return wire::CreateCloseSession(body, write(body, id_)); });
  id_ = {};
  channel_.reset();
}

// ---- calls ----

result<session> connection::open_session(const space& in, const session_options& options, deadline until) {
  auto number = core_->space_id_of(in);
  if (!number)
    return tl::unexpected<error>(number.error());
  auto id = ask<kind::open_session>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto seed = options.seed.empty() ? 0 : body.CreateVector(options.seed);
        auto lora = optional_text(body, options.lora);
        auto salt = optional_text(body, options.salt);
        return wire::CreateOpenSession(body, *number, wire::SessionMode::tagged, options.keep, seed, lora,
                                       salt);
      },
      [](const wire::OpenSessionAnswer& table) { return to_session(*table.session()); });
  if (!id)
    return tl::unexpected<error>(id.error());
  return adopt_session(in, *id, {}, options);
}

session connection::adopt_session(const space& in, const session_id& id, const session_point& at,
                                  const session_options& options) const {
  session opened;
  opened.channel_ = core_->now();
  opened.id_ = id;
  opened.in_ = in;
  opened.chunk_tokens_ = core_->chunk_tokens_of(in);
  opened.options_ = options;
  opened.at_ = at;
  return opened;
}

result<session> connection::fork_session(const session& of, uint64_t tokens, bool keep, deadline until) {
  auto number = core_->space_id_of(of.in());
  if (!number)
    return tl::unexpected<error>(number.error());
  session_options options = of.options_;
  options.keep = keep;
  return ask<kind::fork_session>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateForkSession(body, write(body, of.id()), *number, tokens, keep);
      },
      [&](const wire::ForkSessionAnswer& table) {
        session_point at{table.tokens(), {}, 0};
        if (table.digest()) {
          at.digest_width = table.digest()->size();
          at.last = digest::from({table.digest()->data(), at.digest_width});
        }
        return adopt_session(of.in(), to_session(*table.session()), at, options);
      });
}

result<bool> connection::close_session(const session_id& id, deadline until) {
  return ask<kind::close_session>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateCloseSession(body, write(body, id)); },
      [](const wire::CloseSessionAnswer& table) { return table.closed(); });
}

result<lookup_result> connection::lookup(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                                         lookup_request request, deadline until) {
  request.in = of.in();
  request.what.session = {};
  auto items = request.what.items;
  auto attempt = [&](uint64_t same) {
    request.what = of.continued(prompt, same);
    uint64_t first = request.what.parent_tokens; // the daemon hashes from the start of the chunk before
    first -= first % of.chunk_tokens_;
    auto begin = std::find_if(items.begin(), items.end(), [&](const item& one) {
      return uint64_t{one.first_token} + one.tokens > first;
    });
    request.what.items = items.subspan(static_cast<size_t>(begin - items.begin()));
    auto found = lookup(request, until);
    if (found)
      of.moved(*found);
    return found;
  };
  auto lost = [&](const result<lookup_result>& found) {
    return !found && found.error().code == errc::gone && alive();
  };
  auto found = attempt(unchanged);
  if (lost(found)) // the session is not what this handle takes it for
    found = attempt(0);
  if (lost(found)) { // it has ended: a new one
    auto opened = open_session(of.in(), of.options_, until);
    if (!opened)
      return tl::unexpected<error>(opened.error());
    of.id_ = opened->id_;
    of.channel_ = std::move(opened->channel_);
    opened->id_ = {};
    of.at_ = {};
    found = attempt(0);
  }
  return found;
}

result<sessions_status> connection::sessions(deadline until) {
  return ask<kind::sessions>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateSessions(body); },
      [](const wire::SessionsAnswer& table) {
        sessions_status all{table.count(), table.bytes(), table.evicted(), {}};
        for (const auto* one : *table.sessions())
          all.sessions.push_back({to_session(*one->session()), connection_id{one->connection()}, one->space(),
                                  one->keep(), one->generation(), one->protected_tokens(),
                                  one->committed_tokens(), one->allocated_tokens(), one->bytes()});
        return all;
      });
}

} // namespace terrace::client
