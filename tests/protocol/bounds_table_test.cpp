// The table of bounds, the page that lists them and the code agree.
#include "tests/protocol/bounds_table.hpp"

#include "frames.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

namespace {

using body_builder = flatbuffers::FlatBufferBuilder;

template <class T, class Build>
result<void> parsed(Build&& build) {
  body_builder body;
  body.Finish(build(body));
  auto table = parse<T>({body.GetBufferPointer(), body.GetSize()});
  if (!table)
    return tl::unexpected<error>(table.error());
  return {};
}

result<void> decoded(const bytes& frame, uint64_t frame_max, size_t descriptors = 0) {
  frame_decoder decoder({.frame_bytes_max = frame_max});
  auto area = decoder.write_area();
  std::memcpy(area.data(), frame.data(), std::min(area.size(), frame.size()));
  descriptor_list sent;
  for (size_t i = 0; i < descriptors; ++i)
    sent.push_back(any_descriptor());
  return decoder.commit(std::min(area.size(), frame.size()), std::move(sent), false);
}

std::string text_of(uint64_t bytes) { return std::string(bytes, 'x'); }
std::vector<uint8_t> bytes_of(uint64_t count) { return std::vector<uint8_t>(count, 6); }

/// A space with one field replaced.
struct space_fields {
  uint64_t model = 1, dtype = 1, layout = 1, revision = 0, salt = 0, seed = 0, chunk = 16, world = 1,
           pools = 1, name = 2, object = 4096, trailing = 1, groups = 1;
  std::optional<uint64_t> tensors{};
};
result<void> opened(const space_fields& with) {
  return parsed<wire::OpenSpace>([&](body_builder& b) {
    std::vector<flatbuffers::Offset<wire::Pool>> pools;
    for (uint64_t i = 0; i < with.pools; ++i) {
      std::vector<flatbuffers::Offset<wire::Tensor>> tensors;
      for (uint64_t t = 0; t < with.tensors.value_or(0); ++t)
        tensors.push_back(wire::CreateTensor(b, wire::TensorFormat::kv_2ltd, 0, 2, 1, 1));
      auto list = with.tensors ? b.CreateVector(tensors) : 0;
      auto name = with.name == 0 ? std::string() : text_of(with.name - 1) + static_cast<char>('a' + i);
      pools.push_back(wire::CreatePool(b, b.CreateString(name), with.object, wire::HitRule::all_chunks,
                                       static_cast<uint32_t>(with.trailing), false, list,
                                       static_cast<uint32_t>(with.groups)));
    }
    auto model = b.CreateString(text_of(with.model)), dtype = b.CreateString(text_of(with.dtype)),
         layout = b.CreateString(text_of(with.layout)), revision = b.CreateString(text_of(with.revision)),
         salt = b.CreateString(text_of(with.salt)), seed = b.CreateString(text_of(with.seed));
    auto block = static_cast<uint32_t>(with.chunk == 0 ? 0 : 1);
    return wire::CreateOpenSpace(b, model, revision, dtype, layout, static_cast<uint32_t>(with.chunk), block,
                                 static_cast<uint32_t>(with.world), b.CreateVector(pools), salt,
                                 wire::HashAlgorithm::sha256_cbor, seed, 0);
  });
}

struct prefix_fields {
  uint64_t tokens = 16;
  uint64_t lora = 0, salt = 0, items = 0, identifier = 1, tags = 0, tag = 1, trace = 0;
};
result<void> looked_up(const prefix_fields& with) {
  return parsed<wire::Lookup>([&](body_builder& b) {
    auto tokens = b.CreateVector(std::vector<uint32_t>(with.tokens, 5));
    std::vector<flatbuffers::Offset<wire::Item>> items;
    for (uint64_t i = 0; i < with.items; ++i)
      items.push_back(
          wire::CreateItem(b, b.CreateString(text_of(with.identifier)), static_cast<uint32_t>(i), 1));
    auto item_list = b.CreateVector(items);
    auto tags = b.CreateVectorOfStrings(std::vector<std::string>(with.tags, text_of(with.tag)));
    auto lora = b.CreateString(text_of(with.lora)), salt = b.CreateString(text_of(with.salt)),
         trace = b.CreateString(text_of(with.trace));
    auto prefix =
        wire::CreatePrefix(b, tokens, 0, 0, 0, 32, wire::DigestUnit::chunk, 0, lora, salt, item_list, tags);
    return wire::CreateLookup(b, 1, prefix, false, 0, 0, wire::CreateOptions(b, 128, trace));
  });
}

result<void> of_digests(uint64_t count, wire::DigestUnit unit, uint64_t width = 8) {
  return parsed<wire::Lookup>([&](body_builder& b) {
    auto list = b.CreateVector(bytes_of(count * width));
    return wire::CreateLookup(b, 1, wire::CreatePrefix(b, 0, 0, 0, list, static_cast<uint8_t>(width), unit));
  });
}

result<void> loaded(const std::vector<wire::Run>& runs, uint64_t lease = 16, uint32_t first = 0,
                    uint32_t chunks = 0) {
  return parsed<wire::Load>([&](body_builder& b) {
    b.Align(8);
    auto list = b.CreateVectorOfStructs(runs);
    auto id = b.CreateVector(bytes_of(lease));
    return wire::CreateLoad(b, 1, 0, id, first, chunks, 1, list);
  });
}

result<void> policy_set(uint64_t tier, uint64_t policy) {
  return parsed<wire::SetPolicy>([&](body_builder& b) {
    return wire::CreateSetPolicyDirect(b, text_of(tier).c_str(), text_of(policy).c_str());
  });
}

result<void> greeted(uint64_t name, uint64_t resumes) {
  return parsed<wire::Hello>([&](body_builder& b) {
    b.Align(8);
    auto list = b.CreateVector(std::vector<uint64_t>(resumes, 1));
    auto boot = b.CreateVector(bytes_of(16));
    return wire::CreateHello(b, version, b.CreateString(text_of(name)), list, boot);
  });
}

/// What the code answers to each value, by row.
using trial = std::function<result<void>(uint64_t)>;
const std::map<std::string_view, trial>& trials() {
  static const std::map<std::string_view, trial> all{
      {"length of a frame",
       [](uint64_t v) {
         return decoded(raw_header(static_cast<uint32_t>(v), kind::status), frame_bytes_max);
       }},
      {"length of a frame before the handshake",
       [](uint64_t v) {
         return decoded(raw_header(static_cast<uint32_t>(v), kind::hello), hello_bytes_max);
       }},
      {"descriptors of a frame",
       [](uint64_t v) { // the kinds allow fewer, which is the same error
         auto code = v > descriptors_max
                         ? decoded(raw_header(16, kind::status, static_cast<uint16_t>(v)), frame_bytes_max, v)
                         : result<void>();
         return code;
       }},
      {"`client_name`", [](uint64_t v) { return greeted(v, 0); }},
      {"`resumes`", [](uint64_t v) { return greeted(1, v); }},
      {"`model`", [](uint64_t v) { return opened({.model = v}); }},
      {"`dtype`", [](uint64_t v) { return opened({.dtype = v}); }},
      {"`layout`", [](uint64_t v) { return opened({.layout = v}); }},
      {"`revision`", [](uint64_t v) { return opened({.revision = v}); }},
      {"`salt` of a space", [](uint64_t v) { return opened({.salt = v}); }},
      {"`seed`", [](uint64_t v) { return opened({.seed = v}); }},
      {"`chunk_tokens`", [](uint64_t v) { return opened({.chunk = v}); }},
      {"`world_size`", [](uint64_t v) { return opened({.world = v}); }},
      {"`pools` of an `OpenSpace`, with different names", [](uint64_t v) { return opened({.pools = v}); }},
      {"`name` of a pool", [](uint64_t v) { return opened({.name = v}); }},
      {"`object_bytes` of a pool", [](uint64_t v) { return opened({.object = v}); }},
      {"`trailing`", [](uint64_t v) { return opened({.trailing = v}); }},
      {"`layer_groups`", [](uint64_t v) { return opened({.groups = v}); }},
      {"`tensors` of a pool", [](uint64_t v) { return opened({.tensors = v}); }},
      {"`tokens` of a prefix, with `parent_tokens`", [](uint64_t v) { return looked_up({.tokens = v}); }},
      {"`digest_width`, `parent`", [](uint64_t v) { return of_digests(2, wire::DigestUnit::chunk, v); }},
      {"`digests` of chunks", [](uint64_t v) { return of_digests(v, wire::DigestUnit::chunk); }},
      {"`digests` of hash blocks", [](uint64_t v) { return of_digests(v, wire::DigestUnit::hash_block); }},
      {"`lora`", [](uint64_t v) { return looked_up({.lora = v}); }},
      {"`salt` of a prefix", [](uint64_t v) { return looked_up({.salt = v}); }},
      {"`items`", [](uint64_t v) { return looked_up({.tokens = 8192, .items = v}); }},
      {"`identifier` of an item", [](uint64_t v) { return looked_up({.items = 1, .identifier = v}); }},
      {"`tags`", [](uint64_t v) { return looked_up({.tags = v}); }},
      {"a tag", [](uint64_t v) { return looked_up({.tags = 1, .tag = v}); }},
      {"`first_chunk` + `chunks`",
       [](uint64_t v) {
         return loaded({}, 16, static_cast<uint32_t>(v / 2), static_cast<uint32_t>(v - v / 2));
       }},
      {"pieces of all runs",
       [](uint64_t v) {
         return loaded(v == 0 ? std::vector<wire::Run>() : std::vector<wire::Run>{{0, 1, 1, v}});
       }},
      {"`bytes` of a run",
       [](uint64_t v) {
         return loaded({{0, v, 0, 1}});
       }},
      {"`events` of a region",
       [](uint64_t v) {
         return parsed<wire::RegisterRegion>([&](body_builder& b) {
           return wire::CreateRegisterRegionDirect(b, wire::RegionKind::generations, 1 << 20, "host", nullptr,
                                                   static_cast<uint32_t>(v));
         });
       }},
      {"`bytes` of a region",
       [](uint64_t v) {
         return parsed<wire::RegisterRegion>(
             [&](body_builder& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, v); });
       }},
      {"`trace`", [](uint64_t v) { return looked_up({.trace = v}); }},
      {"`lease`", [](uint64_t v) { return loaded({}, v); }},
      {"`lookup_id` of `AwaitLookup`",
       [](uint64_t v) {
         return parsed<wire::AwaitLookup>(
             [&](body_builder& b) { return wire::CreateAwaitLookup(b, b.CreateVector(bytes_of(v))); });
       }},
      {"`name` of `Announce`",
       [](uint64_t v) {
         return parsed<wire::Announce>([&](body_builder& b) {
           auto tokens = b.CreateVector(std::vector<uint32_t>{7});
           auto prefix = wire::CreatePrefix(b, tokens);
           return wire::CreateAnnounce(b, 1, prefix, b.CreateVector(bytes_of(v)));
         });
       }},
      {"`name` of `Follow`",
       [](uint64_t v) {
         return parsed<wire::Follow>(
             [&](body_builder& b) { return wire::CreateFollow(b, b.CreateVector(bytes_of(v))); });
       }},
      {"`tier` of `SetPolicy`", [](uint64_t v) { return policy_set(v, 1); }},
      {"`policy` of `SetPolicy`", [](uint64_t v) { return policy_set(1, v); }},
  };
  return all;
}

std::string with_commas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string row_of(const bound& row) {
  std::string range = with_commas(row.least);
  if (row.most != row.least)
    range += " to " + with_commas(row.most);
  return "| " + std::string(row.text) + " | " + range +
         (row.unit.empty() ? "" : " " + std::string(row.unit)) + " | " +
         (row.beyond == consequence::ends ? "the connection ends" : "`bad_request`") + " |";
}

} // namespace

TEST(BoundsTable, IsThatOfThePage) {
  std::ifstream file(PROTOCOL_PAGE);
  ASSERT_TRUE(file);
  std::vector<std::string> listed;
  std::string line;
  while (std::getline(file, line) && line != "| what | bounds | beyond |") {
  }
  std::getline(file, line); // skips the rule below the header
  while (std::getline(file, line) && line.starts_with("|"))
    listed.push_back(line);
  std::vector<std::string> expected;
  for (const bound& row : bounds_table)
    expected.push_back(row_of(row));
  EXPECT_EQ(listed, expected);
}

TEST(BoundsTable, EveryRowHoldsAtItsBoundsAndNotBeyond) {
  for (const bound& row : bounds_table) {
    SCOPED_TRACE(row.text);
    auto found = trials().find(row.text);
    ASSERT_NE(found, trials().end());
    const trial& of = found->second;
    for (uint64_t fine : {row.least, row.most}) {
      auto said = of(fine);
      EXPECT_TRUE(said) << fine << ": " << said.error().text;
    }
    uint64_t step = row.text.starts_with("length") ? frame_alignment : 1;
    auto beyond = of(row.most + step);
    ASSERT_FALSE(beyond) << row.most + step;
    EXPECT_EQ(beyond.error().code, errc::bad_request);
    if (row.least > 0) {
      auto below = of(row.least - (row.least >= step ? step : 1));
      EXPECT_FALSE(below) << "below " << row.least;
    }
  }
}
