// The options that identify a prompt: its space, and its tokens or digests.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/failure.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
// The options that identify a space: all its fields, as the engine opened it.

class App;
} // namespace CLI

namespace terrace::cli {

class space_options {
 public:
  /// `required`: the command needs a space.
  void declare(CLI::App& app, bool required);

  /// True if any of the options was given.
  bool given() const { return !spec_.model.empty() || !pools_.empty(); }

  outcome<client::space_spec> read() const;

 private:
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
  void declare(CLI::App& app);

  /// Reads the tokens or digests, connects under this name, and opens the prompt's space.
  outcome<opened_prompt> open(const daemon_options& to, const std::string& name);

  /// Call after `open`; the result refers to this object.
  client::prefix what() const;

 private:
  outcome<client::space_spec> read();

  space_options space_;
  std::string tokens_;
  std::string digests_;
  std::string lora_;
  std::string salt_;
  std::vector<uint32_t> token_ids_;
  digest_list digest_list_;
};

} // namespace terrace::cli
