// A remote store on a Valkey server that the test plays: it answers each command at once, or when it is told to.
#pragma once

#include "actors/remote/remote_store.hpp"

#include "index/object_header.hpp"
#include "protocol/resp/command_reader.hpp"
#include "protocol/resp/commands.hpp"
#include "protocol/resp/reply.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <list>
#include <map>
#include <set>

namespace terrace::actors {
namespace played_store_test {

using test::temporary_folder;

/// A Valkey server in the test's thread.
class played_store {
 public:
  explicit played_store(std::string path) : path_(std::move(path)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    listener_ = unique_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
  }

  /// It executes these commands, and answers them and what comes behind them at `release`.
  void hold(const std::string& name) { held_.insert(name); }
  void release() {
    held_.clear();
    for (client& each : clients_)
      each.holds = false;
  }
  void refuse(const std::string& name, const std::string& word = "NOPERM") { refused_[name] = word; }
  /// The connection of the next commands of this name ends in the middle of the answer.
  void cut(const std::string& name, size_t times = 1) { cuts_[name] = times; }
  void close() {
    clients_.clear();
    listener_.reset();
  }

  /// Returns whether anything has moved.
  bool serve() {
    bool moved = false;
    if (listener_)
      if (unique_fd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}) {
        clients_.emplace_back().socket = std::move(socket);
        moved = true;
      }
    for (client& each : clients_)
      moved |= serve(each);
    clients_.remove_if([](const client& each) { return !each.socket; });
    return moved;
  }

  std::map<std::string, std::string> values;
  std::map<std::string, size_t> served; ///< commands of each name

 private:
  struct client {
    unique_fd socket;
    resp::command_reader reader{{.word_bytes_max = 4 << 20, .command_bytes_max = 8 << 20}};
    std::string replies;
    bool holds = false;
    bool cut = false; ///< with what it has been answered
  };
  using words = std::span<const std::string_view>;

  bool serve(client& of) {
    bool moved = false;
    while (true) {
      auto area = of.reader.write_area();
      const ssize_t count = ::recv(of.socket.get(), area.data(), area.size(), MSG_DONTWAIT);
      if (count <= 0)
        break;
      moved = true;
      of.reader.commit(static_cast<size_t>(count));
      for (auto step = of.reader.next(); step && step->what == resp::reader_step::kind::command;
           step = of.reader.next()) {
        const std::string name(step->words.front());
        ++served[name];
        of.holds |= held_.contains(name);
        if (of.cut)
          continue;
        const size_t before = of.replies.size();
        if (refused_.contains(name))
          resp::append_error(of.replies, refused_[name], "this user may not");
        else
          answer(name, step->words, of.replies);
        if (auto cut = cuts_.find(name); cut != cuts_.end() && cut->second != 0) {
          --cut->second;
          of.cut = true;
          of.replies.resize(before + (of.replies.size() - before) / 2);
        }
      }
    }
    if (of.cut && of.replies.empty()) {
      of.socket.reset();
      return true;
    }
    if (of.holds || of.replies.empty())
      return moved;
    const ssize_t sent =
        ::send(of.socket.get(), of.replies.data(), of.replies.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    of.replies.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    return moved || sent > 0;
  }

  void answer(const std::string& name, words command, std::string& reply) {
    const std::string key(command.size() > 1 ? command[1] : "");
    if (name == "HELLO") {
      resp::append_map_head(reply, resp::version::resp3, 1);
      resp::append_value(reply, "server");
      resp::append_value(reply, "played");
    } else if (name == "GET") {
      if (values.contains(key))
        resp::append_value(reply, values[key]);
      else
        resp::append_null(reply, resp::version::resp3);
    } else if (name == "SET") {
      values[key] = command[2];
      resp::append_simple(reply, "OK");
    } else if (name == "EXISTS" || name == "UNLINK") {
      uint64_t count = 0;
      for (std::string_view each : command.subspan(1))
        count += name == "EXISTS" ? values.count(std::string(each)) : values.erase(std::string(each));
      resp::append_integer(reply, count);
    } else {
      resp::append_simple(reply, "OK");
    }
  }

  std::string path_;
  unique_fd listener_;
  std::list<client> clients_;
  std::set<std::string> held_;
  std::map<std::string, size_t> cuts_;
  std::map<std::string, std::string> refused_; ///< with the first word of the reply
};

class PlayedStore : public test::actor_fixture {
 protected:
  static constexpr uint64_t payload = 4096 - object_header_bytes;
  template <class T>
  using answered = std::shared_ptr<std::optional<T>>;

  PlayedStore() {
    opened_space made;
    made.id = space_id{7};
    made.fingerprint.bytes[0] = 1;
    space_ = std::make_shared<const opened_space>(made);
    store_has({names_.epoch_key_of_all(), token(realm_token)});
    store_has({names_.epoch_key_of(names_.space_of(space_->fingerprint.bytes)), token(space_token)});
    remote_store_arguments with{.plan = {.names = names_}};
    with.plan.address = *remote::parse_store_address(folder_.path() + "/store");
    with.service = service_;
    with.meter = std::make_shared<read_meter>();
    with.probe = std::make_shared<metrics::tier_probe>();
    with.counts = counts_;
    with.log = with.warn = [](const std::string&) {};
    store_ = spawn_remote_store(sys, home(), std::move(with));
    go_on();
    EXPECT_TRUE(service_->reads());
  }
  ~PlayedStore() override {
    server_.close();
    stop(store_);
    store_ = nullptr;
  }

  static std::string token(uint64_t value) { return remote::epoch_text(value); }
  void store_has(const std::pair<std::string, std::string>& value) { server_.values.insert(value); }

  /// Until neither the actor nor its server moves.
  void go_on() {
    while (settle() != 0 || server_.serve()) {
    }
  }

  batch_ptr objects(size_t count, uint64_t bytes = payload) const {
    auto made = std::make_shared<object_batch>();
    for (size_t i = 0; i < count; ++i) {
      digest chunk;
      chunk.bytes[0] = static_cast<uint8_t>(i + 1);
      made->keys.push_back({space_->id, 0, 0, chunk});
      made->payload_bytes.push_back(bytes);
    }
    made->parents.resize(count);
    return made;
  }
  std::string key_of(const object_key& object) const {
    return names_.key_of({.space = names_.space_of(space_->fingerprint.bytes),
                          .epoch = remote::combined_epoch(space_token, realm_token),
                          .pool = object.pool,
                          .rank = object.rank,
                          .chunk = object.chunk});
  }
  void store_has(const batch_ptr& objects) {
    for (const object_key& each : objects->keys)
      store_has({key_of(each), "bytes"});
  }
  size_t objects_in_store() const { return server_.values.size() - 2; } ///< without the tokens

  template <class Answer, class Request>
  answered<Answer> ask(const Request& what) {
    auto answer = std::make_shared<std::optional<Answer>>();
    sys.spawn([store = store_, answer, what](caf::event_based_actor* self) {
      self->request(store, caf::infinite, what)
          .then([answer](const Answer& told) { *answer = told; }, [](const caf::error&) {});
    });
    go_on();
    return answer;
  }
  answered<remove_values_answer> remove(const batch_ptr& objects) {
    return ask<remove_values_answer>(remove_values_request{space_, objects});
  }
  answered<find_answer> find(const batch_ptr& objects) {
    return ask<find_answer>(find_request{space_, object_source(objects)});
  }
  /// Returns how many questions a lookup of them asks the store.
  size_t questions_of(const batch_ptr& objects) {
    const size_t before = server_.served["EXISTS"];
    EXPECT_TRUE(*find(objects));
    return server_.served["EXISTS"] - before;
  }

  static constexpr uint64_t realm_token = 0x10, space_token = 0x20;

  temporary_folder folder_{"/tmp"};
  remote::realm names_ = *remote::realm::make("test", std::vector<uint8_t>(32, 'k'));
  played_store server_{folder_.path() + "/store"};
  std::shared_ptr<remote_service> service_ = std::make_shared<remote_service>();
  std::shared_ptr<metrics::remote_probe> counts_ = std::make_shared<metrics::remote_probe>();
  space_ptr space_;
  remote_store_actor store_;
};

/// Objects in memory, which are moved.
class PlayedObjects : public PlayedStore {
 protected:
  static constexpr size_t count = 12; ///< more than are asked for at a time
  static constexpr uint64_t bytes = 512 << 10;

  PlayedObjects() : memory_(count * (object_header_bytes + bytes)) {}

  moved_objects moved() {
    moved_objects made;
    made.space = space_;
    for (size_t i = 0; i < count; ++i)
      made.objects.push_back({objects_->keys[i],
                              {.id = object_id{i + 1}, .payload_bytes = bytes},
                              memory_.data() + i * (object_header_bytes + bytes)});
    return made;
  }
  static std::vector<move_outcome> all(move_outcome what) { return std::vector(count, what); }
  answered<move_answer> write() { return ask<move_answer>(write_request{moved()}); }
  answered<move_answer> read(read_limit by = read_limit::max()) {
    read_request what{moved()};
    what.read_by = by;
    return ask<move_answer>(what);
  }

  std::vector<std::byte> memory_;
  batch_ptr objects_ = objects(count, bytes);
};

} // namespace played_store_test
} // namespace terrace::actors
