#include "cli/kv_event_publisher.hpp"

#include <zmq.hpp>

#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace terrace::cli {

namespace {

constexpr int high_water_mark = 100'000; ///< messages that wait for a slow subscriber; it misses further ones
constexpr int linger_ms = 0;
constexpr size_t number_bytes = 8;

std::array<char, number_bytes> to_bytes(uint64_t number) {
  std::array<char, number_bytes> bytes{};
  for (size_t i = 0; i < number_bytes; ++i)
    bytes[i] = static_cast<char>(number >> 8 * (number_bytes - 1 - i));
  return bytes;
}

std::optional<uint64_t> to_number(const zmq::message_t& frame) {
  if (frame.size() != number_bytes)
    return std::nullopt;
  uint64_t number = 0;
  for (size_t i = 0; i < number_bytes; ++i)
    number = number << 8 | static_cast<unsigned char>(static_cast<const char*>(frame.data())[i]);
  return number;
}

void send(zmq::socket_t& to, std::string_view frame, bool more) {
  (void) to.send(zmq::buffer(frame.data(), frame.size()),
                 more ? zmq::send_flags::sndmore : zmq::send_flags::none);
}
void send_batch(zmq::socket_t& to, std::string_view topic, uint64_t number, std::string_view batch) {
  auto bytes = to_bytes(number);
  send(to, topic, true);
  send(to, {bytes.data(), bytes.size()}, true);
  send(to, batch, false);
}

} // namespace

struct kv_event_publisher::sockets {
  zmq::context_t context;
  zmq::socket_t publisher{context, zmq::socket_type::pub};
  zmq::socket_t router{context, zmq::socket_type::router};
  std::string topic;
  std::mutex mutex;
  std::deque<std::pair<uint64_t, std::shared_ptr<const std::string>>> kept;
  size_t kept_bytes = 0;
  uint64_t next = 0;
  std::thread replays;

  /// Runs until the context ends.
  void serve_replays() {
    try {
      while (true)
        serve_replay();
    } catch (const zmq::error_t&) { // ETERM: the context has ended
    }
    router.close();
  }
  void serve_replay() {
    std::vector<zmq::message_t> request;
    do {
      request.emplace_back();
      (void) router.recv(request.back());
    } while (request.back().more() && request.size() < 4);
    while (request.back().more()) // drops frames beyond those of a request
      (void) router.recv(request.back());
    auto first = to_number(request.back());
    if (request.size() != 3 || !first)
      return;
    auto address = request.front().to_string();
    auto answer = [&](std::string_view of, uint64_t number, std::string_view batch) {
      send(router, address, true);
      send(router, {}, true);
      send_batch(router, of, number, batch);
    };
    decltype(kept) all;
    {
      std::lock_guard lock(mutex);
      all = kept;
    }
    for (const auto& [number, batch] : all)
      if (number >= *first)
        answer(topic, number, *batch);
    answer({}, UINT64_MAX, {});
  }
};

kv_event_publisher::kv_event_publisher(std::unique_ptr<sockets> bound) : sockets_(std::move(bound)) {}

kv_event_publisher::~kv_event_publisher() {
  sockets_->context.shutdown();
  if (sockets_->replays.joinable())
    sockets_->replays.join();
}

outcome<std::unique_ptr<kv_event_publisher>> kv_event_publisher::open(const publisher_options& options) {
  auto made = std::make_unique<sockets>();
  made->topic = options.topic;
  std::string endpoint = options.publish;
  try {
    made->publisher.set(zmq::sockopt::sndhwm, high_water_mark);
    made->publisher.set(zmq::sockopt::linger, linger_ms);
    made->router.set(zmq::sockopt::linger, linger_ms);
    made->publisher.bind(endpoint);
    if (!options.replay.empty()) {
      endpoint = options.replay;
      made->router.bind(endpoint);
      made->replays = std::thread([all = made.get()] { all->serve_replays(); });
    }
  } catch (const zmq::error_t& why) {
    return failed("binding " + endpoint + ": " + why.what());
  }
  return std::unique_ptr<kv_event_publisher>(new kv_event_publisher(std::move(made)));
}

void kv_event_publisher::publish(std::string batch) {
  sockets& all = *sockets_;
  uint64_t number = all.next++;
  auto kept = std::make_shared<const std::string>(std::move(batch));
  {
    std::lock_guard lock(all.mutex);
    all.kept.emplace_back(number, kept);
    all.kept_bytes += kept->size();
    while (all.kept.size() > batches_kept || (all.kept_bytes > bytes_kept && all.kept.size() > 1)) {
      all.kept_bytes -= all.kept.front().second->size();
      all.kept.pop_front();
    }
  }
  send_batch(all.publisher, all.topic, number, *kept);
}

} // namespace terrace::cli
