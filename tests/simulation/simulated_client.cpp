#include "simulated_client.hpp"

#include "simulated_sockets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace terrace::simulation {

using protocol::kind;

namespace {

constexpr uint64_t slots = 16;
constexpr int unused = 0x5a;       ///< memory of the client that nobody writes
constexpr int64_t loud_speed = 20; ///< a loud client thinks so many times as fast
constexpr std::chrono::nanoseconds waits_for_daemon = std::chrono::milliseconds(10);

} // namespace

simulated_client::simulated_client(client_world& world, uint32_t number, uint32_t group, uint64_t seed,
                                   uint32_t deeds_left)
    : world_(world), number_(number), group_(group), random_(seed), left_(deeds_left) {
  become_a_process();
}

simulated_client::~simulated_client() { unmap(); }

void simulated_client::become_a_process() {
  ++life_;
  process_ = {};
  process_.pid = static_cast<pid_t>(1'000'000 + number_ * 1000 + life_);
  process_.uid = simulated_calls::user;
  process_.name = "terrace-simulation-" + std::to_string(::getpid()) + "-" + std::to_string(process_.pid);
  process_.ends = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC));
  world_.calls.know(process_);
  former_.clear();
}

// ---- connecting ----

/// A socket to the daemon, or none.
unique_fd simulated_client::open_socket() {
  // Each socket has a name of its own; the process is known by all of them.
  simulated_peer as = process_;
  as.name += "-" + std::to_string(++life_);
  return world_.connect(as, world_.sockets[group_]);
}

void simulated_client::connect() {
  if (world_.down)
    return;
  socket_ = open_socket();
  if (!connected())
    return;
  decoder_.emplace(protocol::frame_decoder::options{.accepts = protocol::direction::answers});
  read_again();
  say("connects");
  greet();
}

void simulated_client::greet() {
  ask(
      kind::hello,
      [this](builder& b) {
        auto name = b.CreateString("client " + std::to_string(number_));
        auto boot = boot_.empty() ? 0 : b.CreateVector(boot_);
        auto closed = boot_.empty() ? 0 : b.CreateVector(former_);
        return wire::CreateHello(b, protocol::version, name, closed, boot);
      },
      [this](answer& of) { on_greeted(of); });
}

void simulated_client::on_greeted(answer& of) {
  auto hello = protocol::parse<wire::HelloAnswer>(of.body);
  if (!of.good() || !hello) {
    world_.model.broke("hello is refused");
    return;
  }
  std::vector<uint8_t> boot((*hello)->boot()->begin(), (*hello)->boot()->end());
  if (boot != boot_)
    former_.clear();
  boot_ = boot;
  connection_ = (*hello)->connection();
  for (uint32_t space = 0; space < world_.spaces; ++space)
    ask(
        kind::open_space, [this, space](builder& b) { return world_.open_space(b, group_, space); },
        [this](answer& opened) {
          if (auto space_of = protocol::parse<wire::OpenSpaceAnswer>(opened.body); opened.good() && space_of)
            spaces_.push_back((*space_of)->space());
          else
            refused("a space cannot be opened");
        });
  make_region();
}

/// Memory for loads and stores, sealed or not. That of a device is.
void simulated_client::make_region() {
  uint64_t bytes = slots * *std::max_element(world_.pools.begin(), world_.pools.end());
  unique_fd memory(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  (void) !::ftruncate(memory.get(), static_cast<off_t>(bytes));
  bool on_device = world_.gpu && random_.below(4) != 0;
  if (on_device || random_.coin())
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  memory_ = data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
  free_.clear();
  for (uint64_t i = 0; i < slots; ++i)
    free_.push_back(i);
  if (on_device) {
    device_memory_ = std::move(memory);
    register_region();
    return;
  }
  ask(
      kind::register_region,
      [bytes](builder& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, bytes); },
      [this](answer& of) {
        if (auto made = protocol::parse<wire::RegisterRegionAnswer>(of.body); of.good() && made)
          region_ = (*made)->region();
      },
      nullptr, memory.release());
}

/// Memory of the device. Its process may not start, or end meanwhile.
void simulated_client::register_region() {
  uint64_t bytes = slots * *std::max_element(world_.pools.begin(), world_.pools.end());
  ask(
      kind::register_region,
      [bytes](builder& b) {
        auto device = b.CreateString("host");
        return wire::CreateRegisterRegion(b, wire::RegionKind::device_memory, bytes, device);
      },
      [this](answer& of) {
        if (auto made = protocol::parse<wire::RegisterRegionAnswer>(of.body); of.good() && made) {
          region_ = (*made)->region();
          return;
        }
        if (!world_.gpu_fails)
          refused("memory of a device is refused, although it does not fail");
        world_.events.after(waits_for_daemon, [this, connection = connection_] {
          simulated_sockets::touch();
          if (connected() && connection_ == connection && region_ == 0)
            register_region();
        });
      },
      nullptr, ::fcntl(device_memory_.get(), F_DUPFD_CLOEXEC, 0));
}

/// A request about the region has been answered, maybe because the device's process has ended.
void simulated_client::lose_region(const answer& why) {
  if (why.code() == errc::gone && device_memory_)
    lost_region_ = std::exchange(region_, 0);
}

/// When no request refers to the lost region any more, it is unregistered. From then on nobody writes into its memory.
void simulated_client::renew_region() {
  if (lost_region_ == 0 || free_.size() != slots)
    return;
  ask(
      kind::unregister_region,
      [lost = std::exchange(lost_region_, 0)](builder& b) { return wire::CreateUnregisterRegion(b, lost); },
      [this](answer& of) {
        if (!of.good())
          world_.model.broke("a region whose process has ended is not unregistered");
        for (uint64_t i = 0; i < slots; ++i)
          for (std::byte& each : slot(i, 0))
            each = static_cast<std::byte>(unused);
        register_region();
      });
}

void simulated_client::unmap() {
  if (memory_ != nullptr)
    ::munmap(memory_, slots * *std::max_element(world_.pools.begin(), world_.pools.end()));
  memory_ = nullptr;
  for (const auto& [number, segment] : segments_)
    ::munmap(segment.data, segment.bytes);
  segments_.clear();
}

std::span<std::byte> simulated_client::slot(uint64_t number, uint32_t pool) const {
  return {memory_ + number * *std::max_element(world_.pools.begin(), world_.pools.end()), world_.pools[pool]};
}

void simulated_client::disconnect(bool process_ends) {
  if (connected()) {
    say(process_ends ? "dies" : "disconnects");
    former_.push_back(connection_);
  }
  socket_.reset();
  decoder_.reset();
  line_.clear();
  for (const lease& each : leases_)
    world_.model.ends_keep(each.kept);
  leases_.clear();
  readings_.clear();
  spaces_.clear();
  for (const session& each : sessions_)
    world_.model.ends_keep(each.kept);
  sessions_.clear();
  region_ = lost_region_ = 0;
  device_memory_.reset();
  read_again();
  left_reserved_.clear();
  unmap();
  for (auto& [number, request] : std::exchange(open_, {}))
    if (request.lost)
      request.lost();
  if (!process_ends)
    return;
  strange_.clear();
  uint64_t one = 1;
  (void) !::write(process_.ends->get(), &one, sizeof one);
  become_a_process();
}

void simulated_client::lose_daemon() {
  disconnect(false);
  strange_.clear();
}

void simulated_client::leave() {
  left_ = 0;
  disconnect(true);
}

void simulated_client::wind_up() {
  left_ = 0;
  read_again();
  simulated_sockets::touch();
}

void simulated_client::stop_reading() {
  reads_ = false;
  reads_nothing_ = world_.hinder();
}

void simulated_client::read_again() {
  reads_ = true;
  reads_since_ = world_.events.now();
  reads_nothing_ = nullptr;
}

// ---- acting ----

void simulated_client::start() { act_later(); }

void simulated_client::act_later() {
  if (acting_ || left_ == 0)
    return;
  acting_ = true;
  // Nobody asks a daemon that is away millions of times.
  auto thinks = world_.thinks_most / (world_.loud_group == group_ ? loud_speed : 1);
  auto most = static_cast<uint64_t>(
      std::max(thinks, greeted() ? std::chrono::nanoseconds{} : waits_for_daemon).count());
  world_.events.after(std::chrono::nanoseconds(random_.between(0, most)), [this] {
    acting_ = false;
    act();
  });
}

void simulated_client::act() {
  simulated_sockets::touch();
  if (left_ == 0)
    return;
  if (!connected()) {
    connect();
  } else if (greeted() && spaces_.size() == world_.spaces) {
    --left_;
    uint64_t all = 0;
    for (uint32_t weight : world_.mix)
      all += weight;
    uint64_t draw = random_.below(std::max<uint64_t>(all, 1));
    size_t which = 0;
    while (which + 1 < deeds && draw >= world_.mix[which])
      draw -= world_.mix[which++];
    do_one(static_cast<deed>(which));
  }
  act_later();
}

void simulated_client::say(const std::string& what) const {
  if (world_.trace)
    world_.trace("client " + std::to_string(number_) + " " + what);
}

std::string simulated_client::unanswered() const {
  std::string text = "client " + std::to_string(number_) + ":";
  for (const auto& [id, request] : open_)
    text += " " + std::to_string(id) + " " + std::string(protocol::to_string(request.verb));
  return text;
}

// ---- the socket ----

size_t simulated_client::part_of(size_t bytes) {
  return bytes > 1 && random_.chance(world_.cut) ? random_.between(1, bytes) : bytes;
}

short simulated_client::wants() const {
  return static_cast<short>((reads_ ? POLLIN : 0) | (line_.empty() ? 0 : POLLOUT));
}

void simulated_client::ready() {
  simulated_sockets::touch();
  if (connected())
    send_some();
  if (connected() && reads_)
    receive_some();
}

void simulated_client::send_some() {
  while (!line_.empty()) {
    auto& [bytes, descriptor] = line_.front();
    size_t part = part_of(bytes.size());
    protocol::outgoing_message message;
    int attached = descriptor.get();
    std::span<const int> descriptors(&attached, descriptor ? 1 : 0);
    ssize_t sent = ::sendmsg(socket_.get(), message.prepare(std::span(bytes).first(part), descriptors),
                             protocol::send_flags | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno != EAGAIN)
        line_.clear(); // receiving will find the end
      return;
    }
    descriptor.reset();
    if (static_cast<size_t>(sent) < bytes.size()) {
      bytes.erase(bytes.begin(), bytes.begin() + sent);
      return;
    }
    line_.pop_front();
  }
}

void simulated_client::receive_some() {
  protocol::incoming_message message;
  auto area = decoder_->write_area();
  ssize_t count = ::recvmsg(socket_.get(), message.prepare(area.first(part_of(area.size()))),
                            protocol::receive_flags | MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN)
    return;
  if (count <= 0) {
    if (!world_.down)
      world_.model.broke("the daemon closed the connection of client " + std::to_string(number_));
    disconnect(false);
    return;
  }
  auto descriptors = message.take();
  if (auto sound = decoder_->commit(static_cast<size_t>(count), std::move(descriptors), message.truncated());
      !sound) {
    world_.model.broke("the daemon broke the protocol: " + sound.error().text);
    disconnect(false);
    return;
  }
  while (connected()) {
    auto frame = decoder_->next();
    if (!frame)
      return;
    take(*frame);
  }
}

/// A daemon that drains refuses what it has not begun, also what was sent before.
void simulated_client::refused(const std::string& what) const {
  if (!world_.down)
    world_.model.broke(what);
}

/// What a request waits for ends soon, unless a client holds it; a request that only the end of leases could serve is refused.
/// Requests of a loud group wait for each other: a clear is durable before the group's next one begins.
void simulated_client::check_wait(const asked& request) {
  if (!world_.healthy || world_.hinderers != 0 || request.verb == kind::await_lookup)
    return;
  auto waited = world_.events.now() - std::max(request.since, world_.hindered_until);
  world_.waits[group_].push_back(waited);
  if (waited > world_.answers_within && world_.loud_group != group_)
    world_.model.broke(std::string(to_string(request.verb)) + " waited for " +
                       std::to_string(waited / std::chrono::milliseconds(1)) +
                       " ms, although no client held what it could wait for");
}

errc simulated_client::answer::code() const {
  if (good())
    return errc::ok;
  auto why = protocol::parse<wire::Error>(body);
  return why ? static_cast<errc>((*why)->code()) : errc::internal;
}

void simulated_client::take(protocol::frame& frame) {
  answer of{frame.kind, frame.body, {}};
  if (!frame.descriptors.empty())
    of.descriptor = std::move(frame.descriptors[0]);
  std::string text;
  if (!of.good())
    if (auto why = protocol::parse<wire::Error>(of.body))
      text = (*why)->text()->str();
  ++(of.good() ? answers_ : errors_);
  // An actor has ended, or forgot to answer. Devices that fail are told as such, too.
  if (of.code() == errc::internal && world_.healthy && !world_.down && !world_.gpu_fails)
    world_.model.broke("an internal error: " + text);
  auto found = open_.find(frame.request_id);
  if (found == open_.end()) {
    if (!world_.down)
      world_.model.broke("an answer that nobody asked for, of kind " + std::string(to_string(frame.kind)) +
                         ": " + text);
    return;
  }
  if (of.good() && frame.kind != answer_to(found->second.verb))
    world_.model.broke("an answer of the wrong kind");
  if (world_.trace)
    say("is told " + std::to_string(frame.request_id) + ": " + (of.good() ? std::string("done") : text));
  world_.events.note({8, number_, frame.request_id, static_cast<uint64_t>(frame.kind), frame.body.size()});
  check_wait(found->second);
  auto done = std::move(found->second.done);
  open_.erase(found);
  if (done)
    done(of);
}

} // namespace terrace::simulation
