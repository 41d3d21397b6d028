// Calls on sessions.
#include "client/client.hpp"
#include "client/conversions.hpp"
#include "client/core.hpp"

#include <algorithm>

namespace terrace::client {

using detail::ask;
using detail::body_builder;
using detail::pass_on;
using protocol::kind;

namespace {

session_id to_session(const flatbuffers::Vector<uint8_t>& bytes) {
  return {protocol::to_lease_id(&bytes).bytes};
}

auto write(body_builder& body, const session_id& id) {
  return body.CreateVector(id.bytes.data(), id.bytes.size());
}

session_point point_of(uint64_t tokens, const flatbuffers::Vector<uint8_t>* last) {
  session_point at{tokens, {}, 0};
  if (last != nullptr) {
    at.digest_width = last->size();
    at.last = digest::from({last->data(), at.digest_width});
  }
  return at;
}

saved_session decode_saved(const wire::SaveSessionAnswer& table) {
  saved_session saved{point_of(table.session_tokens(), table.session_digest()),
                      table.held_chunks(),
                      table.held_bytes(),
                      {},
                      table.unheld() ? table.unheld()->str() : std::string()};
  if (table.lease())
    saved.lease = protocol::to_lease_id(table.lease());
  return saved;
}

sessions_status decode_sessions(const wire::SessionsAnswer& table) {
  sessions_status all{table.count(), table.bytes(), table.evicted(), {}, table.held(), table.held_bytes()};
  for (const auto* one : *table.sessions())
    all.sessions.push_back({to_session(*one->session()), connection_id{one->connection()}, one->space(),
                            one->keep(), one->generation(), one->protected_tokens(), one->committed_tokens(),
                            one->allocated_tokens(), one->bytes(), static_cast<session_mode>(one->mode()),
                            one->held_tokens(), one->held_bytes(), one->saved_tokens(), one->tail_tokens(),
                            one->own_tokens()});
  return all;
}

flatbuffers::Offset<flatbuffers::String> optional_text(body_builder& body, const std::string& text) {
  return text.empty() ? flatbuffers::Offset<flatbuffers::String>() : body.CreateString(text);
}

result<void> check_open(const session& turns) {
  if (turns)
    return {};
  return fail(errc::bad_request, "expected a session that is open, got one that was closed");
}

} // namespace

// ---- the handle ----

void session::swap(session& other) noexcept {
  std::swap(core_, other.core_);
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

result<session> connection::open_session(const space& where, const session_options& options, deadline until) {
  return session::open(core_.shared(), where, options, until);
}

session connection::adopt_session(const space& where, const session_id& id, const session_point& at,
                                  const session_options& options) const {
  return session::adopt(core_.shared(), where, id, at, options);
}

result<session> session::open(const std::shared_ptr<detail::core>& core, const space& where,
                              const session_options& options, deadline until) {
  auto number = core->space_id_of(where);
  if (!number)
    return pass_on(number);
  auto id = ask<kind::open_session>(
      *core->now(), until,
      [&](body_builder& body) {
        auto seed = options.seed.empty() ? 0 : body.CreateVector(options.seed);
        auto lora = optional_text(body, options.lora);
        auto salt = optional_text(body, options.salt);
        return wire::CreateOpenSession(body, *number, static_cast<wire::SessionMode>(options.mode),
                                       options.keep, seed, lora, salt);
      },
      [](const wire::OpenSessionAnswer& table) { return to_session(*table.session()); });
  if (!id)
    return pass_on(id);
  return adopt(core, where, *id, {}, options);
}

session session::adopt(const std::shared_ptr<detail::core>& core, const space& where, const session_id& id,
                       const session_point& at, const session_options& options) {
  session opened;
  opened.core_ = core;
  opened.channel_ = core->now();
  opened.id_ = id;
  opened.in_ = where;
  opened.chunk_tokens_ = core->chunk_tokens_of(where);
  opened.options_ = options;
  opened.at_ = at;
  return opened;
}

result<session> session::fork(uint64_t tokens, bool keep, deadline until) const {
  if (auto open = check_open(*this); !open)
    return pass_on(open);
  auto number = core_->space_id_of(in_);
  if (!number)
    return pass_on(number);
  session_options options = options_;
  options.keep = keep;
  return ask<kind::fork_session>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateForkSession(body, write(body, id_), *number, tokens, keep);
      },
      [&](const wire::ForkSessionAnswer& table) {
        return adopt(core_, in_, to_session(*table.session()), point_of(table.tokens(), table.digest()),
                     options);
      });
}

result<bool> admin::close_session(const session_id& id, deadline until) {
  return ask<kind::close_session>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateCloseSession(body, write(body, id)); },
      [](const wire::CloseSessionAnswer& table) { return table.closed(); });
}

/// Calls `send`, which sends a prefix that continues the session. If the session has ended or its tokens
/// are not those that its handle assumes, calls it again with the whole prompt.
template <class Send>
auto session::continue_with(std::span<const uint32_t> prompt, uint64_t unchanged, std::span<const item> items,
                            deadline until, Send&& send) -> decltype(send(prefix())) {
  if (auto open = check_open(*this); !open)
    return pass_on(open);
  auto attempt = [&](uint64_t same) {
    prefix what = continued(prompt, same);
    uint64_t first = what.parent_tokens; // the daemon hashes from the start of the chunk before
    first -= first % chunk_tokens_;
    auto begin = std::find_if(items.begin(), items.end(), [&](const item& one) {
      return uint64_t{one.first_token} + one.tokens > first;
    });
    what.items = items.subspan(static_cast<size_t>(begin - items.begin()));
    return send(what);
  };
  auto lost = [&](const auto& found) {
    return !found && found.error().code == errc::gone && core_->now()->alive();
  };
  auto found = attempt(unchanged);
  if (lost(found)) // the session's tokens are not those that this handle assumes
    found = attempt(0);
  if (lost(found)) { // the session has ended, so a new one is opened
    auto opened = open(core_, in_, options_, until);
    if (!opened)
      return pass_on(opened);
    id_ = opened->id_;
    channel_ = std::move(opened->channel_);
    opened->id_ = {};
    at_ = {};
    found = attempt(0);
  }
  return found;
}

result<lookup_result> session::lookup(std::span<const uint32_t> prompt, uint64_t unchanged,
                                      lookup_request request, deadline until) {
  request.in = in_;
  auto items = request.what.items;
  bool tail = request.what.tail;
  return continue_with(prompt, unchanged, items, until, [&](const prefix& what) {
    request.what = what;
    request.what.tail = tail;
    auto found = detail::finish(async_requests(core_).lookup(request, until), until);
    if (found)
      moved(*found);
    return found;
  });
}

result<saved_session> session::save(std::span<const uint32_t> prompt, uint64_t unchanged,
                                    std::span<const item> items, const request_options& options,
                                    deadline until) {
  return save_turn(prompt, unchanged, {}, items, options, until);
}

result<saved_session> session::save_with_tail(std::span<const uint32_t> prompt, uint64_t unchanged,
                                              std::span<const uint64_t> cursors, std::span<const item> items,
                                              const request_options& options, deadline until) {
  return save_turn(prompt, unchanged, {true, cursors}, items, options, until);
}

result<saved_session> session::save_turn(std::span<const uint32_t> prompt, uint64_t unchanged,
                                         const turn_end& end, std::span<const item> items,
                                         const request_options& options, deadline until) {
  auto number = core_->space_id_of(in_);
  if (!number)
    return pass_on(number);
  return continue_with(prompt, unchanged, items, until, [&](prefix what) {
    what.tail = end.tail;
    auto saved = ask<kind::save_session>(
        *core_->now(), until,
        [&](body_builder& body) {
          auto prefix = detail::encode(body, what);
          auto terms = detail::encode(body, options);
          flatbuffers::Offset<flatbuffers::Vector<uint64_t>> cursors;
          if (!end.cursors.empty())
            cursors = body.CreateVector(end.cursors.data(), end.cursors.size());
          return wire::CreateSaveSession(body, *number, prefix, detail::milliseconds_left(until), terms,
                                         cursors);
        },
        decode_saved);
    if (saved)
      moved(saved->at);
    return saved;
  });
}

result<saved_prompts> connection::save_prompt(const prompt_to_save& request, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return pass_on(number);
  prefix prompt = request.what;
  prompt.tail = true;
  return ask<kind::save_prompt>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, prompt);
        auto terms = detail::encode(body, request.options);
        auto logits = body.CreateVector(request.logits.data(), request.logits.size());
        flatbuffers::Offset<flatbuffers::Vector<uint64_t>> cursors;
        if (!request.cursors.empty())
          cursors = body.CreateVector(request.cursors.data(), request.cursors.size());
        return wire::CreateSavePrompt(body, *number, prefix, logits, cursors,
                                      detail::milliseconds_left(until), terms);
      },
      [](const wire::SavePromptAnswer& table) {
        return saved_prompts{table.prompts(), table.bytes()};
      });
}

result<sessions_status> admin::sessions(deadline until) {
  return ask<kind::sessions>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateSessions(body); }, decode_sessions);
}

result<std::optional<session_status>> admin::session_status_of(const session_id& id, deadline until) {
  return ask<kind::sessions>(
      *core_->now(), until, [&](body_builder& body) { return wire::CreateSessions(body, write(body, id)); },
      [](const wire::SessionsAnswer& table) {
        auto found = decode_sessions(table).sessions;
        return found.empty() ? std::nullopt : std::optional(found.front());
      });
}

} // namespace terrace::client
