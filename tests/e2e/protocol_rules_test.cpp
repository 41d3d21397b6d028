// The rules of docs/protocol.md about more than one field: each row of the page's second table of bounds,
// from outside. A request that keeps to a rule is served. One that breaks it gets `bad_request` with the
// rule's reason, and the connection continues.
#include "wire_requests.hpp"
#include "workload.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

namespace terrace::e2e {
namespace protocol_rules_test {

using test::raw_client;

constexpr uint64_t region_size = mebibyte;
constexpr uint64_t staging_size = 8 * mebibyte; // staging memory of a connection of daemon_under_test

/// A request, and a part of the reason why it is refused; empty: it is served.
struct trial {
  frame_bytes frame;
  std::string refused;      ///< empty: it is not a mistake
  errc answered = errc::ok; ///< answer to a request that is not a mistake
  std::vector<int> with{};  ///< descriptors of the request
};

using texts = std::vector<std::string>;

class ProtocolRules : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client_.greet());
    space_ = opened({});
    xxh3_ = opened({.algorithm = wire::HashAlgorithm::xxh3_128});
    auto memory = client::region::create("rules", region_size);
    ASSERT_TRUE(memory);
    client_.send(
        kind::register_region, 2,
        [](FlatBufferBuilder& b) {
          return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, region_size);
        },
        memory->descriptor());
    region_ = answer().as<wire::RegisterRegionAnswer>().region();
  }

  test::received answer() {
    auto came = client_.receive();
    if (!came)
      throw std::runtime_error("the connection ended");
    return std::move(*came);
  }

  uint32_t opened(const space_fields& with) {
    client_.send(open_space(with));
    return answer().as<wire::OpenSpaceAnswer>().space();
  }

  /// Takes a lease on two chunks of `space_`.
  std::vector<uint8_t> leased() {
    client_.send(store(space_, region_, {}));
    EXPECT_EQ(answer().code(), errc::ok);
    client_.send(frame_with(kind::lookup, 2, [&](FlatBufferBuilder& b) {
      return wire::CreateLookup(b, space_, add(b, of_digests(2)), true);
    }));
    auto found = answer();
    const auto* lease = found.as<wire::LookupAnswer>().lease();
    return lease ? std::vector<uint8_t>(lease->begin(), lease->end()) : std::vector<uint8_t>();
  }

  void expect(const trial& one) {
    SCOPED_TRACE(one.refused.empty() ? "to be served" : "refused: " + one.refused);
    client_.send(one.frame, one.with);
    auto said = answer();
    EXPECT_EQ(said.id, 2U);
    if (one.refused.empty()) {
      EXPECT_EQ(said.code(), one.answered) << said.text();
    } else {
      EXPECT_EQ(said.code(), errc::bad_request);
      EXPECT_NE(said.text().find(one.refused), std::string::npos) << said.text();
    }
    if (said.kind == protocol::answer_to(kind::reserve)) {
      client_.send(kind::abort, 2, [&](FlatBufferBuilder& b) {
        return wire::CreateAbort(b, said.as<wire::ReserveAnswer>().reservation());
      });
      EXPECT_EQ(answer().code(), errc::ok);
    }
  }

  /// Keyed by the first column of the page.
  std::map<std::string, std::vector<trial>> rows();
  void add_rows_of_spaces(std::map<std::string, std::vector<trial>>& to);
  void add_rows_of_prefixes(std::map<std::string, std::vector<trial>>& to);
  void add_rows_of_transfers(std::map<std::string, std::vector<trial>>& to);
  void add_rows_of_sizes(std::map<std::string, std::vector<trial>>& to);

  daemon_under_test daemon_;
  raw_client client_{daemon_.socket()};
  client::region page_ = client::region::create("rules", 4096).value();
  uint32_t space_ = 0, xxh3_ = 0, region_ = 0;
};

constexpr auto binary = wire::TensorFormat::binary;
constexpr auto mla = wire::TensorFormat::kv_mla;
constexpr uint32_t hidden_max = 1U << 24;

void ProtocolRules::add_rows_of_spaces(std::map<std::string, std::vector<trial>>& to) {
  to["`hash_block_tokens`"] = {
      {open_space({.chunk = 32, .block = 1}), ""},
      {open_space({.chunk = 32, .block = 32}), ""},
      {open_space({.chunk = 32, .block = 0}), "hash_block_tokens of 1 to 32"},
      {open_space({.chunk = 32, .block = 64}), "hash_block_tokens of 1 to 32"},
      {open_space({.chunk = 32, .block = 12}), "a multiple of hash_block_tokens"},
  };
  to["`rank`"] = {
      {open_space({.world = 2, .rank = 1}), ""},
      {open_space({.world = 2, .rank = 2}), "rank of 0 to 1"},
  };
  auto groups = [](std::string name, uint32_t count) {
    return pool_fields{
        .name = std::move(name), .object_bytes = 0, .tensors = {{.layers = count}}, .groups = count};
  };
  to["pools of a space, including one per layer group"] = {
      {open_space({.pools = {groups("a", 64), groups("b", 64)}}), ""},
      {open_space({.pools = {groups("a", 64), groups("b", 64), {}}}), "number of pools is 129"},
      {open_space({.pools = {groups("kv", 2), {.name = "kv.1"}}}), "different names"},
  };
  to["`layers`, `hidden`, bytes of all tensors of an object"] = {
      {open_tensors({{.layers = 4096}}), ""},
      {open_tensors({{.layers = 4097}}), "layers is 4097"},
      {open_tensors({{.hidden = hidden_max}}), ""},
      {open_tensors({{.hidden = hidden_max + 1}}), "hidden is 16777217"},
      {open_tensors({{.layers = 2, .hidden = hidden_max}}), ""}, // 2 x 2 x 16 x 16 MiB
      {open_tensors({{.layers = 2, .hidden = hidden_max}, {.format = binary, .kv_size = 1}}),
       "1 to 1073741824"},
  };
  to["`first_layer` + `layers` of a tensor"] = {
      {open_tensors({{.layers = 4000, .first_layer = 96}}), ""},
      {open_tensors({{.layers = 4000, .first_layer = 97}}), "first_layer is 97"},
  };
  to["`kv_size`"] = {
      {open_tensors({{.kv_size = 1}}), ""},
      {open_tensors({{.format = mla, .kv_size = 1}}), ""},
      {open_tensors({{.kv_size = 0}}), "kv_size is 0"},
      {open_tensors({{.kv_size = 3}}), "kv_size is 3"},
      {open_tensors({{.format = mla}}), "1 for KV_MLA"},
      {open_tensors({{.format = binary}}), "1 for BINARY"},
  };
  to["`dtype` of a tensor, or of its space"] = {
      {open_tensors({{.dtype = "bfloat16"}}), ""},
      {open_tensors({{.dtype = "no such type"}}), "one of float64"},
      {open_tensors({{.format = binary, .dtype = "int4", .kv_size = 1}}), "whole bytes"},
  };
  to["`object_bytes` with tensors"] = {
      {open_tensors({{}}, 32), ""},
      {open_tensors({{}}, 33), "expected 0, or 32"},
  };
  to["`layer_groups` above 1"] = {
      {open_tensors({{.layers = 2}}, 0, 2), ""},
      {open_tensors({{.layers = 1}}, 0, 2), "at least as many as layer groups"},
      {open_space({.pools = {{.groups = 2}}}), "no tensors"},
  };
}

void ProtocolRules::add_rows_of_prefixes(std::map<std::string, std::vector<trial>>& to) {
  auto both = of_tokens(16);
  both.digests = bytes_of(32);
  to["`tokens` and `digests`"] = {
      {lookup(space_, both), "got both"},
      {lookup(space_, {}), "got neither"},
      {lookup(space_, of_tokens(16)), ""},
      {lookup(space_, of_digests(1)), ""},
  };
  auto& beside = to["`digests`"];
  beside = {
      {lookup(space_, {.digests = bytes_of(64), .width = 16}), ""},
      {lookup(space_, {.digests = bytes_of(65), .width = 16}), "no multiple"},
  };
  std::array<prefix_fields, 2> wrong;
  wrong.fill(of_digests(2));
  wrong[0].parent = bytes_of(32);
  wrong[1].items = {{0, 1}};
  for (const auto& each : wrong)
    beside.push_back({lookup(space_, each), "no parent or items"});
  auto tokens_with_ends = of_tokens(16);
  tokens_with_ends.end_offsets = {16};
  auto halves = opened({.model = "halves", .block = 8});
  auto adapted = of_digests(1), salted = of_digests(1);
  adapted.lora = "x";
  salted.salt = "x";
  for (const auto& each : {adapted, salted}) {
    beside.push_back({lookup(space_, each), ""});
    beside.push_back({lookup(halves, each), "chunks of one hash block"});
  }
  to["`end_offsets`"] = {
      {lookup(space_, ending_at({16, 32})), ""},
      {lookup(halves, ending_at({8, 16, 32}, 3)), ""},
      {lookup(space_, ending_at({16})), "one end offset a digest"},
      {lookup(space_, ending_at({16, 16})), "that rise"},
      {lookup(space_, ending_at({16, 33})), "a multiple of the hash block"},
      {lookup(halves, ending_at({8, 24})), "one for the end of each chunk"},
      {lookup(space_, tokens_with_ends), "no end_offsets beside tokens"},
  };
  to["`parent` of tokens"] = {
      {lookup(space_, after(32, 16)), ""},
      {lookup(xxh3_, after(16, 16)), ""},
      {lookup(space_, after(16, 16)), "expected 32, the width of sha256_cbor"},
      {lookup(xxh3_, after(32, 16)), "expected 16, the width of xxh3_128"},
  };
  auto digests_later = [](uint32_t parent_tokens) {
    auto made = of_digests(2);
    made.parent_tokens = parent_tokens;
    return made;
  };
  auto orphans = of_tokens(16);
  orphans.parent_tokens = 16;
  to["`parent_tokens`"] = {
      {lookup(space_, after(32, 0)), ""},
      {lookup(space_, after(32, 48)), ""},
      {lookup(space_, after(32, 47)), "a multiple of the chunk size"},
      {lookup(space_, orphans), "parent_tokens 0 without a parent"},
      {lookup(space_, digests_later(48)), ""},
      {lookup(space_, digests_later(47)), "a multiple of the chunk size"},
  };
  constexpr uint32_t end = protocol::tokens_max;
  to["items"] = {
      {lookup(space_, with_items({{0, 4}, {4, 4}})), ""},
      {lookup(space_, with_items({{end - 4, 4}})), ""},
      {lookup(space_, with_items({{0, 4}, {3, 4}})), "not before the end of the previous item"},
      {lookup(space_, with_items({{8, 4}, {0, 4}})), "not before the end of the previous item"},
      {lookup(space_, with_items({{0, 0}})), "tokens of an item"},
      {lookup(space_, with_items({{end - 4, 5}})), "end of an item"},
  };
  to["`tiers` of a `Lookup`"] = {
      {lookup(space_, of_tokens(16), {.tiers = 63}), ""},
      {lookup(space_, of_tokens(16), {.tiers = 64}), "tiers of 0 to 63"},
  };
  to["`lookup_id` of a `Lookup`"] = {
      {lookup(space_, of_tokens(16), {.id = bytes_of(16)}), ""},
      {lookup(space_, of_tokens(16), {.id = bytes_of(15)}), "lookup_id of 16 bytes"},
  };
  to["`request` and `lookup_id` of a `Cancel`"] = {
      {cancel(77), ""},
      {cancel(0, bytes_of(16)), ""},
      {cancel(0), "got neither"},
      {cancel(77, bytes_of(16)), "got both"},
      {cancel(0, bytes_of(15)), "lookup_id of 16 bytes"},
  };
  client_.send(frame_with(kind::open_session, 2, [&](FlatBufferBuilder& b) {
    return wire::CreateOpenSession(b, space_, wire::SessionMode::held);
  }));
  auto opened_session = answer();
  const auto* session = opened_session.as<wire::OpenSessionAnswer>().session();
  auto turn = of_tokens(32);
  turn.session = std::vector<uint8_t>(session->begin(), session->end());
  to["`prefix` of a `SaveSession`"] = {
      {save_session(space_, turn), ""},
      {save_session(space_, of_tokens(32)), "continues a session"},
      {save_session(space_, of_digests(2)), "continues a session"},
  };
  auto with_tail = turn;
  with_tail.tail = true;
  to["`cursors` of a `SaveSession`"] = {
      {save_session(space_, with_tail, 1), ""},
      {save_session(space_, with_tail), ""},
      {save_session(space_, turn, 1), "a tail with cursors"},
      {save_session(space_, with_tail, 2), "one for each"},
  };
  auto digests_with_tail = of_digests(2), tokens_with_tail = of_tokens(32);
  digests_with_tail.tail = tokens_with_tail.tail = true;
  to["`tail` of a `Prefix`"] = {
      {lookup(space_, with_tail), ""},
      {lookup(space_, digests_with_tail), "tokens in a prefix with a tail"},
      {lookup(space_, tokens_with_tail), "a session with a tail"},
  };
  auto continuing = after(32, 16);
  continuing.tail = true;
  to["`prefix` of a `SavePrompt`"] = {
      {save_prompt(space_, tokens_with_tail), "", errc::not_found},
      {save_prompt(space_, of_tokens(32)), "a prefix with a tail"},
      {save_prompt(space_, digests_with_tail), "tokens in a prefix with a tail"},
      {save_prompt(space_, continuing), "all of its tokens"},
  };
  to["`logits` of a `Lookup`"] = {
      {lookup(space_, tokens_with_tail, {.logits = true}), ""},
      {lookup(space_, of_tokens(32), {.logits = true}), "a prefix with a tail"},
  };
  to["`inference` of `EndInference`"] = {
      {end_inference(1), ""},
      {end_inference(0), "inference is 0"},
  };
  prefix_fields third_unit = of_digests(1);
  third_unit.unit = static_cast<wire::DigestUnit>(2);
  to["numbers of enumerations"] = {
      {end_inference(1, wire::FinishReason::aborted), ""},
      {end_inference(1, static_cast<wire::FinishReason>(5)), "reason"},
      {lookup(space_, third_unit), "digest_unit"},
      {open_space({.algorithm = static_cast<wire::HashAlgorithm>(3)}), "algorithm"},
      {open_space({.pools = {{.rule = static_cast<wire::HitRule>(2)}}}), "hit_rule"},
      {open_tensors({{.format = static_cast<wire::TensorFormat>(5)}}), "format"},
  };
}

void ProtocolRules::add_rows_of_transfers(std::map<std::string, std::vector<trial>>& to) {
  auto load_of = [&](const transfer_fields& with) { return load(space_, region_, with); };
  auto store_of = [&](const transfer_fields& with) { return store(space_, region_, with); };
  wire::Run whole(0, small_object, 0, 1), half(0, small_object / 2, 0, 1);

  auto lease = leased();
  ASSERT_FALSE(lease.empty());
  transfer_fields by_lease{.prefix = {}, .lease = lease};
  transfer_fields by_both{.lease = lease};
  to["`prefix` and `lease` of a `Load`"] = {
      {load_of({}), ""},
      {load_of(by_lease), ""},
      {load(0, region_, by_lease), ""},
      {load(xxh3_, region_, by_lease), "the lease belongs to space"},
      {load_of(by_both), "got both"},
      {load_of({.prefix = {}}), "got neither"},
  };
  prefetch_fields named{.prefix = {}, .id = bytes_of(15)};
  to["`prefix`, `lease` and `lookup_id` of a `Prefetch`"] = {
      {prefetch(space_, {}), ""},
      {prefetch(space_, {.prefix = {}, .lease = lease}), ""},
      {prefetch(space_, {.prefix = {}}), "got 0"},
      {prefetch(space_, {.lease = lease}), "got 2"},
      {prefetch(space_, named), "lookup_id of 16 bytes"},
  };
  to["`tiers` and `no_load` of a `Load` or a `Prefetch`"] = {
      {load_of({.tiers = 63, .no_load = true}), ""},
      {load_of({.tiers = 64}), "tiers of 0 to 63"},
      {load_of({.prefix = {}, .lease = lease, .no_load = false}), ""},
      {load_of({.prefix = {}, .lease = lease, .tiers = 2}), "tiers with a prefix only"},
      {load_of({.prefix = {}, .lease = lease, .no_load = true}), "no_load with a prefix only"},
      {prefetch(space_, {.tiers = 2, .no_load = true}), ""},
      {prefetch(space_, {.tiers = 64}), "tiers of 0 to 63"},
      {prefetch(space_, {.prefix = {}, .lease = lease, .tiers = 2}), "tiers with a prefix only"},
  };
  to["`rule` of a `Prefetch`"] = {
      {prefetch(space_, {.rule = wire::StopRule::deadline, .deadline_ms = 1000}), ""},
      {prefetch(space_, {.rule = wire::StopRule::deadline}), "deadline_ms with the rule deadline"},
      {prefetch(space_, {.rule = static_cast<wire::StopRule>(3)}), "rule"},
  };
  to["`first_chunk`, `chunks`"] = {
      {load_of({.first = 1, .chunks = 1, .runs = {whole}}), ""},
      {load_of({.first = 1, .chunks = 2}), "there are 2"},
      {load_of({.first = 3, .runs = {}}), "there are 2"},
      {store_of({.first = 1, .chunks = 2}), "there are 2"},
      {reserve(space_, {.first = 1, .chunks = 2}), "there are 2"},
      {load_of({.prefix = {}, .lease = lease, .first = 1, .chunks = 2}), "there are 2"},
  };
  to["runs"] = {
      {store_of({.runs = {whole, {region_size - small_object, small_object, 0, 1}}}), ""},
      {store_of({.runs = {whole, {region_size - small_object + 1, small_object, 0, 1}}}),
       "exceeds the region"},
      {store_of({.runs = {whole, {0, small_object / 4, region_size / 2, 4}}}), "exceeds the region"},
  };
  to["runs of an object"] = {
      {store_of({.runs = {whole, {0, small_object / 4, small_object, 4}}}), ""},
      {store_of({.runs = {whole, half}}), "the runs of object 1 hold 2048 bytes"},
      {store_of({.runs = {whole}}), "object 1 has no run"},
      {store_of({.runs = {whole, whole, whole}}), "the objects need 2"},
  };
  to["`offset` of `arrivals`"] = {
      {load_of({.arrivals = wire::Arrivals(region_size - 4, region_)}), ""},
      {load_of({.arrivals = wire::Arrivals(region_size - 2, region_)}), "a multiple of 4"},
      {load_of({.arrivals = wire::Arrivals(region_size, region_)}), "inside the region"},
      {prefetch(space_, {.arrivals = wire::Arrivals(0, region_)}), ""},
      {prefetch(space_, {.arrivals = wire::Arrivals(region_size, region_)}), "inside the region"},
  };
  auto generations = [&](uint32_t events, uint64_t bytes,
                         wire::RegionKind kind = wire::RegionKind::generations) {
    return frame_with(
        kind::register_region, 2,
        [&](FlatBufferBuilder& b) {
          return wire::CreateRegisterRegion(b, kind, bytes, b.CreateString("host"), 0, events);
        },
        1);
  };
  const std::vector<int> with{page_.descriptor()};
  to["`events`"] = {
      {generations(1, 68), "", errc::unsupported, with}, // the device does not support it
      {generations(1, 67), "in a region of at least 68 bytes for each", errc::ok, with},
      {generations(1, 4096, wire::RegionKind::memfd), "events only with generations", errc::ok, with},
  };
  to["`runs_per_object`"] = {
      {store_of({.runs = {whole, half, half}, .runs_per_object = {{1, 2}}}), ""},
      {store_of({.runs = {whole, half, half}, .runs_per_object = {{2, 1}}}), "the runs of object 0 hold"},
      {store_of({.runs_per_object = {{2, 0}}}), "at least one run for each object"},
      {store_of({.runs_per_object = {{1, 2}}}), "the sum of runs_per_object"},
      {store_of({.runs_per_object = {{2}}}), "1 entries for 2 objects"},
  };
}

void ProtocolRules::add_rows_of_sizes(std::map<std::string, std::vector<trial>>& to) {
  std::vector<pool_fields> sixteen(16);
  for (size_t i = 0; i < sixteen.size(); ++i)
    sixteen[i].name = std::string(1, static_cast<char>('a' + i));
  auto pools = opened({.model = "pools", .pools = sixteen});
  auto ranks = opened({.model = "ranks", .world = 1024});
  auto each = opened({.model = "each", .chunk = 1, .block = 1});
  auto tiny = opened({.model = "tiny", .pools = {{.object_bytes = 1}}});
  auto large = opened({.model = "large", .pools = {{.object_bytes = staging_size / 2 + 1}}});

  to["`pools` of a request"] = {
      {reserve(pools, {.prefix = of_digests(1), .pools = {{0, 15}}}), ""},
      {reserve(pools, {.pools = {{16}}}), "the space has 16 pools"},
      {reserve(pools, {.pools = {{1, 0}}}), "that rise"},
      {reserve(pools, {.pools = {{1, 1}}}), "that rise"},
      {reserve(pools, {.pools = std::vector<uint8_t>()}), "number of pools of 1"},
  };
  to["chunks of a prefix"] = {
      {lookup(each, of_tokens(65'536)), ""},
      {lookup(each, of_tokens(65'537)), ""},
      {prefetch(each, {.prefix = of_tokens(65'537)}), "65537 chunks"},
      {lookup(space_, of_digests(65'536, 8)), ""},
  };
  to["objects of a prefix (chunks x pools x ranks)"] = {
      {lookup(pools, of_digests(65'536, 8)), ""},
      {lookup(ranks, of_digests(1024, 8)), ""},
      {lookup(ranks, of_digests(1025, 8)), ""},
      {prefetch(ranks, {.prefix = of_digests(1025, 8)}), "objects over all pools and ranks"},
  };
  to["objects of a reservation, and their bytes in multiples of 4,096"] = {
      {reserve(tiny, {.prefix = of_digests(staging_size / 4096, 8)}), ""},
      {reserve(tiny, {.prefix = of_digests(staging_size / 4096 + 1, 8)}), "connection.staging_bytes"},
      {reserve(tiny, {.prefix = of_digests(16'384, 8)}), "connection.staging_bytes"},
      {reserve(tiny, {.prefix = of_digests(16'385, 8)}), "at most 16384 in a reservation"},
      {reserve(large, {.chunks = 1}), ""},
      {reserve(large, {}), "connection.staging_bytes"},
  };
  to["tables of a request"] = {
      {lookup(space_, with_items(protocol::items_max)), ""},
      {lookup(space_, with_items(protocol::request_tables_max)), "a well-formed FlatBuffer"},
  };
}

std::map<std::string, std::vector<trial>> ProtocolRules::rows() {
  std::map<std::string, std::vector<trial>> all;
  add_rows_of_spaces(all);
  add_rows_of_prefixes(all);
  add_rows_of_transfers(all);
  add_rows_of_sizes(all);
  return all;
}

/// Returns the first column of the page's table of rules.
texts listed_rules() {
  std::ifstream page(TERRACE_SOURCE_ROOT "/docs/protocol.md");
  texts listed;
  std::string line;
  while (std::getline(page, line) && line != "| what | bounds |") {
  }
  std::getline(page, line); // the rule
  while (std::getline(page, line) && line.starts_with("| "))
    listed.push_back(line.substr(2, line.find(" | ") - 2));
  std::sort(listed.begin(), listed.end());
  return listed;
}

TEST_F(ProtocolRules, EachOfThePageHoldsAndIsTheReasonOfARefusal) {
  auto all = rows();
  texts tried;
  for (const auto& [what, trials] : all) {
    SCOPED_TRACE(what);
    tried.push_back(what);
    for (const auto& one : trials)
      expect(one);
    auto refusals =
        std::count_if(trials.begin(), trials.end(), [](const auto& t) { return !t.refused.empty(); });
    EXPECT_GT(refusals, 0);
    EXPECT_LT(static_cast<size_t>(refusals), trials.size());
  }
  EXPECT_EQ(listed_rules(), tried);
}

TEST_F(ProtocolRules, AMistakeInARequestCostsNothingElse) {
  auto lease = leased();
  client_.send(open_space({.world = 2, .rank = 2}));
  EXPECT_EQ(answer().code(), errc::bad_request);
  expect({load(space_, region_, {.prefix = {}, .lease = lease}), ""});
}

} // namespace protocol_rules_test
} // namespace terrace::e2e
