// What a simulated client does with sessions: turns that continue each other, tails that are saved, and forks.
#include "simulated_client.hpp"

namespace terrace::simulation {

using protocol::kind;

namespace {
constexpr size_t sessions_max = 3; ///< of a client
}

void simulated_client::use_session() {
  if (sessions_.size() < sessions_max && (sessions_.empty() || random_.below(3) == 0)) {
    open_session();
    return;
  }
  session& one = sessions_[random_.below(sessions_.size())];
  if (one.busy)
    return;
  if (one.at.chunks == world_.chunks || random_.below(8) == 0)
    close_session(one.number);
  else if (random_.below(8) == 0)
    fork_session(one);
  else
    take_turn(one);
}

simulated_client::session* simulated_client::session_of(uint64_t number) {
  auto found = std::find_if(sessions_.begin(), sessions_.end(),
                            [&](const session& one) { return one.number == number; });
  return found == sessions_.end() ? nullptr : &*found;
}

simulated_client::session& simulated_client::add_session(const prompt& at) {
  session& added = sessions_.emplace_back();
  added.number = ++last_session_;
  added.at = at;
  added.busy = true;
  return added;
}

void simulated_client::open_session() {
  prompt of = any_prompt();
  session& opened = add_session({of.space, of.root, 0, false});
  ask(
      kind::open_session,
      [&](builder& b) {
        return wire::CreateOpenSession(b, spaces_[of.space],
                                       random_.coin() ? wire::SessionMode::held : wire::SessionMode::tagged);
      },
      [this, number = opened.number](answer& got) {
        auto table =
            got.good() ? protocol::parse<wire::OpenSessionAnswer>(got.body) : fail(errc::internal, "");
        if (table)
          has_session(number, (*table)->session(), nullptr);
        else
          std::erase_if(sessions_, [&](const session& one) { return one.number == number; });
      });
}

void simulated_client::has_session(uint64_t number, const flatbuffers::Vector<uint8_t>* id,
                                   const flatbuffers::Vector<uint8_t>* digest) {
  session* one = session_of(number);
  if (one == nullptr)
    return;
  one->busy = false;
  one->id.assign(id->begin(), id->end());
  if (digest != nullptr)
    one->digest.assign(digest->begin(), digest->end());
}

void simulated_client::close_session(uint64_t number) {
  session& one = *session_of(number);
  say("closes session " + std::to_string(number));
  world_.model.ends_keep(one.kept);
  ask(kind::close_session, [&](builder& b) { return wire::CreateCloseSession(b, b.CreateVector(one.id)); });
  std::erase_if(sessions_, [&](const session& each) { return each.number == number; });
}

/// At one of its whole chunks, or at its end.
void simulated_client::fork_session(const session& from) {
  if (sessions_.size() >= sessions_max)
    return;
  auto id = from.id;
  prompt at = from.at;
  if (random_.coin())
    at = {at.space, at.root, static_cast<uint32_t>(random_.below(at.chunks + 1)), false};
  uint64_t number = add_session(at).number;
  ask(
      kind::fork_session,
      [&](builder& b) {
        return wire::CreateForkSession(b, b.CreateVector(id), spaces_[at.space], at.tokens());
      },
      [this, number, at](answer& got) {
        auto table =
            got.good() ? protocol::parse<wire::ForkSessionAnswer>(got.body) : fail(errc::internal, "");
        if (table && (*table)->tokens() == at.tokens())
          has_session(number, (*table)->session(), (*table)->digest());
        else
          std::erase_if(sessions_, [&](const session& one) { return one.number == number; });
      });
}

/// The session grows by some chunks: it looks them up, saves them, or stores them with a tail and saves its end.
void simulated_client::take_turn(session& of) {
  prompt next = of.at;
  next.chunks = static_cast<uint32_t>(random_.between(next.chunks + 1, world_.chunks));
  next.tail = random_.coin();
  if (next.tail && random_.below(4) != 0) {
    store_turn(of, next);
    return;
  }
  next.tail = false;
  uint32_t space = spaces_[next.space];
  of.busy = true;
  if (random_.below(of.at.tail ? 4 : 2) == 0) {
    save_turn(of, next);
    return;
  }
  say("goes on in session " + std::to_string(of.number) + ": " + next.text());
  // It finds the tail of the turn before, or the whole chunk that begins like it.
  auto expected = world_.model.expects(objects_of(of.at));
  ask(
      kind::lookup,
      [&](builder& b) {
        auto prefix = write_turn(b, of, next, of.at.tail);
        return wire::CreateLookup(b, space, prefix, false, 0, deadline());
      },
      [this, number = of.number, next, expected](answer& got) {
        auto table = got.good() ? protocol::parse<wire::LookupAnswer>(got.body) : fail(errc::internal, "");
        if (table)
          world_.model.found((*table)->found_chunks() * world_.pools.size(), expected);
        if (session* now = session_of(number))
          world_.model.ends_keep(std::exchange(now->kept, 0));
        end_turn(number, next, table ? (*table)->session_digest() : nullptr);
      });
}

flatbuffers::Offset<wire::Prefix> simulated_client::write_turn(builder& b, const session& of,
                                                               const prompt& next, bool finds_tail) const {
  auto tokens = world_.tokens_of(next, of.at.chunks);
  if (of.at.tail) // which it has already
    tokens.erase(tokens.begin(), tokens.begin() + client_world::tail_tokens);
  auto sent = b.CreateVector(tokens);
  auto before = of.digest.empty() ? 0 : b.CreateVector(of.digest);
  auto id = b.CreateVector(of.id);
  return wire::CreatePrefix(b, sent, before, of.at.tokens(), 0, 32, wire::DigestUnit::chunk, 0, 0, 0, 0, 0,
                            id, next.tail || finds_tail);
}

/// The session has these tokens now, or stays as it was.
void simulated_client::end_turn(uint64_t number, const prompt& now,
                                const flatbuffers::Vector<uint8_t>* digest) {
  session* of = session_of(number);
  if (of == nullptr)
    return;
  of->busy = false;
  if (digest == nullptr)
    return;
  of->at = now;
  of->digest.assign(digest->begin(), digest->end());
}

void simulated_client::store_turn(session& of, const prompt& next) {
  if (!of.at.tail && of.at.chunks == next.chunks)
    return;
  of.busy = store_objects(
      next, of.at.chunks, [&](builder& b) { return write_turn(b, of, next); },
      [this, number = of.number, next](bool there) {
        session* now = session_of(number);
        if (now == nullptr)
          return;
        if (there)
          save_turn(*now, next);
        else
          now->busy = false;
      });
}

/// What was saved with its tail is found until the session goes on.
void simulated_client::save_turn(session& of, const prompt& next) {
  say("saves session " + std::to_string(of.number) + ": " + next.text());
  world_.model.ends_keep(of.kept);
  of.kept = 0;
  uint64_t at = world_.model.now();
  ask(
      kind::save_session,
      [&](builder& b) {
        auto prefix = write_turn(b, of, next);
        return wire::CreateSaveSession(b, spaces_[next.space], prefix, deadline());
      },
      [this, number = of.number, next, at](answer& got) {
        auto table =
            got.good() ? protocol::parse<wire::SaveSessionAnswer>(got.body) : fail(errc::internal, "");
        end_turn(number, next, table ? (*table)->session_digest() : nullptr);
        if (session* now = session_of(number); table && now != nullptr && next.tail && world_.roomy)
          now->kept = world_.model.keeps(world_.objects_of(group_, next, next.chunks), at);
      });
}

/// A save that continues the session, and one that begins anew with another prompt, on their way at the same time. The
/// first of the two to finish ends what the other one began with, and a continuation cannot follow the new prompt. So if
/// both are saved, the session has the new prompt.
void simulated_client::turn_twice() {
  auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const session& each) {
    return !each.busy && !each.digest.empty() && !each.at.tail && each.at.chunks > 0 &&
           each.at.chunks < world_.chunks;
  });
  prompt anew = any_prompt();
  anew.tail = false;
  if (found == sessions_.end() || anew.root / 4 == found->at.root / 4)
    return;
  session& of = *found;
  anew.space = of.at.space;
  prompt next = of.at;
  ++next.chunks;
  of.busy = true;
  world_.model.ends_keep(std::exchange(of.kept, 0));
  auto saved = std::make_shared<std::array<std::vector<uint8_t>, 2>>();
  auto left = std::make_shared<size_t>(2);
  session empty = of;
  empty.at = {of.at.space, of.at.root, 0, false};
  empty.digest.clear();
  say("saves session " + std::to_string(of.number) + " twice: " + next.text() + ", and " + anew.text());
  for (size_t which = 0; which < 2; ++which)
    ask(
        kind::save_session,
        [&](builder& b) {
          auto prefix = which == 0 ? write_turn(b, of, next) : write_turn(b, empty, anew);
          return wire::CreateSaveSession(b, spaces_[of.at.space], prefix);
        },
        [this, number = of.number, which, next, anew, saved, left](answer& got) {
          auto table =
              got.good() ? protocol::parse<wire::SaveSessionAnswer>(got.body) : fail(errc::internal, "");
          if (const auto* digest = table ? (*table)->session_digest() : nullptr)
            (*saved)[which].assign(digest->begin(), digest->end());
          if (--*left == 0)
            end_two_turns(number, next, anew, *saved);
        });
}

void simulated_client::end_two_turns(uint64_t number, const prompt& next, const prompt& anew,
                                     const std::array<std::vector<uint8_t>, 2>& saved) {
  session* of = session_of(number);
  if (of == nullptr)
    return;
  bool both = !saved[0].empty() && !saved[1].empty();
  of->busy = both;
  if (!saved[0].empty())
    of->at = next, of->digest = saved[0];
  if (!saved[1].empty())
    of->at = anew, of->digest = saved[1];
  if (!both)
    return;
  ask(
      kind::lookup,
      [&](builder& b) {
        auto prefix = write_turn(b, *of, of->at);
        return wire::CreateLookup(b, spaces_[of->at.space], prefix);
      },
      [this, number](answer& got) {
        auto why = got.good() ? fail(errc::internal, "") : protocol::parse<wire::Error>(got.body);
        if (why && (*why)->text()->str().find("the session has") != std::string::npos)
          world_.model.broke("session " + std::to_string(number) +
                             " was saved twice at a time, and has the turn "
                             "that is refused behind the other one: " +
                             (*why)->text()->str());
        if (session* now = session_of(number))
          now->busy = false;
      });
}

/// Logits of a prompt, which are its own.
void simulated_client::save_prompt() {
  prompt of = any_prompt();
  of.tail = true;
  named_object logits = logits_of(of);
  world_.saved_tails.insert(objects_of(of, of.chunks).front());
  std::vector<daemon_model::version> versions{world_.model.writes(logits)};
  std::vector<std::byte> bytes(client_world::logits_bytes);
  daemon_model::fill(bytes, versions.front());
  uint64_t at = world_.model.now();
  ask(
      kind::save_prompt,
      [&](builder& b) {
        auto prefix = write(b, of);
        auto sent = b.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
        return wire::CreateSavePrompt(b, spaces_[of.space], prefix, sent, 0, deadline());
      },
      [this, versions, at](answer&) { world_.model.stored(versions, at, false); });
}

named_object simulated_client::logits_of(const prompt& of) const {
  named_object logits = world_.objects_of(group_, of, of.chunks).front();
  logits.pool = client_world::logits_pool;
  return logits;
}

} // namespace terrace::simulation
