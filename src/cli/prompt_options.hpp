// The options that identify a prompt: its space, and its tokens or digests.
#pragma once

#include "cli/digest_text.hpp"
#include "cli/space_options.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

class prompt_options {
 public:
  void declare(CLI::App& app);

  /// Reads the tokens or digests. Returns the space.
  outcome<client::space_spec> read();

  /// After `read`; refers to this object.
  client::prefix what() const;

 private:
  space_options space_;
  std::string tokens_;
  std::string digests_;
  std::string lora_;
  std::string salt_;
  std::vector<uint32_t> token_ids_;
  digest_list digest_list_;
};

} // namespace terrace::cli
