// STORE INSPECTOR: asks a remote store for an operator: whether it can be used, step by step, or which values clears have left
// behind. It has connections of its own, one to each node of a cluster, so that it proves what the daemon's connections need and delays none of them. It asks
// sentinels and nodes itself where the servers are, so that it needs nothing of a daemon that runs. One for each request; it ends with the answer.
//
// A sweep asks for a bounded number of keys in a second, and holds no worker meanwhile. It reads all tokens of clears after it has
// seen the values that it removes, so it removes none that any machine finds (remote/stale_values.hpp).
#include "actors/remote/remote_store.hpp"
#include "base/random_id.hpp"
#include "remote/stale_values.hpp"
#include "runtime/answer.hpp"
#include "runtime/task.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <span>

namespace terrace::actors {

using remote::command_result;
using remote::stale_values;

namespace {

auto inspector_now() { return std::chrono::steady_clock::now(); }

class store_inspector {
 public:
  struct shell {
    const char* name = "store inspector";
    std::unique_ptr<store_inspector> work;
  };
  using interface = store_inspector_actor::extend<caf::reacts_to<runtime::io_done>>;
  using self_pointer = caf::stateful_actor<shell, runtime::homed<interface::base>>*;

  static constexpr uint64_t link_tags = 16, pause_tag = 1;
  static constexpr std::chrono::seconds patience{1}, patience_of_bulk{5};
  static constexpr uint32_t keys_per_s = 20'000;
  static constexpr uint32_t page_keys = 512, pages_per_s = 40; ///< at most
  static constexpr size_t removed_at_once = 4'096;

  store_inspector(self_pointer self, remote_plan store) : self_(self), plan_(std::move(store)) {}

  caf::result<remote::store_probe> on_probe() {
    probe_reply_ = make_answer<remote::store_probe>(self_);
    auto promise = probe_reply_.promise();
    progress_ = probe();
    progress_.start();
    leave_if_done();
    return promise;
  }

  caf::result<remote::store_sweep> on_sweep(const remote::store_sweep_request& request) {
    sweep_reply_ = make_answer<remote::store_sweep>(self_);
    auto promise = sweep_reply_.promise();
    progress_ = sweep(request);
    progress_.start();
    leave_if_done();
    return promise;
  }

  void on_io_done(const runtime::io_done& done) {
    if (done.tag == pause_tag)
      wake(pause_);
    else
      all_[(done.tag - link_tags) / store_link::tags]->link->on_io_done(done.tag, done.result);
    if (now_ != nullptr && now_->link->reached())
      wake(connected_);
    if (now_ != nullptr && now_->link->secured())
      wake(secured_);
    if (now_ != nullptr && now_->link->ready())
      wake(ready_);
    if (expected() == 0)
      wake(answered_);
    leave_if_done();
  }

 private:
  /// What the coroutine waits for, at most one at a time.
  struct moment {
    task_event* waits = nullptr;
  };
  using said = std::function<void(const remote::finished_command&)>;
  /// The only server, a primary of the cluster, or who tells where these are.
  struct asked_server {
    asked_server(store_inspector& by, remote::store_address where, bool guides)
        : address(std::move(where)), guide(guides),
          link(make_link(
              address, {.first_tag = link_tags + by.all_.size() * store_link::tags,
                        .silence_max = by.plan_.address.is_bulk() ? patience_of_bulk : patience,
                        .submit =
                            [&by](runtime::io_request request, uint64_t tag) {
                              return by.self_->port().submit(
                                  std::move(request), caf::actor_cast<caf::strong_actor_ptr>(by.self_), tag);
                            },
                        .cancel = [&by](runtime::operation_id id) { by.self_->port().cancel(id); },
                        .ready = [] {},
                        .finished =
                            [this](const remote::finished_command& finished) {
                              auto told = std::move(expected.front());
                              expected.pop_front();
                              told(finished);
                            },
                        .failed = [&by, this](const std::string& why) { by.on_failed(*this, why); },
                        .turned = [this] { link->pump(nullptr); }})) {}

    remote::store_address address;
    bool guide;
    std::unique_ptr<store_link> link;
    std::deque<said> expected; ///< of each reply that has not come
  };

  bool in_cluster() const { return plan_.address.at == remote::store_address::kind::cluster; }
  size_t expected() const {
    size_t all = 0;
    for (const auto& each : all_)
      all += each->expected.size();
    return all;
  }
  /// Null: the slot of the key belonged to nobody when the inspector began.
  asked_server* server_of(const std::string& key) const {
    if (!in_cluster())
      return servers_.front();
    const auto owner = slots_.owner(remote::slot_of(key));
    return owner ? servers_[*owner] : nullptr;
  }
  asked_server& add(remote::store_address where, bool guide) {
    return *all_.emplace_back(std::make_unique<asked_server>(*this, std::move(where), guide));
  }

  void wake(moment& which) {
    if (auto* waits = std::exchange(which.waits, nullptr))
      waits->set();
  }

  void on_failed(const asked_server& lost, const std::string& why) {
    failure_ =
        (in_cluster() && !lost.guide ? "the node at " + lost.address.text + ": " : std::string()) + why;
    for (const auto& each : all_)
      each->link->end();
    for (moment* each : {&connected_, &secured_, &ready_, &answered_, &pause_})
      wake(*each);
  }

  void leave_if_done() {
    if (!done_)
      return;
    bool idle = true;
    for (const auto& each : all_) {
      each->link->end();
      idle &= each->link->idle();
    }
    if (idle)
      self_->quit();
  }

  template <class Ask>
  void ask(asked_server& of, Ask ask, said told) {
    ask(*of.link->server());
    of.expected.push_back(std::move(told));
  }

  /// Ends when the replies to all commands have come, or the connection is lost.
  task<> replies() {
    if (failure_.empty() && expected() != 0) {
      task_event all;
      answered_.waits = &all;
      for (const auto& each : all_)
        if (each->link->ready())
          each->link->pump(nullptr);
      co_await all;
    }
  }

  task<> connected(asked_server& to) {
    task_event there;
    now_ = &to;
    if (!to.address.is_place() && !to.address.is_bulk()) {
      failure_ = "the cluster names it by no host and port: set cluster-preferred-endpoint-type to ip or "
                 "hostname";
      co_return;
    }
    connected_.waits = &there;
    remote::store_credentials with = plan_.credentials;
    if (to.guide && !in_cluster())
      with.login = with.of_sentinels;
    to.link->connect(to.address, with);
    if (failure_.empty()) {
      co_await there;
    }
  }

  task<> secured() {
    now_->link->pump(nullptr);
    if (failure_.empty() && !now_->link->secured()) {
      task_event there;
      secured_.waits = &there;
      co_await there;
    }
  }

  task<> let_in() {
    now_->link->pump(nullptr);
    if (failure_.empty() && !now_->link->ready()) {
      task_event there;
      ready_.waits = &there;
      co_await there;
    }
    if (failure_.empty())
      failure_ = remote::mistaken_scheme(plan_.address, now_->address.text, now_->link->server()->mode(),
                                         now_->guide);
  }

  task<> pause(std::chrono::nanoseconds time) {
    task_event over;
    pause_.waits = &over;
    runtime::io_request wait;
    wait.code = runtime::io_code::timeout;
    wait.after = time;
    self_->port().submit(std::move(wait), caf::actor_cast<caf::strong_actor_ptr>(self_), pause_tag);
    co_await over;
  }

  // ---- where the servers are ----

  /// The failure of a connection that was not made, with what to do.
  std::string not_reached() const {
    if (plan_.address.at == remote::store_address::kind::plugin)
      return failure_;
    if (failure_.starts_with("its name "))
      return failure_ + "; check the name in address, and what `getent hosts` says of it on this machine";
    return failure_ +
           "; check that the server runs, that address is its address, and that no firewall is between";
  }

  /// What is wrong with what the guide has told; empty: nothing.
  std::string take_guidance(const asked_server& from, const remote::finished_command& told) {
    auto read = remote::read_guidance(plan_.address, from.address.text, told);
    if (!read)
      return read.error().text;
    if (!in_cluster()) {
      servers_.push_back(&add(std::move(read->server), false));
      return {};
    }
    slots_ = std::move(read->slots);
    for (const std::string& primary : slots_.primaries()) {
      auto address = remote::parse_store_address(primary);
      if (!address)
        address = remote::store_address{.text = primary}; // connecting to it fails
      if (!plan_.address.name.empty())
        address->name = plan_.address.name;
      servers_.push_back(&add(std::move(*address), false));
    }
    return {};
  }

  /// Ends with why the guide tells nothing; empty: `servers_` has what it has told.
  task<std::string> ask_guide(remote::store_address address) {
    const auto begun = inspector_now();
    asked_server& guide = add(std::move(address), true);
    std::string failure;
    co_await connected(guide);
    const bool reached = guide.link->reached();
    if (failure_.empty()) {
      co_await let_in();
    }
    if (failure_.empty()) {
      ask(
          guide,
          [this](remote::store_commands& server) {
            in_cluster() ? server.slots(0) : server.primary(0, plan_.address.primary);
          },
          [this, &guide, &failure](const remote::finished_command& told) {
            failure = take_guidance(guide, told);
          });
      co_await replies();
    }
    if (!failure_.empty())
      failure = reached ? failure_ : not_reached();
    guide.link->end();
    note(in_cluster() ? "slots" : "primary", begun, failure);
    failure_.clear(); // another one may tell
    co_return failure;
  }

  /// Finds the servers that the address means. Ends with why there are none; empty: `servers_` has them.
  task<std::string> locate() {
    const auto& guides = plan_.address.guides;
    if (guides.empty()) {
      servers_.push_back(&add(plan_.address, false));
      co_return std::string();
    }
    std::string why;
    for (size_t i = 0; i < guides.size() && servers_.empty(); ++i) {
      remote::store_address next = guides[i];
      auto told = co_await ask_guide(std::move(next));
      why = (in_cluster() ? "no node tells its slots; the node at "
                          : "no sentinel tells where it is; the sentinel at ") +
            guides[i].text + ": " + told;
    }
    co_return servers_.empty() ? why : std::string();
  }

  // ---- probe ----

  void note(const char* name, std::chrono::steady_clock::time_point begun, std::string failure) {
    const bool is_one_of_many = now_ != nullptr && (in_cluster() || now_->guide);
    probed_.steps.push_back({is_one_of_many ? now_->address.text + " " + name : name, inspector_now() - begun,
                             std::move(failure)});
  }

  using command = std::function<void(remote::store_commands&)>;

  /// `wanted`: the text that is to come back; empty: none.
  task<bool> command_step(const char* name, command what, std::string wanted) {
    const auto begun = inspector_now();
    std::string failure;
    ask(*now_, what, [&failure, &wanted](const remote::finished_command& told) {
      if (told.result == command_result::refused)
        failure = told.why.text;
      else if (told.result != command_result::done || (!wanted.empty() && told.text != wanted))
        failure =
            "the store has lost or changed what was written a moment ago: something else removes keys, or "
            "its memory is full; look at maxmemory";
    });
    co_await replies();
    if (!failure_.empty())
      failure = failure_;
    note(name, begun, failure);
    co_return failure.empty();
  }

  /// One that is in the slots of the server.
  std::string probe_key(const asked_server& of) {
    constexpr int attempts_max = 1 << 20; // one slot of 16,384 is found sooner
    std::string key;
    for (int i = 0; i < attempts_max && (key.empty() || server_of(key) != &of); ++i)
      key = plan_.names.prefix() + "probe/" + remote::epoch_text(random_());
    return key;
  }

  task<> probe_steps(asked_server& to) {
    auto begun = inspector_now();
    co_await connected(to);
    if (!failure_.empty() && !to.link->reached()) {
      note("connect", begun, not_reached());
      co_return;
    }
    note("connect", begun, {});
    if (plan_.credentials.tls) {
      begun = inspector_now();
      co_await secured();
      const bool shaken = to.link->secured();
      note("handshake", begun, shaken ? std::string() : failure_);
      if (!shaken)
        co_return;
    }
    begun = inspector_now();
    co_await let_in();
    note("authenticate", begun, failure_);
    if (!failure_.empty())
      co_return;
    const std::string key = probe_key(to);
    const std::string value = "a probe of terrace, " + remote::epoch_text(random_());
    const std::string nothing;
    command set = [&](remote::store_commands& server) {
      server.write(0, key, std::as_bytes(std::span(value)), {}, nullptr, std::chrono::seconds(60));
    };
    command get = [&](remote::store_commands& server) { server.read_text(0, key); };
    command unlink = [&](remote::store_commands& server) { server.erase(0, key); };
    auto works = co_await command_step("set", set, nothing);
    if (!works)
      co_return;
    works = co_await command_step("get", get, value);
    if (!works)
      co_return;
    co_await command_step("unlink", unlink, nothing);
  }

  task<> probe() {
    probed_.address = plan_.address.text;
    co_await locate(); // a failure is among the steps
    if (!in_cluster() && !servers_.empty())
      probed_.address = servers_.front()->address.text;
    for (size_t i = 0; i < servers_.size() && (i == 0 || probed_.works()); ++i) {
      asked_server& next = *servers_[i];
      co_await probe_steps(next);
    }
    done_ = true;
    probe_reply_.deliver(std::move(probed_));
  }

  // ---- sweep ----

  /// One page of keys. Ends with the next cursor; empty: it failed.
  task<std::string> page(std::string cursor, std::string pattern, uint32_t count) {
    std::string next;
    keys_.clear();
    ask(
        *now_, [&](remote::store_commands& server) { server.scan(0, cursor, pattern, count); },
        [&](const remote::finished_command& told) {
          if (told.result == command_result::refused) {
            refused_ = refusal(told);
          } else {
            next = told.text;
            keys_ = told.keys;
          }
        });
    co_await replies();
    if (next == cursor && cursor != "0")
      refused_ = "it lists the same keys again and again: each page of them names itself as the next one";
    if (!failure_.empty() || !refused_.empty())
      co_return std::string();
    co_return next;
  }

  std::string refusal(const remote::finished_command& told) const {
    return in_cluster() && told.redirected ? "its slots are being moved: sweep again when that has ended"
                                           : told.why.text;
  }

  bool goes_on(const remote::store_sweep_request& request) {
    if (request.context && !request.context->live())
      refused_ = "the request has ended";
    return failure_.empty() && refused_.empty();
  }

  /// Passes every key to `each`; a page at a time, and a pause behind each. Ends early after a failure.
  task<> all_keys(const remote::store_sweep_request& request, bool removes) {
    const auto per_s = request.keys_per_s == 0 ? keys_per_s : request.keys_per_s;
    const uint32_t count = std::clamp(per_s / pages_per_s, 1U, page_keys);
    const auto between = std::chrono::nanoseconds(count * 1'000'000'000ULL / per_s);
    std::string cursor = "0";
    do {
      auto pattern = found_.pattern();
      cursor = co_await page(std::move(cursor), std::move(pattern), count);
      for (const std::string& key : keys_)
        removes ? look_at(key) : found_.see(key);
      if (candidates_.size() >= removed_at_once) {
        co_await remove(request.dry_run);
      }
      if (goes_on(request) && cursor != "0") {
        co_await pause(between);
      }
    } while (goes_on(request) && cursor != "0");
  }

  void look_at(const std::string& key) {
    ++swept_.keys;
    const auto standing = found_.of(key);
    swept_.current += standing == stale_values::standing::current ? 1 : 0;
    swept_.unknown += standing == stale_values::standing::no_token ? 1 : 0;
    if (standing == stale_values::standing::stale)
      candidates_.push_back(key);
  }

  task<> read_tokens() {
    found_.forget_tokens();
    const auto tokens = found_.tokens();
    for (size_t i = 0; i < tokens.size() && failure_.empty(); ++i) {
      const std::string& key = tokens[i];
      asked_server* of = server_of(key);
      if (of == nullptr)
        continue; // nothing is known of its space
      ask(
          *of, [&](remote::store_commands& server) { server.read_text(0, key); },
          [this, &key](const remote::finished_command& told) {
            if (told.result == command_result::refused)
              refused_ = refusal(told);
            const bool is_there = told.result == command_result::done;
            found_.token_is(key, is_there ? std::optional<std::string_view>(told.text) : std::nullopt);
          });
      if (!of->link->server()->has_room()) {
        co_await replies();
      }
    }
    co_await replies();
  }

  /// Removes those of the candidates that are stale by tokens that are read now.
  task<> remove(bool dry_run) {
    co_await read_tokens();
    if (!failure_.empty() || !refused_.empty())
      co_return; // without its tokens nothing is known of a value
    auto keys = std::exchange(candidates_, {});
    for (size_t begin = 0; begin < keys.size() && failure_.empty(); begin += page_keys) {
      const auto some = std::span(keys).subspan(begin, std::min<size_t>(page_keys, keys.size() - begin));
      co_await remove_some(some, dry_run);
    }
  }

  /// A bucket does at once what it is asked: what is there is asked before it goes.
  task<> remove_some(std::span<const std::string> keys, bool dry_run) {
    std::vector<std::pair<asked_server*, const std::string*>> stale;
    for (const std::string& key : keys) {
      const bool is_stale = found_.of(key) == stale_values::standing::stale;
      asked_server* of = server_of(key);
      swept_.current += is_stale ? 0 : 1;
      if (is_stale && of != nullptr)
        stale.emplace_back(of, &key);
    }
    for (auto [of, key] : stale)
      ask_length(*of, *key);
    co_await replies();
    if (dry_run || !failure_.empty())
      co_return;
    for (auto [of, key] : stale)
      ask(
          *of, [name = *key](remote::store_commands& server) { server.erase(0, name); }, refusals());
    co_await replies();
  }

  std::function<void(const remote::finished_command&)> refusals() {
    return [this](const remote::finished_command& told) {
      if (told.result == command_result::refused)
        refused_ = refusal(told);
    };
  }

  void ask_length(asked_server& of, const std::string& key) {
    ask(
        of, [&](remote::store_commands& server) { server.length(0, key); },
        [this](const remote::finished_command& told) {
          if (told.result == command_result::refused)
            refused_ = refusal(told);
          else if (told.number != 0) // it may have ended meanwhile
            ++swept_.stale;
          swept_.stale_bytes += static_cast<uint64_t>(told.number);
        });
  }

  task<> all_servers(const remote::store_sweep_request& request, bool removes) {
    for (size_t i = 0; i < servers_.size() && goes_on(request); ++i) {
      now_ = servers_[i];
      co_await all_keys(request, removes);
    }
  }

  task<> sweep_steps(const remote::store_sweep_request& request) {
    auto none = co_await locate();
    failure_ = std::move(none);
    for (size_t i = 0; i < servers_.size() && failure_.empty(); ++i) {
      asked_server& next = *servers_[i];
      co_await connected(next);
      if (failure_.empty()) {
        co_await let_in();
      }
    }
    if (!failure_.empty())
      co_return;
    found_.see(plan_.names.epoch_key_of_all()); // another machine may make it meanwhile
    co_await all_servers(request, false);
    if (goes_on(request)) {
      co_await read_tokens();
    }
    if (goes_on(request)) {
      co_await all_servers(request, true);
    }
    if (goes_on(request)) {
      co_await remove(request.dry_run);
    }
  }

  task<> sweep(remote::store_sweep_request request) {
    swept_.address = plan_.address.text;
    co_await sweep_steps(request);
    if (!failure_.empty() || !refused_.empty())
      swept_.failure = {failure_.empty() ? errc::denied : errc::gone,
                        "the store at " + plan_.address.text + ": " +
                            (failure_.empty() ? refused_ : failure_)};
    done_ = true;
    sweep_reply_.deliver(std::move(swept_));
  }

  self_pointer self_;
  remote_plan plan_;
  remote::slot_map slots_;
  std::mt19937_64 random_{random_entry_key_salt().first};
  std::vector<std::unique_ptr<asked_server>> all_; ///< in the order of their tags
  std::vector<asked_server*> servers_;             ///< in a cluster in the order of the primaries
  asked_server* now_ = nullptr;                    ///< which is connected to, or asked for its keys
  std::string failure_;                            ///< a connection is lost
  std::string refused_;                            ///< a command
  moment connected_, secured_, ready_, answered_, pause_;
  answer<remote::store_probe> probe_reply_;
  remote::store_probe probed_;
  answer<remote::store_sweep> sweep_reply_;
  remote::store_sweep swept_;
  stale_values found_{plan_.names.prefix()};
  std::vector<std::string> keys_;       ///< of the page
  std::vector<std::string> candidates_; ///< stale, by the tokens that were read before
  bool done_ = false;
  task<> progress_; ///< last, because it refers to the others
};

store_inspector::interface::behavior_type
store_inspector_behavior(store_inspector::self_pointer self, const std::shared_ptr<remote_plan>& store) {
  self->state.work = std::make_unique<store_inspector>(self, std::move(*store));
  return {
      [self](const remote::store_probe_request&) { return self->state.work->on_probe(); },
      [self](const remote::store_sweep_request& request) { return self->state.work->on_sweep(request); },
      [self](const runtime::io_done& done) { self->state.work->on_io_done(done); },
  };
}

} // namespace

store_inspector_actor spawn_store_inspector(caf::actor_system& system, const runtime::home& home,
                                            remote_plan store) {
  return runtime::spawn_homed(system, home, store_inspector_behavior,
                              std::make_shared<remote_plan>(std::move(store)));
}

} // namespace terrace::actors
