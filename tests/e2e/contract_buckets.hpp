// Buckets and plugins for the suite of all kinds of remote stores (contract_stores.hpp). Of each there is one that breaks every promise:
// what it has is right, and what it answers is not.
#pragma once

#include "contract_stores.hpp"

#include "tests/support/s3_process.hpp"

#include <fstream>

namespace terrace::e2e::contract {

// ---- buckets ----

/// Of the S3 store of these tests, which keeps what it has in memory.
class bucket : public open_store {
 public:
  explicit bucket(std::shared_ptr<test::s3_process> store = std::make_shared<test::s3_process>())
      : store_(std::move(store)), place_(store_->place()) {
    write_file(folder_ / "keys",
               std::string(test::s3_process::secret_key) + "\n" + test::s3_process::access_key + "\n");
    EXPECT_EQ(::chmod((folder_ / "keys").c_str(), 0600), 0);
  }
  std::string address() const override { return "s3://" + place_; }
  std::string credentials() const override {
    return "password_file = \"" + (folder_ / "keys").string() + "\"\n";
  }
  std::string server() const override { return "TestStore"; }
  void end() override {
    save();
    store_->kill();
  }
  void start(having what) override {
    const auto colon = place_.find(':') + 1;
    std::vector<std::string> options{"--port", place_.substr(colon, place_.find('/') - colon)};
    if (what == having::its_values)
      options.insert(options.end(), {"--load", saved()});
    store_ = std::make_shared<test::s3_process>(options);
  }
  void stand_still() override { EXPECT_TRUE(test::suspend(store_->pid())); }
  void go_on() override { ::kill(store_->pid(), SIGCONT); }
  void lose_values() override { lose(false); }
  void lose_tokens() override { lose(true); }

 protected:
  std::string read(const digest& of) override {
    save();
    return read_file(file_of(of));
  }
  void write(const digest& of, const std::string& value) override {
    save();
    write_file(file_of(of), value);
    load();
  }
  static constexpr int always = 1'000'000;
  std::shared_ptr<test::s3_process> store_;

 private:
  std::string saved() const { return folder_ / "saved"; }
  void save() {
    std::filesystem::remove_all(saved());
    EXPECT_EQ(store_->tell("save " + saved()), "ok");
  }
  void load() { EXPECT_EQ(store_->tell("load " + saved()), "ok"); }
  void lose(bool tokens) {
    save();
    const std::vector<std::filesystem::directory_entry> all(std::filesystem::directory_iterator(saved()), {});
    for (const auto& each : all)
      if ((each.path().filename().string().find("%2Fepoch%2F") != std::string::npos) == tokens)
        std::filesystem::remove(each);
    load();
  }
  std::string file_of(const digest& of) const {
    for (const auto& each : std::filesystem::directory_iterator(saved()))
      if (each.path().filename().string().find(to_hex(of)) != std::string::npos)
        return each.path();
    throw std::runtime_error("the bucket has no object of " + to_hex(of));
  }

  temporary_folder folder_{"/tmp"};
  std::string place_;
};

/// Ignores the conditions of writes as long as it is told nothing else.
class lying_bucket final : public bucket {
 public:
  lying_bucket() { store_->fail("ignored", "PUT", always); }
  void end() override { store_->fail("reset", "ANY", always); }
  void start(having what) override {
    if (what == having::nothing)
      store_->tell("remove");
    store_->fail("reset", "ANY", 0);
  }
  void stand_still() override { store_->fail("hang", "ANY", always); }
  void go_on() override { store_->fail("hang", "ANY", 0); }
  /// It has them and does not give them.
  void lose_values() override { begin("status-404-NoSuchKey", "VALUE"); }
  std::vector<damage> damages() override {
    std::vector<damage> all;
    for (const auto& [fault, reason] : {std::pair("wrong", "wrong_payload"),
                                        {"inverted", "not_ours"},
                                        {"short", "other_length"},
                                        {"another", "other_object"},
                                        {"cut", "refused"},
                                        {"status-404-NoSuchKey", "absent"},
                                        {"status-500-InternalError", "refused"}}) {
      const std::string name = fault;
      all.push_back(
          {name, reason, [this, name](const digest& of, const digest&) { begin(name, to_hex(of)); }});
    }
    return all;
  }
  void end_damage() override {
    if (!fault_.empty())
      store_->fail(fault_, of_, 0);
    fault_.clear();
  }

 private:
  void begin(const std::string& fault, const std::string& of) {
    store_->fail(fault_ = fault, of_ = of, always);
  }
  std::string fault_, of_; ///< empty: it has told the truth since
};

/// One that others have made: what it has is reached through its own interface alone.
class others_bucket final : public bucket {
 public:
  enum class made_by : uint8_t { moto, ceph };
  explicit others_bucket(made_by whom)
      : bucket(whom == made_by::ceph
                   ? test::s3_process::radosgw()
                   : std::make_shared<test::s3_process>(std::vector<std::string>{"--moto"})),
        whom_(whom) {}
  std::string server() const override { return {}; }
  std::string lacks(ability which) const override {
    if (which == ability::stand_still || (which == ability::end && whom_ == made_by::ceph))
      return {};
    return which == ability::end ? "moto's server keeps its bucket in memory, and would be another one"
                                 : "the tests have no client of S3 that changes what is in it";
  }
  void end() override { EXPECT_EQ(store_->tell("signal KILL gateway"), "ok"); }
  void start(having) override { EXPECT_EQ(store_->tell("start gateway"), "ok"); }
  void stand_still() override {
    if (whom_ == made_by::moto)
      return bucket::stand_still();
    EXPECT_EQ(store_->tell("signal STOP gateway"), "ok");
  }
  void go_on() override {
    if (whom_ == made_by::moto)
      return bucket::go_on();
    EXPECT_EQ(store_->tell("signal CONT gateway"), "ok");
  }

 private:
  made_by whom_;
};

// ---- plugins ----

/// A folder that machines share. What is done to it is done to the processes that serve it as well.
class shared_folder : public open_store {
 public:
  explicit shared_folder(std::string plugin = "fs") : plugin_(std::move(plugin)) {
    ::setenv("PYTHONPATH", test::program("PLUGIN_PATH").c_str(), 1);
    std::filesystem::create_directory(path());
  }
  ~shared_folder() override { ::unsetenv("PYTHONPATH"); }
  std::string address() const override { return "plugin://" + plugin_ + "?path=" + path(); }
  std::string server() const override { return plugin_; }
  bool lists_keys() const override { return false; }
  void end() override {
    std::filesystem::rename(path(), folder_ / "away");
    signal(SIGKILL);
  }
  void start(having what) override {
    if (what == having::nothing)
      remove_files(folder_ / "away", "");
    std::filesystem::rename(folder_ / "away", path());
  }
  void stand_still() override { signal(SIGSTOP); }
  void go_on() override { signal(SIGCONT); } // the daemon has killed those that it has waited for
  void lose_values() override { remove_files(path(), "%7b"); }
  void lose_tokens() override { remove_files(path(), "%2fepoch%2f"); }

 protected:
  std::string path() const { return folder_ / "kv"; }
  /// Those of values that have this in their names.
  static void remove_files(const std::filesystem::path& in, const std::string& part) {
    for (const std::string& file : files(in))
      if (file.find(part) != std::string::npos)
        std::filesystem::remove(file);
  }

  std::string read(const digest& of) override {
    std::string value = read_file(file_of(of));
    value.resize(value.size() - end_bytes);
    return value;
  }
  /// As the plugin does, so that it takes the value for right.
  void write(const digest& of, const std::string& value) override {
    const uint32_t sum = checksum(value);
    const uint64_t length = value.size();
    std::string end(end_bytes, '\0');
    std::memcpy(end.data(), &sum, sizeof sum);
    std::memcpy(end.data() + sizeof sum, &length, sizeof length);
    write_file(file_of(of), value + end);
  }

 private:
  static constexpr size_t end_bytes = 12; ///< behind each value: CRC-32 and length

  static uint32_t checksum(const std::string& text) {
    uint32_t sum = ~uint32_t{0};
    for (const char c : text) {
      sum ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit)
        sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320U : 0U);
    }
    return ~sum;
  }
  static std::vector<std::string> files(const std::filesystem::path& in) {
    std::vector<std::string> all;
    for (const auto& each : std::filesystem::recursive_directory_iterator(in))
      if (each.is_regular_file() && each.path().filename().string().starts_with("v-"))
        all.push_back(each.path());
    return all;
  }
  std::string file_of(const digest& of) const {
    for (const std::string& file : files(path()))
      if (file.find(to_hex(of)) != std::string::npos)
        return file;
    throw std::runtime_error("the folder has no value of " + to_hex(of));
  }
  /// To the processes that serve the folder.
  void signal(int number) const {
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(each.path() / "cmdline");
      const std::string words((std::istreambuf_iterator<char>(file)), {});
      if (words.find("terrace.remote") != std::string::npos && words.find(path()) != std::string::npos)
        ::kill(std::stoi(each.path().filename()), number);
    }
  }

  temporary_folder folder_{"/tmp"};
  std::string plugin_;
};

/// tests/support/plugins/faulty.py
class lying_plugin final : public shared_folder {
 public:
  lying_plugin() : shared_folder("faulty") {}
  void end() override { begin("crash"); }
  void start(having what) override {
    if (what == having::nothing)
      remove_files(path(), "");
    end_damage();
  }
  void stand_still() override { begin("hang"); }
  void go_on() override {
    end_damage();
    shared_folder::go_on();
  }
  /// It has them and does not give them.
  void lose_values() override { begin("absent {"); }
  std::vector<damage> damages() override {
    std::vector<damage> all;
    for (const auto& [fault, reason] : {std::pair("wrong", "wrong_payload"),
                                        {"short", "other_length"},
                                        {"liar", "other_length"},
                                        {"another", "other_object"},
                                        {"absent", "absent"},
                                        {"raise", "refused"},
                                        {"crash", "unanswered"},
                                        {"garbage", "unanswered"}}) {
      const std::string name = fault, reason_of_miss = reason;
      const bool of_all = name == "raise" || reason_of_miss == "unanswered";
      all.push_back({name, reason_of_miss,
                     [this, name](const digest& of, const digest&) { begin(name + " " + to_hex(of)); },
                     of_all});
    }
    return all;
  }
  void end_damage() override { std::filesystem::remove(path() + "/fault"); }

 private:
  /// At once for its processes: they read the file whenever they are called.
  void begin(const std::string& fault) const {
    write_file(path() + "/fault.new", fault);
    std::filesystem::rename(path() + "/fault.new", path() + "/fault");
  }
};

} // namespace terrace::e2e::contract
