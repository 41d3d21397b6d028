#include "tests/fuzz/verb_frames.hpp"

#include "connection/staging.hpp"
#include "tests/fuzz/sample_frames.hpp"
#include "tests/fuzz/verb_group.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace terrace::fuzz {

using builder = flatbuffers::FlatBufferBuilder;
using protocol::kind;

namespace {

constexpr uint64_t payload = verb_group::payload;
constexpr uint64_t region_objects = 8;
constexpr uint32_t chunk_tokens = 16;

const std::vector<protocol::test::sample_frame>& samples() {
  static const auto all = protocol::test::sample_frames();
  return all;
}

made_frame with_id(std::vector<uint8_t> bytes, uint64_t request, uint16_t descriptors) {
  std::memcpy(bytes.data() + offsetof(protocol::frame_header, request_id), &request, sizeof request);
  made_frame made{std::move(bytes), {}};
  if (descriptors != 0)
    made.descriptor = unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return made;
}

/// One of those, mostly; any small number otherwise.
template <class T>
T one_of(const std::vector<T>& known, uint8_t choice) {
  return known.empty() || choice >= 240 ? static_cast<T>(choice % 16) : known[choice % known.size()];
}

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> lease_in(builder& b, const shared_knowledge& shared,
                                                           uint8_t choice) {
  static const std::vector<uint8_t> unknown(16, 7);
  bool known = !shared.leases.empty() && choice < 240;
  return b.CreateVector(known ? shared.leases[choice % shared.leases.size()] : unknown);
}

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> session_in(builder& b, const shared_knowledge& shared,
                                                             uint8_t choice) {
  static const std::vector<uint8_t> unknown(16, 9);
  bool known = !shared.sessions.empty() && choice < 240;
  return b.CreateVector(known ? shared.sessions[choice % shared.sessions.size()] : unknown);
}

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> lookup_name(builder& b, uint8_t choice) {
  return b.CreateVector(std::vector<uint8_t>(16, static_cast<uint8_t>(choice % 4 + 1)));
}

/// Some chunks of a chain of 24, by their digests or as tokens.
struct chunks {
  uint32_t first = 0;
  uint32_t count = 1;
  bool tokens = false;

  explicit chunks(input_bytes& from) {
    uint8_t which = from.take();
    first = which % 16;
    count = 1 + (which >> 4) % 8;
    tokens = from.take() >= 192;
  }
  /// The whole prompt of a session, or a continuation whose digest is wrong.
  flatbuffers::Offset<wire::Prefix> write_turn(builder& b, const shared_knowledge& shared,
                                               uint8_t choice) const {
    std::vector<uint32_t> list(size_t{count} * chunk_tokens + choice % 4, first);
    auto sent = b.CreateVector(list);
    auto parent = choice % 8 == 7 ? b.CreateVector(std::vector<uint8_t>(16, choice)) : 0;
    auto session = session_in(b, shared, choice);
    return wire::CreatePrefix(b, sent, parent, choice % 8 == 7 ? choice : 0U, 0, 32, wire::DigestUnit::chunk,
                              0, 0, 0, 0, 0, session, choice % 2 == 1);
  }
  /// All of a prompt, whose last chunk may be a partial one.
  flatbuffers::Offset<wire::Prefix> write_prompt(builder& b, uint8_t choice) const {
    std::vector<uint32_t> list(size_t{count} * chunk_tokens + choice % 4, first);
    return wire::CreatePrefix(b, b.CreateVector(list), 0, 0, 0, 32, wire::DigestUnit::chunk, 0, 0, 0, 0, 0, 0,
                              true);
  }
  flatbuffers::Offset<wire::Prefix> write(builder& b) const {
    if (tokens) {
      std::vector<uint32_t> list(size_t{count} * chunk_tokens, first);
      return wire::CreatePrefix(b, b.CreateVector(list));
    }
    std::vector<uint8_t> digests(size_t{count} * 32);
    for (uint32_t i = 0; i < count; ++i)
      digests[size_t{i} * 32] = static_cast<uint8_t>(first + i + 1);
    return wire::CreatePrefix(b, 0, 0, 0, b.CreateVector(digests));
  }
};

flatbuffers::Offset<flatbuffers::Vector<const wire::Run*>> runs_of(builder& b, uint32_t objects,
                                                                   uint8_t how) {
  std::vector<wire::Run> runs;
  for (uint32_t i = 0; i < objects; ++i)
    runs.emplace_back(i % region_objects * payload, how >= 240 ? payload - how : payload, 0, 1);
  return b.CreateVectorOfStructs(runs);
}

/// Deadlines are short, absent or long.
uint32_t deadline_of(uint8_t choice) {
  return choice % 4 == 0 ? 0 : choice % 4 == 1 ? 1 + choice : 100U * choice;
}

flatbuffers::Offset<wire::Options> options_of(builder& b, uint8_t choice) {
  if (choice < 128)
    return 0;
  return wire::CreateOptions(b, choice, b.CreateString("t"), choice % 3, choice % 5, choice % 2,
                             flatbuffers::Optional<uint64_t>(uint64_t{choice} << 20));
}

flatbuffers::Offset<wire::OpenSpace> open_space_of(builder& b, uint8_t variant) {
  std::vector<flatbuffers::Offset<wire::Pool>> pools{wire::CreatePool(b, b.CreateString("kv"), payload)};
  if (variant % 8 == 5)
    pools.push_back(wire::CreatePool(b, b.CreateString("state"), 100));
  auto listed = b.CreateVector(pools);
  auto model = b.CreateString("model" + std::to_string(variant % 8)), dtype = b.CreateString("bf16"),
       layout = b.CreateString("paged");
  uint32_t ranks = variant % 8 == 6 ? 2 : 1;
  return wire::CreateOpenSpace(b, model, 0, dtype, layout, chunk_tokens, 16, ranks, listed, 0,
                               wire::HashAlgorithm::xxh3_128, 0, variant / 8 % ranks);
}

/// Sealed, so that it is mapped, or not; or shorter than it says; or sealed against writing.
unique_fd region_memory(uint8_t variant) {
  unique_fd memory(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  uint64_t bytes = region_objects * payload;
  (void) !::ftruncate(memory.get(), static_cast<off_t>(variant % 8 == 7 ? bytes / 2 : bytes));
  if (variant % 4 != 0)
    ::fcntl(memory.get(), F_ADD_SEALS, variant % 4 == 3 ? F_SEAL_SHRINK | F_SEAL_WRITE : F_SEAL_SHRINK);
  return memory;
}

} // namespace

made_frame make_request(kind verb, uint64_t request, input_bytes& from, const verb_client& client,
                        const shared_knowledge& shared) {
  protocol::frame_builder frame;
  made_frame made;
  auto finish = [&](auto table) {
    frame.finish(verb, request, table, made.descriptor ? 1 : 0);
    made.bytes.assign(frame.bytes().begin(), frame.bytes().end());
    return std::move(made);
  };
  builder& b = frame.start();
  switch (verb) {
    case kind::hello: {
      uint8_t how = from.take();
      auto name = b.CreateString("fuzz");
      auto resumes = b.CreateVector(std::vector<uint64_t>{how % 8U});
      auto boot = b.CreateVector(std::vector<uint8_t>(16, 0));
      return finish(
          wire::CreateHello(b, protocol::version + (how == 255), name, resumes, boot, how % 16 == 15));
    }
    case kind::open_space: return finish(open_space_of(b, from.take()));
    case kind::close_space: return finish(wire::CreateCloseSpace(b, one_of(client.spaces, from.take())));
    case kind::register_region:
      made.descriptor = region_memory(from.take());
      return finish(wire::CreateRegisterRegion(b, wire::RegionKind::memfd, region_objects * payload));
    case kind::unregister_region:
      return finish(wire::CreateUnregisterRegion(b, one_of(client.regions, from.take())));
    case kind::map_segment: {
      uint8_t which = from.take();
      return finish(wire::CreateMapSegment(b, which % 2 == 0 ? which / 2 : staging_segment));
    }
    case kind::lookup: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      uint8_t how = from.take();
      auto prefix = how >= 160 && how < 200 ? named.write_turn(b, shared, how - 160) : named.write(b);
      auto name = how % 4 == 3 ? lookup_name(b, how / 4) : 0;
      uint32_t deadline = deadline_of(from.take());
      auto options = options_of(b, from.take());
      return finish(
          wire::CreateLookup(b, space, prefix, how % 2 == 1, 0, deadline, options, name, how >= 200));
    }
    case kind::await_lookup: {
      auto name = lookup_name(b, from.take());
      return finish(wire::CreateAwaitLookup(b, name, deadline_of(from.take())));
    }
    case kind::announce: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      auto prefix = named.write(b);
      auto name = lookup_name(b, from.take());
      return finish(wire::CreateAnnounce(b, space, prefix, name, deadline_of(from.take())));
    }
    case kind::follow: {
      auto name = lookup_name(b, from.take());
      uint8_t count = from.take();
      return finish(wire::CreateFollow(b, name, count % 8, deadline_of(from.take())));
    }
    case kind::prefetch: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      uint8_t how = from.take();
      auto rule = static_cast<wire::StopRule>(how / 4 % 3);
      auto prefix = how % 4 < 2 ? named.write(b) : 0;
      auto lease = how % 4 == 2 ? lease_in(b, shared, from.take()) : 0;
      auto name = how % 4 == 3 ? lookup_name(b, from.take()) : 0;
      uint32_t deadline = deadline_of(from.take());
      return finish(
          wire::CreatePrefetch(b, space, prefix, lease, name, 1, rule, deadline, options_of(b, from.take())));
    }
    case kind::read_lease: {
      auto lease = lease_in(b, shared, from.take());
      uint8_t range = from.take();
      uint32_t deadline = deadline_of(from.take());
      return finish(wire::CreateReadLease(b, lease, range % 4, range / 4 % 8, deadline, 0, 0, range >= 224));
    }
    case kind::load: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      uint8_t by = from.take();
      auto region = one_of(client.regions, from.take());
      auto prefix = by % 2 == 0 ? named.write(b) : 0;
      auto lease = by % 2 == 1 ? lease_in(b, shared, by / 2) : 0;
      auto runs = runs_of(b, named.count, from.take());
      uint32_t deadline = deadline_of(from.take());
      auto options = options_of(b, from.take());
      return finish(wire::CreateLoad(b, by % 2 == 0 ? space : 0, prefix, lease, by % 2 == 1 ? by / 2 % 2U : 0,
                                     by % 2 == 1 ? named.count : 0, region, runs, 0, deadline, options));
    }
    case kind::store: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      auto region = one_of(client.regions, from.take());
      auto prefix = named.write(b);
      auto runs = runs_of(b, named.count, from.take());
      uint32_t deadline = deadline_of(from.take());
      auto options = options_of(b, from.take());
      return finish(wire::CreateStore(b, space, prefix, 0, 0, region, runs, 0, deadline, options));
    }
    case kind::reserve: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreateReserve(b, space, named.write(b), 0, 0, deadline_of(from.take())));
    }
    case kind::commit: {
      auto reservation = one_of(client.reservations, from.take());
      return finish(wire::CreateCommit(b, reservation, deadline_of(from.take())));
    }
    case kind::abort: return finish(wire::CreateAbort(b, one_of(client.reservations, from.take())));
    case kind::pin: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreatePin(b, space, named.write(b), deadline_of(from.take())));
    }
    case kind::unpin: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreateUnpin(b, space, named.write(b)));
    }
    case kind::evict: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreateEvict(b, space, named.write(b), from.take() % 16));
    }
    case kind::explain: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreateExplain(b, space, named.write(b)));
    }
    case kind::move: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      return finish(wire::CreateMove(b, space, named.write(b), 1 + from.take() % 2));
    }
    case kind::quota: {
      uint8_t which = from.take();
      if (which % 2 == 0)
        return finish(wire::CreateQuota(b));
      return finish(wire::CreateQuotaDirect(b, "tenant", which % 4 == 1 ? "host" : "disk", which * 4096));
    }
    case kind::recent_lookups: {
      bool waits = from.take() % 2 == 0;
      uint8_t after = from.take();
      return finish(wire::CreateRecentLookups(b, after, waits, deadline_of(from.take())));
    }
    case kind::remote_status: return finish(wire::CreateRemoteStatus(b));
    case kind::remote_probe: return finish(wire::CreateRemoteProbe(b, deadline_of(from.take())));
    case kind::remote_sweep: return finish(wire::CreateRemoteSweep(b, from.take() % 2 == 0, from.take()));
    case kind::revoke: return finish(wire::CreateRevoke(b, lease_in(b, shared, from.take())));
    case kind::check: return finish(wire::CreateCheck(b, deadline_of(from.take())));
    case kind::leases: return finish(wire::CreateLeases(b, from.take() % 4));
    case kind::release: return finish(wire::CreateRelease(b, lease_in(b, shared, from.take())));
    case kind::cancel: {
      uint8_t which = from.take();
      if (which % 2 == 0)
        return finish(wire::CreateCancel(b, request - std::min<uint64_t>(request, which / 2 % 8)));
      return finish(wire::CreateCancel(b, 0, lookup_name(b, which / 2)));
    }
    case kind::end_inference: {
      uint8_t which = from.take();
      return finish(wire::CreateEndInference(b, which % 3, 10, wire::FinishReason::unknown, which % 2 == 1));
    }
    case kind::open_session: {
      uint32_t space = one_of(client.spaces, from.take());
      uint8_t how = from.take();
      return finish(wire::CreateOpenSession(
          b, space, how % 16 == 15 ? wire::SessionMode::held : wire::SessionMode::tagged, how % 2 == 1));
    }
    case kind::save_session: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      auto turn = named.write_turn(b, shared, from.take());
      return finish(wire::CreateSaveSession(b, space, turn, deadline_of(from.take())));
    }
    case kind::save_prompt: {
      uint32_t space = one_of(client.spaces, from.take());
      chunks named(from);
      uint8_t choice = from.take();
      auto prompt = named.write_prompt(b, choice);
      return finish(wire::CreateSavePrompt(b, space, prompt,
                                           b.CreateVector(std::vector<uint8_t>(1U + choice, choice))));
    }
    case kind::fork_session: {
      uint32_t space = one_of(client.spaces, from.take());
      auto of = session_in(b, shared, from.take());
      return finish(wire::CreateForkSession(b, of, space, from.take()));
    }
    case kind::close_session: return finish(wire::CreateCloseSession(b, session_in(b, shared, from.take())));
    case kind::clear: {
      uint8_t which = from.take();
      uint32_t space = which % 2 == 0 ? 0 : one_of(client.spaces, which);
      made.clears_all = space == 0;
      return finish(wire::CreateClear(b, space));
    }
    case kind::set_policy: {
      static constexpr const char* policies[] = {"lru", "arc", "kmg", "sieve", "none"};
      return finish(wire::CreateSetPolicyDirect(b, "host", policies[from.take() % std::size(policies)]));
    }
    default: break;
  }
  for (const auto& sample : samples())
    if (sample.kind == verb)
      return with_id(sample.bytes, request, sample.descriptors);
  return with_id(samples().front().bytes, request, 0);
}

made_frame make_mutated(uint64_t request, input_bytes& from, kind& verb) {
  const auto& sample = samples()[from.take() % samples().size()];
  verb = sample.kind;
  made_frame made = with_id(sample.bytes, request, sample.descriptors);
  size_t body = made.bytes.size() - protocol::header_bytes;
  for (uint8_t changes = from.take() % 8; changes > 0 && body > 0; --changes) {
    size_t place = from.take();
    uint8_t value = from.take();
    made.bytes[protocol::header_bytes + place % body] = value;
  }
  return made;
}

} // namespace terrace::fuzz
