#include "protocol/descriptors.hpp"

#include "frames.hpp"
#include "protocol/frame_decoder.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

namespace {

class Descriptors : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    sender_ = unique_fd(ends[0]);
    receiver_ = unique_fd(ends[1]);
  }

  void send(const bytes& data, std::vector<int> fds = {}) {
    outgoing_message message;
    ASSERT_EQ(::sendmsg(sender_.get(), message.prepare(data, fds), send_flags),
              static_cast<ssize_t>(data.size()));
  }

  result<void> receive(size_t most = SIZE_MAX) {
    incoming_message message;
    auto area = decoder_.write_area();
    auto got =
        ::recvmsg(receiver_.get(), message.prepare(area.first(std::min(most, area.size()))), receive_flags);
    EXPECT_GT(got, 0);
    auto taken = message.take();
    return decoder_.commit(static_cast<size_t>(got), std::move(taken), message.truncated());
  }

  unique_fd sender_, receiver_;
  frame_decoder decoder_{{}};
};

struct stat stat_of(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info;
}

} // namespace

TEST_F(Descriptors, ArriveWithTheirFrameAndCloseOnExec) {
  auto file = any_descriptor();
  send(raw_frame(kind::register_region, 1, 8, 1), {file.get()});
  ASSERT_TRUE(receive());
  auto frame = decoder_.next();
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->descriptors.size(), 1U);
  int got = frame->descriptors[0].get();
  EXPECT_NE(got, file.get());
  EXPECT_EQ(stat_of(got).st_rdev, stat_of(file.get()).st_rdev);
  EXPECT_TRUE(::fcntl(got, F_GETFD) & FD_CLOEXEC);
}

TEST_F(Descriptors, FindTheirFramesWhenManyAreQueued) {
  auto file = any_descriptor();
  for (uint64_t id = 1; id <= 9; ++id)
    if (id % 3 == 0)
      send(raw_frame(kind::register_region, id, 8 * id, 1), {file.get()});
    else
      send(raw_frame(kind::lookup, id, 8 * id));
  uint64_t expected = 1;
  while (expected <= 9) {
    ASSERT_TRUE(receive(20));
    while (auto frame = decoder_.next()) {
      EXPECT_EQ(frame->request_id, expected);
      EXPECT_EQ(frame->descriptors.size(), expected % 3 == 0 ? 1U : 0U);
      ++expected;
    }
  }
}

TEST_F(Descriptors, ReadByteByByteStillBelongToTheirFrame) {
  auto file = any_descriptor();
  auto data = raw_frame(kind::register_region, 1, 8, 1);
  send(data, {file.get()});
  for (size_t i = 0; i < data.size(); ++i)
    ASSERT_TRUE(receive(1));
  auto frame = decoder_.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->descriptors.size(), 1U);
}

TEST_F(Descriptors, MoreThanThereIsRoomForAreReportedAndClosed) {
  auto file = any_descriptor();
  auto data = raw_frame(kind::register_region, 1, 8, 1);
  // outgoing_message refuses to build this message, so the test builds it by hand.
  std::vector<int> fds(20, file.get());
  std::vector<uint8_t> control(CMSG_SPACE(fds.size() * sizeof(int)));
  iovec area{data.data(), data.size()};
  msghdr header{};
  header.msg_iov = &area;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  auto* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(item), fds.data(), fds.size() * sizeof(int));
  ASSERT_EQ(::sendmsg(sender_.get(), &header, send_flags), static_cast<ssize_t>(data.size()));

  auto next_free = any_descriptor().get();
  auto outcome = receive();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text.find("MSG_CTRUNC"), std::string::npos);
  EXPECT_EQ(any_descriptor().get(), next_free) << "a received descriptor was leaked";
}

TEST_F(Descriptors, OutOfDescriptorsIsReportedAsCutOff) {
  auto file = any_descriptor();
  send(raw_frame(kind::register_region, 1, 8, 1), {file.get()});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none{static_cast<rlim_t>(any_descriptor().get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  auto outcome = receive();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text.find("RLIMIT_NOFILE"), std::string::npos);
}

TEST(DescriptorList, ClosesWhatDoesNotFit) {
  descriptor_list list;
  for (size_t i = 0; i < descriptors_max; ++i)
    EXPECT_TRUE(list.push_back(any_descriptor()));
  auto one_more = any_descriptor();
  int number = one_more.get();
  EXPECT_FALSE(list.push_back(std::move(one_more)));
  EXPECT_FALSE(is_open(number));
}
