#include "tests/support/s3_process.hpp"

#include "tests/support/programs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace terrace::test {

bool s3_process::has_moto() { return run({"python3", "-c", "import moto.server"}).exit_code == 0; }

namespace {

std::string radosgw_program() {
  return std::filesystem::path(program("S3_SERVER")).replace_filename("radosgw");
}

} // namespace

std::string s3_process::packages_for_radosgw() {
  const std::string names = run({"python3", radosgw_program(), "--missing"}).out;
  return names.substr(0, names.find('\n'));
}

s3_process::s3_process(const std::vector<std::string>& options) : s3_process(program("S3_SERVER"), options) {}

std::shared_ptr<s3_process> s3_process::radosgw() {
  return std::shared_ptr<s3_process>(new s3_process(radosgw_program(), {}));
}

s3_process::s3_process(const std::string& server, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"python3", server, bucket, access_key, secret_key};
  words.insert(words.end(), options.begin(), options.end());
  std::array<int, 2> to{}, from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  input_.reset(to[1]);
  output_.reset(from[0]);
  unique_fd their_input(to[0]), their_output(from[1]);
  pid_ = start_program(words, [&] {
    ::dup2(their_input.get(), STDIN_FILENO);
    ::dup2(their_output.get(), STDOUT_FILENO);
  });
  their_input.reset();
  their_output.reset();
  const std::string said = line();
  if (!said.starts_with("port ")) {
    kill();
    throw std::runtime_error("the S3 store does not start: " + said);
  }
  port_ = static_cast<uint16_t>(std::stoul(said.substr(sizeof "port")));
}

s3_process::~s3_process() { kill(); }

void s3_process::kill() {
  if (pid_ < 0)
    return;
  ::kill(pid_, SIGTERM); // one that has processes of its own ends them first
  reap(std::exchange(pid_, -1));
}

std::string s3_process::place() const { return "127.0.0.1:" + std::to_string(port_) + "/" + bucket; }

/// Empty: it has ended.
std::string s3_process::line() {
  size_t end = read_.find('\n');
  while (end == std::string::npos) {
    std::array<char, 4096> part{};
    const ssize_t count = ::read(output_.get(), part.data(), part.size());
    if (count <= 0)
      return {};
    read_.append(part.data(), static_cast<size_t>(count));
    end = read_.find('\n');
  }
  std::string first = read_.substr(0, end);
  read_.erase(0, end + 1);
  return first;
}

std::string s3_process::tell(const std::string& command) {
  begin(command);
  return answer();
}

int s3_process::begin(const std::string& command) {
  const std::string words = command + "\n";
  if (::write(input_.get(), words.data(), words.size()) != static_cast<ssize_t>(words.size()))
    throw std::runtime_error("the S3 store has ended");
  return output_.get();
}

void s3_process::fail(const std::string& how, const std::string& method, int count) {
  if (const auto said = tell("fault " + how + " " + method + " " + std::to_string(count)); said != "ok")
    throw std::runtime_error("the S3 store says: " + said);
}

} // namespace terrace::test
