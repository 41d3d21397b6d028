#include "protocol/frame_decoder.hpp"

#include "frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

namespace {

struct seen {
  protocol::kind kind;
  uint64_t id;
  bytes body;
  std::vector<unique_fd> descriptors;
};

/// Feeds `input` as far as the write area allows, at most `piece` bytes at a time, and keeps the frames that come out.
result<void> feed(frame_decoder& decoder, std::span<const uint8_t> input, std::vector<seen>& out,
                  size_t piece = SIZE_MAX, descriptor_list with_first = {}) {
  bool first = true;
  while (!input.empty() || first) {
    auto area = decoder.write_area();
    EXPECT_FALSE(area.empty());
    size_t size = std::min({piece, input.size(), area.size()});
    std::copy_n(input.begin(), size, area.begin());
    input = input.subspan(size);
    auto ok = decoder.commit(size, first ? std::move(with_first) : descriptor_list{}, false);
    first = false;
    while (auto next = decoder.next()) {
      seen item{next->kind, next->request_id, {next->body.begin(), next->body.end()}, {}};
      EXPECT_EQ(reinterpret_cast<uintptr_t>(next->body.data()) % 8, 0U);
      for (size_t i = 0; i < next->descriptors.size(); ++i)
        item.descriptors.push_back(std::move(next->descriptors[i]));
      out.push_back(std::move(item));
    }
    if (!ok)
      return ok;
  }
  return {};
}

result<void> feed(frame_decoder& decoder, const bytes& input) {
  std::vector<seen> out;
  return feed(decoder, input, out);
}

descriptor_list descriptors(size_t count) {
  descriptor_list list;
  for (size_t i = 0; i < count; ++i)
    list.push_back(any_descriptor());
  return list;
}

void expect_refused(const result<void>& outcome, const std::string& because) {
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errc::bad_request);
  EXPECT_NE(outcome.error().text.find(because), std::string::npos) << outcome.error().text;
}

} // namespace

TEST(FrameDecoder, ShowsTheHeaderOfTheNextFrameBeforeItIsComplete) {
  bytes input = raw_frame(kind::lookup, 2, 64);
  frame_decoder decoder({});
  EXPECT_FALSE(decoder.peek());
  auto put = [&](size_t from, size_t to) {
    auto area = decoder.write_area();
    std::copy(input.begin() + static_cast<ptrdiff_t>(from), input.begin() + static_cast<ptrdiff_t>(to),
              area.begin());
    ASSERT_TRUE(decoder.commit(to - from, {}, false));
  };
  put(0, header_bytes - 1);
  EXPECT_FALSE(decoder.peek());
  put(header_bytes - 1, header_bytes);
  ASSERT_TRUE(decoder.peek());
  EXPECT_EQ(decoder.peek()->kind, kind::lookup);
  EXPECT_EQ(decoder.peek()->length, input.size());
  EXPECT_FALSE(decoder.next());
  put(header_bytes, input.size());
  EXPECT_TRUE(decoder.next());
  EXPECT_FALSE(decoder.peek());
}

TEST(FrameDecoder, ABufferThatWasHeldServesAgainOnceNobodyHoldsIt) {
  frame_decoder decoder({});
  auto* first = decoder.write_area().data();
  auto held = decoder.hold();
  auto* second = decoder.write_area().data();
  EXPECT_NE(first, second) << "a held one is not written to";
  auto held_too = decoder.hold();
  auto* third = decoder.write_area().data();
  EXPECT_NE(third, first) << "it is still held";
  held_too = nullptr;
  held = decoder.hold();
  EXPECT_EQ(decoder.write_area().data(), second);
}

TEST(FrameDecoder, LargeBuffersAreDisposedOfElsewhereOnceNobodyHoldsThem) {
  int disposed = 0;
  frame_decoder decoder({.dispose = [&](uint64_t* buffer) {
    ++disposed;
    delete[] buffer;
  }});
  auto receive = [&](const bytes& input) {
    for (size_t done = 0; done < input.size();) {
      auto area = decoder.write_area();
      size_t part = std::min(area.size(), input.size() - done);
      std::copy_n(input.begin() + static_cast<ptrdiff_t>(done), part, area.begin());
      ASSERT_TRUE(decoder.commit(part, {}, false));
      done += part;
    }
    ASSERT_TRUE(decoder.next());
  };
  bytes large = raw_frame(kind::lookup, 2, frame_decoder::large_bytes),
        small = raw_frame(kind::lookup, 3, 64);
  receive(large);
  auto held = decoder.hold();
  receive(small);
  EXPECT_EQ(disposed, 0) << "it is held";
  held.reset();
  EXPECT_EQ(disposed, 1);
  receive(large);
  receive(small);
  EXPECT_EQ(disposed, 2) << "nobody held it";
}

TEST(FrameDecoder, YieldsFramesHoweverTheyAreSplit) {
  bytes input = hello_frame("split me");
  input += raw_frame(kind::lookup, 2, 64);
  input += raw_frame(kind::release, 3, 8);
  for (size_t piece = 1; piece <= input.size(); ++piece) {
    frame_decoder decoder({});
    std::vector<seen> out;
    ASSERT_TRUE(feed(decoder, input, out, piece)) << "pieces of " << piece;
    ASSERT_EQ(out.size(), 3U) << "pieces of " << piece;
    EXPECT_EQ(out[0].kind, kind::hello);
    EXPECT_EQ(out[1].body, bytes(64, 2));
    EXPECT_EQ(out[2].id, 3U);
    EXPECT_EQ(decoder.pending_bytes(), 0U);
  }
}

TEST(FrameDecoder, YieldsFramesThatAreCutAtEachByte) {
  bytes input = raw_frame(kind::lookup, 2, 40);
  input += raw_frame(kind::commit, 3, 16);
  for (size_t cut = 1; cut < input.size(); ++cut) {
    frame_decoder decoder({});
    std::vector<seen> out;
    ASSERT_TRUE(feed(decoder, std::span(input).first(cut), out));
    ASSERT_TRUE(feed(decoder, std::span(input).subspan(cut), out));
    ASSERT_EQ(out.size(), 2U) << "cut at " << cut;
    EXPECT_EQ(out[0].body, bytes(40, 2));
    EXPECT_EQ(out[1].body, bytes(16, 3));
  }
}

TEST(FrameDecoder, RandomFramesInRandomPiecesComeOutWhole) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  bytes input;
  std::vector<std::pair<uint64_t, size_t>> sent;
  for (uint64_t id = 0; id < 400; ++id) {
    size_t size = 8 * (random() % (random() % 20 == 0 ? 6000 : 40));
    input += raw_frame(kind::status, id, size);
    sent.emplace_back(id, size);
  }
  frame_decoder decoder({.idle_bytes = 256});
  std::vector<seen> out;
  for (size_t at = 0; at < input.size();) {
    size_t size = std::min<size_t>(input.size() - at, 1 + random() % 9000);
    ASSERT_TRUE(feed(decoder, std::span(input).subspan(at, size), out, 1 + random() % 3000));
    at += size;
  }
  ASSERT_EQ(out.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(out[i].id, sent[i].first);
    EXPECT_EQ(out[i].body, bytes(sent[i].second, static_cast<uint8_t>(sent[i].first)));
  }
}

TEST(FrameDecoder, FramesMayWaitInItWhileMoreArrives) {
  frame_decoder decoder({.idle_bytes = 64});
  for (uint64_t id = 1; id <= 20; ++id) { // nobody calls next(): the reader is out of credits
    auto input = raw_frame(kind::status, id, 24);
    std::span<const uint8_t> rest(input);
    while (!rest.empty()) {
      auto area = decoder.write_area();
      size_t size = std::min(area.size(), rest.size());
      std::copy_n(rest.begin(), size, area.begin());
      rest = rest.subspan(size);
      ASSERT_TRUE(decoder.commit(size, {}, false));
    }
  }
  for (uint64_t id = 1; id <= 20; ++id) {
    auto next = decoder.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->request_id, id);
    EXPECT_EQ(next->body[23], id);
  }
  EXPECT_FALSE(decoder.next());
}

TEST(FrameDecoder, GrowsToAnAnnouncedLengthAndShrinksWhenItIsRead) {
  frame_decoder decoder({.idle_bytes = 4096});
  std::vector<seen> out;
  auto large = raw_frame(kind::lookup, 1, 1 << 20);
  ASSERT_TRUE(feed(decoder, std::span(large).first(100), out));
  EXPECT_EQ(decoder.write_area().size(), large.size() - 100);
  ASSERT_TRUE(feed(decoder, std::span(large).subspan(100), out));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].body.size(), 1U << 20);
  decoder.write_area();
  EXPECT_EQ(decoder.capacity(), 4096U);
}

TEST(FrameDecoder, AnIdleConnectionReusesItsBuffer) {
  frame_decoder decoder({});
  auto* before = decoder.write_area().data();
  std::vector<seen> out;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(feed(decoder, raw_frame(kind::lookup, 1, 4096), out));
  EXPECT_EQ(decoder.write_area().data(), before);
}

TEST(FrameDecoder, HeldBodiesOutliveTheNextReceive) {
  frame_decoder decoder({});
  auto first = raw_frame(kind::lookup, 1, 64);
  auto area = decoder.write_area();
  std::copy(first.begin(), first.end(), area.begin());
  ASSERT_TRUE(decoder.commit(first.size(), {}, false));
  auto frame = decoder.next();
  ASSERT_TRUE(frame);
  auto hold = decoder.hold();
  std::vector<seen> out;
  for (uint64_t id = 2; id < 10; ++id)
    ASSERT_TRUE(feed(decoder, raw_frame(kind::lookup, id, 64), out));
  EXPECT_EQ(bytes(frame->body.begin(), frame->body.end()), bytes(64, 1));
  EXPECT_EQ(out.size(), 8U);
}

TEST(FrameDecoder, RefusesALengthBelowTheHeader) {
  for (uint32_t length : {0U, 8U, 15U}) {
    frame_decoder decoder({});
    expect_refused(feed(decoder, raw_header(length, kind::lookup)),
                   "expected a frame length of 16 to 16777216");
  }
}

TEST(FrameDecoder, RefusesALengthAboveTheBoundWithoutAllocatingIt) {
  frame_decoder decoder({});
  expect_refused(feed(decoder, raw_header(frame_bytes_max + 8, kind::lookup)), "expected a frame length");
  EXPECT_EQ(decoder.capacity(), 16U << 10);
  frame_decoder before_hello({.frame_bytes_max = hello_bytes_max});
  expect_refused(feed(before_hello, raw_header(hello_bytes_max + 8, kind::hello)), "16 to 65536");
}

TEST(FrameDecoder, TheBoundCanRiseAfterTheHandshake) {
  frame_decoder decoder({.frame_bytes_max = hello_bytes_max});
  std::vector<seen> out;
  ASSERT_TRUE(feed(decoder, hello_frame("demo"), out));
  decoder.set_frame_bytes_max(frame_bytes_max);
  EXPECT_TRUE(feed(decoder, raw_frame(kind::lookup, 1, 1 << 20), out));
}

TEST(FrameDecoder, RefusesALengthThatIsNotAMultipleOfEight) {
  frame_decoder decoder({});
  expect_refused(feed(decoder, raw_header(28, kind::lookup)), "multiple of 8");
}

TEST(FrameDecoder, RefusesUnknownKindsAndThoseOfTheOtherDirection) {
  for (uint16_t number : {uint16_t{0}, uint16_t{99}, uint16_t{0x8006}, uint16_t{0x7fff}}) {
    frame_decoder decoder({});
    expect_refused(feed(decoder, raw_header(16, static_cast<kind>(number))),
                   "expected the kind of a request");
  }
  frame_decoder client({.accepts = direction::answers});
  expect_refused(feed(client, raw_header(16, kind::lookup)), "expected the kind of an answer");
}

TEST(FrameDecoder, RefusesMoreThanEightDescriptors) {
  frame_decoder decoder({});
  expect_refused(feed(decoder, raw_header(16, kind::register_region, 9)), "at most 8");
}

TEST(FrameDecoder, RefusesDescriptorsOnAKindThatTakesNone) {
  frame_decoder decoder({});
  std::vector<seen> out;
  expect_refused(feed(decoder, raw_frame(kind::lookup, 1, 8, 1), out, SIZE_MAX, descriptors(1)), "at most 0");
}

TEST(FrameDecoder, FramesBeforeABrokenOneStillCome) {
  frame_decoder decoder({});
  std::vector<seen> out;
  auto input = raw_frame(kind::lookup, 1, 8);
  input += raw_header(17, kind::lookup);
  expect_refused(feed(decoder, input, out), "multiple of 8");
  EXPECT_EQ(out.size(), 1U);
}

TEST(FrameDecoder, AnErrorIsFinal) {
  frame_decoder decoder({});
  std::vector<seen> out;
  expect_refused(feed(decoder, raw_header(17, kind::lookup)), "multiple of 8");
  expect_refused(feed(decoder, raw_frame(kind::lookup, 1, 8), out), "multiple of 8");
  EXPECT_TRUE(out.empty());
}

TEST(FrameDecoder, AFrameTakesItsDescriptorsInOrder) {
  frame_decoder decoder({});
  std::vector<seen> out;
  auto first = descriptors(1);
  int number = first[0].get();
  ASSERT_TRUE(feed(decoder, raw_frame(kind::register_region, 1, 8, 1), out, SIZE_MAX, std::move(first)));
  ASSERT_TRUE(feed(decoder, raw_frame(kind::register_region, 2, 8, 1), out, SIZE_MAX, descriptors(1)));
  ASSERT_EQ(out.size(), 2U);
  ASSERT_EQ(out[0].descriptors.size(), 1U);
  EXPECT_EQ(out[0].descriptors[0].get(), number);
  EXPECT_TRUE(is_open(number));
  EXPECT_EQ(out[1].descriptors.size(), 1U);
}

TEST(FrameDecoder, DescriptorsMayComeWithTheFirstByteOfASplitHeader) {
  auto input = raw_frame(kind::register_region, 1, 24, 1);
  for (size_t cut = 1; cut < input.size(); ++cut) {
    frame_decoder decoder({});
    std::vector<seen> out;
    ASSERT_TRUE(feed(decoder, std::span(input).first(cut), out, SIZE_MAX, descriptors(1)));
    ASSERT_TRUE(feed(decoder, std::span(input).subspan(cut), out));
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].descriptors.size(), 1U);
  }
}

TEST(FrameDecoder, RefusesAndClosesSurplusDescriptors) {
  frame_decoder decoder({});
  std::vector<seen> out;
  auto two = descriptors(2);
  int surplus = two[1].get();
  expect_refused(feed(decoder, raw_frame(kind::register_region, 1, 8, 1), out, SIZE_MAX, std::move(two)),
                 "got 1 more");
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].descriptors.size(), 1U);
  EXPECT_FALSE(is_open(surplus));
}

TEST(FrameDecoder, RefusesDescriptorsInTheMiddleOfAFrame) {
  frame_decoder decoder({});
  std::vector<seen> out;
  auto input = raw_frame(kind::lookup, 1, 64);
  ASSERT_TRUE(feed(decoder, std::span(input).first(32), out));
  expect_refused(feed(decoder, std::span(input).subspan(32), out, SIZE_MAX, descriptors(1)), "got 1 more");
}

TEST(FrameDecoder, RefusesAFrameWhoseDescriptorsDidNotCome) {
  frame_decoder decoder({});
  std::vector<seen> out;
  expect_refused(feed(decoder, raw_frame(kind::register_region, 1, 8, 1), out),
                 "with the frame's first byte");
  EXPECT_TRUE(out.empty());
}

TEST(FrameDecoder, RefusesDescriptorsThatTheKernelCutOff) {
  frame_decoder decoder({});
  auto input = raw_frame(kind::register_region, 1, 8, 1);
  auto area = decoder.write_area();
  std::copy(input.begin(), input.end(), area.begin());
  expect_refused(decoder.commit(input.size(), descriptors(1), true), "MSG_CTRUNC");
  EXPECT_FALSE(decoder.next());
}

TEST(FrameDecoder, ClosesDescriptorsThatNobodyTook) {
  int number;
  {
    frame_decoder decoder({});
    auto one = descriptors(1);
    number = one[0].get();
    auto input = raw_frame(kind::register_region, 1, 8, 1);
    auto area = decoder.write_area();
    std::copy(input.begin(), input.end(), area.begin());
    ASSERT_TRUE(decoder.commit(input.size(), std::move(one), false));
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}
