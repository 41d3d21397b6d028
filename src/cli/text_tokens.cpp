#include "cli/text_tokens.hpp"

#include "base/unique_fd.hpp"
#include "cli/digest_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace terrace::cli {

namespace {

/// Prints the ids, or one line that says why there are none.
constexpr const char* tokenizing = R"(
import os, sys
name, path, special = sys.argv[1:4]
try:
    from tokenizers import Tokenizer
except ImportError:
    sys.exit("the Python package tokenizers is missing: python3 -m pip install tokenizers")
file = os.path.join(name, "tokenizer.json") if os.path.isdir(name) else name
try:
    text = sys.stdin.read() if path == "-" else open(path, encoding="utf-8").read()
except (OSError, UnicodeDecodeError) as problem:
    sys.exit(f"{path}: {problem}")
try:
    tokenizer = Tokenizer.from_file(file) if os.path.exists(file) else Tokenizer.from_pretrained(name)
except Exception as problem:
    sys.exit(f"--tokenizer {name}: expected a model's folder, a tokenizer.json or a name of Hugging Face: {str(problem).splitlines()[0]}")
print(*tokenizer.encode(text, add_special_tokens=special == "yes").ids)
)";

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

/// Runs a program; its output and its errors come together.
outcome<std::pair<int, std::string>> run_program(const std::vector<const char*>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return failed(std::string("a pipe cannot be made: ") + std::strerror(errno));
  unique_fd reads(ends[0]), writes(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writes.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, writes.get(), STDERR_FILENO);
  auto arguments = words;
  arguments.push_back(nullptr);
  pid_t child = -1;
  int problem = ::posix_spawnp(&child, arguments[0], &actions, nullptr,
                               const_cast<char* const*>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  writes.reset();
  if (problem != 0)
    return failed(fmt::format("{} cannot be started: {}; install it, or give --tokens", words[0],
                              std::strerror(problem)));
  std::string said;
  std::array<char, 65'536> part;
  for (ssize_t got = 0; (got = ::read(reads.get(), part.data(), part.size())) != 0;)
    if (got > 0)
      said.append(part.data(), static_cast<size_t>(got));
    else if (errno != EINTR)
      break;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return std::pair(WIFEXITED(status) ? WEXITSTATUS(status) : 128, std::move(said));
}

} // namespace

outcome<std::vector<uint32_t>> tokens_of_text(const tokenized_text& what) {
  auto ended = run_program(
      {"python3", "-c", tokenizing, what.tokenizer.c_str(), what.file.c_str(), what.special ? "yes" : "no"});
  if (!ended)
    return tl::unexpected(ended.error());
  if (ended->first != 0)
    return bad_usage(last_line(ended->second));
  return parse_tokens(last_line(ended->second));
}

} // namespace terrace::cli
