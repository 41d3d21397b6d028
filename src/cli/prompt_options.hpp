// The options that identify a prompt: its space, and its tokens or digests.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/space_options.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

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
