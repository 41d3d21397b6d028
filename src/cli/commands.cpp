// The table of commands.

#include "cli/command.hpp"

namespace terrace::cli {

std::unique_ptr<command> make_trace_generate_command();
std::unique_ptr<command> make_trace_info_command();

std::span<const command_entry> commands() {
  static const command_entry table[] = {
      {"trace generate", "Make a trace of multi-turn conversations",
       "  terrace trace generate -o trace.jsonl --requests 5000 --seed 7\n"
       "  terrace trace generate --arrivals bursty --rate 4 | gzip > trace.jsonl.gz\n"
       "  terrace trace generate --sessions 20 --turns 10 --branch 0.3 -o branching.jsonl\n",
       make_trace_generate_command},
      {"trace info", "Tell what a trace asks for",
       "  terrace trace info trace.jsonl.gz\n"
       "  terrace trace info trace.jsonl --json\n",
       make_trace_info_command},
  };
  return table;
}

} // namespace terrace::cli
