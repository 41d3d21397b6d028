// What a simulated client does with sessions and as an operator, and what it sends that no correct client would.
#include "simulated_client.hpp"

#include "tests/fuzz/sample_frames.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace terrace::simulation {

using protocol::kind;

namespace {

/// Verbs whose samples do not disturb correct clients, however their bytes are changed.
bool harmless(kind verb) {
  switch (verb) {
    case kind::shutdown:
    case kind::clear:
    case kind::evict:
    case kind::move:
    case kind::revoke:
    case kind::quota:
    case kind::commit:
    case kind::store: return false;
    default: return true;
  }
}

const std::vector<protocol::test::sample_frame>& samples() {
  static const auto all = protocol::test::sample_frames();
  return all;
}

} // namespace

// ---- sessions ----

void simulated_client::use_session() {
  if (session_) {
    if (!session_->busy)
      take_turn();
    return;
  }
  prompt of = any_prompt();
  session_.emplace();
  session_->space = of.space;
  session_->root = of.root;
  session_->busy = true;
  ask(
      kind::open_session,
      [&](builder& b) {
        return wire::CreateOpenSession(b, spaces_[of.space],
                                       random_.coin() ? wire::SessionMode::held : wire::SessionMode::tagged);
      },
      [this](answer& got) {
        auto table =
            got.good() ? protocol::parse<wire::OpenSessionAnswer>(got.body) : fail(errc::internal, "");
        if (!table) {
          session_.reset();
          return;
        }
        session_->id.assign((*table)->session()->begin(), (*table)->session()->end());
        session_->busy = false;
      });
}

/// The session grows by some chunks, is saved, or ends.
void simulated_client::take_turn() {
  session& of = *session_;
  prompt now{of.space, of.root, std::min<uint32_t>(of.chunks + 1, world_.chunks)};
  if (of.chunks == now.chunks || random_.below(8) == 0) {
    ask(kind::close_session, [&](builder& b) { return wire::CreateCloseSession(b, b.CreateVector(of.id)); });
    session_.reset();
    return;
  }
  of.busy = true;
  bool saves = random_.coin();
  auto on_turn = [this, chunks = now.chunks](auto digest, bool good) {
    if (!session_)
      return;
    session_->busy = false;
    if (good && digest != nullptr) {
      session_->chunks = chunks;
      session_->digest.assign(digest->begin(), digest->end());
    }
  };
  uint32_t space = spaces_[of.space];
  if (saves)
    ask(
        kind::save_session,
        [&](builder& b) {
          return wire::CreateSaveSession(b, space, write(b, now, of.chunks, of.id, of.digest), deadline());
        },
        [on_turn](answer& got) {
          auto table =
              got.good() ? protocol::parse<wire::SaveSessionAnswer>(got.body) : fail(errc::internal, "");
          on_turn(table ? (*table)->session_digest() : nullptr, table.has_value());
        });
  else
    ask(
        kind::lookup,
        [&](builder& b) {
          auto prefix = write(b, now, of.chunks, of.id, of.digest);
          return wire::CreateLookup(b, space, prefix, false, 0, deadline());
        },
        [on_turn](answer& got) {
          auto table = got.good() ? protocol::parse<wire::LookupAnswer>(got.body) : fail(errc::internal, "");
          on_turn(table ? (*table)->session_digest() : nullptr, table.has_value());
        });
}

// ---- operators ----

void simulated_client::pin(bool pins) {
  prompt of = any_prompt();
  auto build = [&](auto create) {
    return [this, of, create](builder& b) {
      auto prefix = write(b, of);
      return create(b, spaces_[of.space], prefix);
    };
  };
  if (pins)
    ask(kind::pin,
        build([](builder& b, uint32_t space, auto prefix) { return wire::CreatePin(b, space, prefix); }));
  else
    ask(kind::unpin,
        build([](builder& b, uint32_t space, auto prefix) { return wire::CreateUnpin(b, space, prefix); }));
}

void simulated_client::evict(bool moves) {
  prompt of = any_prompt();
  world_.model.removes(objects_of(of));
  auto done = [this](answer&) { world_.model.removed(); };
  if (moves)
    ask(
        kind::move,
        [&](builder& b) {
          auto prefix = write(b, of);
          return wire::CreateMove(b, spaces_[of.space], prefix, static_cast<uint8_t>(random_.between(1, 2)),
                                  deadline());
        },
        done);
  else
    ask(
        kind::evict,
        [&](builder& b) {
          auto prefix = write(b, of);
          return wire::CreateEvict(b, spaces_[of.space], prefix, static_cast<uint32_t>(random_.below(4)) * 2);
        },
        done);
}

void simulated_client::clear(bool all) {
  auto space = static_cast<uint32_t>(random_.below(world_.spaces));
  auto which = world_.model.clears(group_, all ? std::nullopt : std::optional(space));
  ask(
      kind::clear, [&](builder& b) { return wire::CreateClear(b, all ? 0 : spaces_[space]); },
      [this, which](answer& got) { world_.model.cleared(which, got.good()); });
}

void simulated_client::look_around() {
  switch (random_.below(5)) {
    case 0: ask(kind::status, [](builder& b) { return wire::CreateStatus(b); }); break;
    case 1: ask(kind::policies, [](builder& b) { return wire::CreatePolicies(b); }); break;
    case 2: ask(kind::leases, [](builder& b) { return wire::CreateLeases(b); }); break;
    case 3: ask(kind::sessions, [](builder& b) { return wire::CreateSessions(b); }); break;
    default:
      ask(
          kind::check, [](builder& b) { return wire::CreateCheck(b); },
          [this](answer& got) {
            auto table = got.good() ? protocol::parse<wire::CheckAnswer>(got.body) : fail(errc::internal, "");
            if (table && (*table)->count() != 0)
              world_.model.broke("terrace check: " + (*table)->differences()->Get(0)->str());
          });
  }
}

/// On a socket of its own, which nobody reads.
void simulated_client::be_hostile() {
  if (strange_.size() >= 2 || (!strange_.empty() && random_.coin())) {
    strange_.pop_front();
    return;
  }
  auto socket = world_.down ? unique_fd() : open_socket();
  if (!socket)
    return;
  std::vector<uint8_t> bytes;
  if (random_.below(4) != 0)
    bytes = test::hello_frame();
  for (uint64_t count = random_.between(1, 8), i = 0; i < count; ++i) {
    const auto& sample = samples()[random_.below(samples().size())];
    if (!harmless(sample.kind))
      continue;
    auto more = sample.bytes;
    uint64_t request = 100 + i;
    std::memcpy(more.data() + offsetof(protocol::frame_header, request_id), &request, sizeof request);
    for (uint64_t changes = random_.below(4); changes > 0; --changes)
      more[random_.between(protocol::header_bytes, more.size() - 1)] = static_cast<uint8_t>(random_.next());
    if (random_.below(16) == 0)
      more[random_.below(more.size())] ^= 1;
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  bytes.resize(random_.coin() ? bytes.size() : random_.below(bytes.size() + 1));
  (void) !::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  strange_.push_back(std::move(socket));
  world_.events.note({9, number_, bytes.size()});
}

} // namespace terrace::simulation
