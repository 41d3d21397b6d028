// The options that identify a prompt: its space, and its tokens or digests.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/failure.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace terrace::cli {

// The tokens of a text, from the tokenizer of a model.

struct tokenized_text {
  std::string file;      ///< "-": standard input
  std::string tokenizer; ///< a model's folder, a tokenizer.json, or a name of Hugging Face
  bool special = true;   ///< with the tokens that the tokenizer adds to a text, as engines do for completions
};

/// Asks Python's package tokenizers, which engines use: `python3` must have it.
outcome<std::vector<uint32_t>> tokens_of_text(const tokenized_text& what);

/// The options that identify a space: its number, or all its fields, as the engine opened it.
class space_options {
 public:
  void declare(CLI::App& app);

  /// True if any of the options was given.
  bool given() const { return number_ != 0 || fields_given(); }

  /// Whether the options name one space. Call it before anything is asked of the daemon.
  outcome<void> check() const;

  /// Opens the space. A space that does not exist is a failure, which lists those that do: opening it would make it.
  outcome<client::space> open(client::connection& daemon, const daemon_options& to) const;

 private:
  bool fields_given() const {
    return !spec_.model.empty() || !spec_.dtype.empty() || !spec_.layout.empty() || !pools_.empty();
  }
  outcome<client::space_spec> read() const;

  uint32_t number_ = 0;
  client::space_spec spec_;
  std::vector<std::string> pools_;
  std::string algorithm_ = "sha256_cbor";
};

/// A connection, and the space of a prompt in it.
struct opened_prompt {
  client::connection daemon;
  client::space space;
};

class prompt_options {
 public:
  prompt_options() = default;
  /// `instead`: an option of the command that takes the prompt's place, such as "--lookup"; errors name it.
  explicit prompt_options(std::string instead) : instead_(std::move(instead)) {}

  void declare(CLI::App& app);

  /// Whether a prompt or a space was given.
  bool given() const {
    return space_.given() || !tokens_.empty() || !digests_.empty() || !text_.file.empty();
  }

  /// Reads the tokens or digests, connects under this name, and opens the prompt's space.
  outcome<opened_prompt> open(const daemon_options& to, const std::string& name);

  /// Call after `open`; the result refers to this object.
  client::prefix what() const;

 private:
  outcome<void> read();

  std::string instead_;
  space_options space_;
  std::string tokens_;
  std::string digests_;
  tokenized_text text_;
  std::string lora_;
  std::string salt_;
  std::vector<uint32_t> token_ids_;
  digest_list digest_list_;
};

} // namespace terrace::cli
