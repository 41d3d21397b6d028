#include "tests/fuzz/sample_frames.hpp"

#include "protocol/terrace_generated.h"

#include <string>

namespace terrace::protocol::test {

std::vector<sample_frame> sample_frames() {
  using builder = flatbuffers::FlatBufferBuilder;
  std::vector<sample_frame> all;
  auto sample = [&](kind what, auto&& build, uint16_t descriptors = 0) {
    frame_builder frame;
    frame.finish(what, 1, build(frame.start()), descriptors);
    all.push_back({what, descriptors, {frame.bytes().begin(), frame.bytes().end()}});
  };
  std::vector<uint8_t> id(16, 7), digests(64, 9);
  std::vector<uint32_t> tokens(20, 5);
  std::vector<wire::Run> runs{{0, 64, 0, 1}, {64, 8, 16, 3}};
  std::vector<wire::Location> places{{4096, 64, 1, 0}};
  auto by_tokens = [&](builder& b) {
    auto items = b.CreateVector(std::vector{wire::CreateItem(b, b.CreateString("image"), 1, 3)});
    auto tags = b.CreateVectorOfStrings({"tag"});
    auto lora = b.CreateString("adapter");
    auto parent = b.CreateVector(digests.data(), 32);
    return wire::CreatePrefix(b, b.CreateVector(tokens), parent, 256, 0, 32, wire::DigestUnit::chunk, 0, lora,
                              0, items, tags);
  };
  auto by_digests = [&](builder& b) {
    auto ends = b.CreateVector(std::vector<uint32_t>{100, 200});
    return wire::CreatePrefix(b, 0, 0, 0, b.CreateVector(digests), 32, wire::DigestUnit::chunk, ends);
  };
  sample(kind::hello, [&](builder& b) {
    auto name = b.CreateString("demo");
    auto resumes = b.CreateVector(std::vector<uint64_t>{3});
    return wire::CreateHello(b, version, name, resumes, b.CreateVector(id));
  });
  sample(kind::open_space, [&](builder& b) {
    auto pools = b.CreateVector(std::vector{wire::CreatePool(b, b.CreateString("kv"), 4096)});
    auto model = b.CreateString("model"), dtype = b.CreateString("bf16"), layout = b.CreateString("paged");
    return wire::CreateOpenSpace(b, model, 0, dtype, layout, 256, 16, 1, pools);
  });
  sample(
      kind::register_region,
      [](builder& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, 4096); }, 1);
  sample(
      kind::register_region,
      [&](builder& b) {
        std::vector<uint8_t> handle(64, 7);
        return wire::CreateRegisterRegionDirect(b, wire::RegionKind::cuda_ipc, 4096, "host", &handle);
      },
      1);
  sample(
      kind::register_region,
      [](builder& b) {
        return wire::CreateRegisterRegionDirect(b, wire::RegionKind::generations, 4096, "host");
      },
      1);
  sample(kind::unregister_region, [](builder& b) { return wire::CreateUnregisterRegion(b, 1); });
  sample(kind::map_segment, [](builder& b) { return wire::CreateMapSegment(b, 1); });
  sample(kind::bell, [](builder& b) { return wire::CreateBell(b); });
  sample(kind::lookup, [&](builder& b) { return wire::CreateLookup(b, 1, by_digests(b), true, 2, 100); });
  sample(kind::read_lease, [&](builder& b) { return wire::CreateReadLease(b, b.CreateVector(id), 0, 2); });
  sample(kind::load, [&](builder& b) {
    auto lease = b.CreateVector(id);
    return wire::CreateLoad(b, 1, 0, lease, 0, 2, 1, b.CreateVectorOfStructs(runs));
  });
  sample(kind::store, [&](builder& b) {
    auto prefix = by_tokens(b);
    auto counts = b.CreateVector(std::vector<uint32_t>{1, 1});
    return wire::CreateStore(b, 1, prefix, 0, 2, 1, b.CreateVectorOfStructs(runs), counts);
  });
  sample(kind::reserve, [&](builder& b) { return wire::CreateReserve(b, 1, by_tokens(b), 0, 1); });
  sample(kind::commit, [](builder& b) { return wire::CreateCommit(b, 1); });
  sample(kind::abort, [](builder& b) { return wire::CreateAbort(b, 1); });
  sample(kind::release, [&](builder& b) { return wire::CreateRelease(b, b.CreateVector(id)); });
  sample(kind::cancel, [](builder& b) { return wire::CreateCancel(b, 1); });
  sample(kind::await_lookup, [&](builder& b) { return wire::CreateAwaitLookup(b, b.CreateVector(id), 5); });
  sample(kind::announce, [&](builder& b) {
    auto prefix = by_digests(b);
    return wire::CreateAnnounce(b, 1, prefix, b.CreateVector(id), 5);
  });
  sample(kind::follow, [&](builder& b) { return wire::CreateFollow(b, b.CreateVector(id), 1, 5); });
  sample(kind::prefetch, [&](builder& b) {
    return wire::CreatePrefetch(b, 1, by_digests(b), 0, 0, 1, wire::StopRule::deadline, 100);
  });
  sample(kind::end_inference, [](builder& b) {
    return wire::CreateEndInference(b, 7, 120, wire::FinishReason::tool_call, false, 500);
  });
  sample(kind::clear, [](builder& b) { return wire::CreateClear(b, 3); });
  sample(kind::close_space, [](builder& b) { return wire::CreateCloseSpace(b, 1); });
  sample(kind::open_session, [&](builder& b) {
    auto parent = b.CreateVector(digests.data(), 32);
    return wire::CreateOpenSession(b, 1, wire::SessionMode::tagged, true, parent, b.CreateString("adapter"));
  });
  sample(kind::save_session, [&](builder& b) {
    auto turn = wire::CreatePrefix(b, b.CreateVector(tokens), 0, 0, 0, 32, wire::DigestUnit::chunk, 0, 0, 0,
                                   0, 0, b.CreateVector(id), true);
    return wire::CreateSaveSession(b, 1, turn, 100, 0, b.CreateVector(std::vector<uint64_t>{7}));
  });
  sample(kind::save_prompt, [&](builder& b) {
    auto turn = wire::CreatePrefix(b, b.CreateVector(tokens), 0, 0, 0, 32, wire::DigestUnit::chunk, 0, 0, 0,
                                   0, 0, 0, true);
    return wire::CreateSavePrompt(b, 1, turn, b.CreateVector(std::vector<uint8_t>(64, 3)),
                                  b.CreateVector(std::vector<uint64_t>{7}), 100);
  });
  sample(kind::fork_session,
         [&](builder& b) { return wire::CreateForkSession(b, b.CreateVector(id), 1, 100); });
  sample(kind::close_session, [&](builder& b) { return wire::CreateCloseSession(b, b.CreateVector(id)); });
  sample(kind::sessions, [](builder& b) { return wire::CreateSessions(b); });
  sample(kind::leases, [](builder& b) { return wire::CreateLeases(b, 3); });
  sample(kind::check, [](builder& b) { return wire::CreateCheck(b, 100); });
  sample(kind::revoke, [&](builder& b) { return wire::CreateRevoke(b, b.CreateVector(id)); });
  sample(kind::set_log_level, [](builder& b) { return wire::CreateSetLogLevelDirect(b, "debug"); });
  sample(kind::shutdown, [](builder& b) { return wire::CreateShutdown(b, true); });
  sample(kind::pin, [&](builder& b) { return wire::CreatePin(b, 1, by_digests(b), 100); });
  sample(kind::unpin, [&](builder& b) { return wire::CreateUnpin(b, 1, by_tokens(b)); });
  sample(kind::evict, [&](builder& b) { return wire::CreateEvict(b, 1, by_digests(b), 2); });
  sample(kind::explain, [&](builder& b) { return wire::CreateExplain(b, 1, by_digests(b), 100); });
  sample(kind::recent_lookups, [](builder& b) { return wire::CreateRecentLookups(b, 1, true, 100); });
  sample(kind::move, [&](builder& b) { return wire::CreateMove(b, 1, by_digests(b), 2); });
  sample(kind::quota, [](builder& b) { return wire::CreateQuotaDirect(b, "batch", "host", 1 << 20); });
  sample(kind::policies, [](builder& b) { return wire::CreatePolicies(b); });
  sample(kind::set_policy, [](builder& b) { return wire::CreateSetPolicyDirect(b, "host", "arc"); });
  sample(kind::subscribe, [](builder& b) { return wire::CreateSubscribe(b, 0, 255, 0, 100, 1); });
  sample(kind::remote_status, [](builder& b) { return wire::CreateRemoteStatus(b); });
  sample(kind::remote_probe, [](builder& b) { return wire::CreateRemoteProbe(b, 100); });
  sample(kind::remote_sweep, [](builder& b) { return wire::CreateRemoteSweep(b, true, 1'000, 100); });
  sample(kind::status, [](builder& b) { return wire::CreateStatus(b); });
  sample(kind::error, [](builder& b) { return wire::CreateError(b, 7, b.CreateString("text")); });
  sample(answer_to(kind::lookup), [&](builder& b) {
    auto tiers = b.CreateVector(std::vector<uint8_t>{1, 1});
    return wire::CreateLookupAnswer(b, 4, 2, 512, 512, tiers, b.CreateVector(id));
  });
  sample(answer_to(kind::read_lease),
         [&](builder& b) { return wire::CreateReadLeaseAnswer(b, b.CreateVectorOfStructs(places)); });
  return all;
}

} // namespace terrace::protocol::test
