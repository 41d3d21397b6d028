#include "actors/gpu/packet_socket.hpp"

#include <caf/actor_cast.hpp>

#include <cassert>

namespace terrace::actors {

packet_socket::packet_socket(std::shared_ptr<unique_fd> socket, runtime::io_port& port,
                             caf::strong_actor_ptr owner)
    : socket_(std::move(socket)), port_(port), owner_(std::move(owner)), in_(std::make_shared<incoming>()) {
  in_->socket = socket_;
  in_->bytes.resize(gpu::process_message_bytes_max);
}

void packet_socket::receive() {
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = socket_->get();
  request.message = in_->message.prepare(in_->bytes);
  request.flags = protocol::receive_flags;
  request.keep_alive = in_;
  port_.submit(std::move(request), owner_, receive_tag);
}

std::optional<result<process_packet>> packet_socket::received(int32_t bytes) {
  if (bytes <= 0)
    return std::nullopt;
  auto descriptors = in_->message.take();
  auto message = gpu::decode_process_message(std::span(in_->bytes).first(static_cast<size_t>(bytes)));
  if (!message)
    return tl::unexpected(message.error());
  process_packet packet{std::move(*message), nullptr};
  if (!descriptors.empty())
    packet.descriptor = std::make_shared<unique_fd>(std::move(descriptors[0]));
  return packet;
}

void packet_socket::send(process_packet packet) {
  line_.push_back(std::move(packet));
  if (!out_)
    send_next();
}

bool packet_socket::sent(int32_t bytes) {
  assert(out_);
  bool whole = bytes >= 0 && static_cast<size_t>(bytes) == out_->bytes.size();
  out_.reset();
  if (whole && !line_.empty())
    send_next();
  return whole;
}

void packet_socket::send_next() {
  out_ = std::make_shared<outgoing>();
  out_->socket = socket_;
  out_->bytes = gpu::encode(line_.front().message);
  out_->descriptor = std::move(line_.front().descriptor);
  line_.pop_front();
  runtime::io_request request;
  request.code = runtime::io_code::sendmsg;
  request.fd = socket_->get();
  if (out_->descriptor) {
    int number = out_->descriptor->get();
    request.message = out_->message.prepare(out_->bytes, {&number, 1});
  } else {
    request.message = out_->message.prepare(out_->bytes);
  }
  request.flags = protocol::send_flags;
  request.keep_alive = out_;
  port_.submit(std::move(request), owner_, send_tag);
}

} // namespace terrace::actors
