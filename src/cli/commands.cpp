// The table of commands.

#include "cli/command.hpp"

namespace terrace::cli {

std::unique_ptr<command> make_status_command();
std::unique_ptr<command> make_policies_command();
std::unique_ptr<command> make_sessions_command();
std::unique_ptr<command> make_clients_command();
std::unique_ptr<command> make_top_command();
std::unique_ptr<command> make_events_command();
std::unique_ptr<command> make_leases_command();
std::unique_ptr<command> make_lease_revoke_command();
std::unique_ptr<command> make_pin_command();
std::unique_ptr<command> make_unpin_command();
std::unique_ptr<command> make_evict_command();
std::unique_ptr<command> make_move_command();
std::unique_ptr<command> make_quota_command();
std::unique_ptr<command> make_size_command();
std::unique_ptr<command> make_log_level_command();
std::unique_ptr<command> make_check_command();
std::unique_ptr<command> make_doctor_command();
std::unique_ptr<command> make_drain_command();
std::unique_ptr<command> make_shutdown_command();
std::unique_ptr<command> make_lookup_command();
std::unique_ptr<command> make_explain_command();
std::unique_ptr<command> make_put_command();
std::unique_ptr<command> make_get_command();
std::unique_ptr<command> make_clear_command();
std::unique_ptr<command> make_replay_command();
std::unique_ptr<command> make_record_command();
std::unique_ptr<command> make_bench_command();
std::unique_ptr<command> make_simulate_command();
std::unique_ptr<command> make_disk_inspect_command();
std::unique_ptr<command> make_disk_verify_command();
std::unique_ptr<command> make_disk_wipe_command();
std::unique_ptr<command> make_disk_resize_command();
std::unique_ptr<command> make_remote_status_command();
std::unique_ptr<command> make_remote_probe_command();
std::unique_ptr<command> make_remote_sweep_command();
std::unique_ptr<command> make_trace_generate_command();
std::unique_ptr<command> make_trace_info_command();
std::unique_ptr<command> make_trace_convert_command();
std::unique_ptr<command> make_help_command();
std::unique_ptr<command> make_version_command();
std::unique_ptr<command> make_completion_command();

std::span<const command_entry> commands() {
  static const command_entry table[] = {
      {"status", "Show tiers, spaces and clients of the daemon",
       "  terrace status\n"
       "  terrace status --json | jq '.groups[].tiers[] | {tier, used_bytes}'\n",
       make_status_command},
      {"policies", "Show hit ratios of shadow policies, or set the policy of a tier",
       "  terrace policies\n"
       "  terrace policies --json | jq '.shadows[] | {policy, capacity_bytes, hit_ratio}'\n"
       "  terrace policies set host arc\n",
       make_policies_command},
      {"sessions", "List the sessions of the trust group, or close one",
       "  terrace sessions\n"
       "  terrace sessions --json | jq '.sessions[] | {session, tokens, bytes}'\n"
       "  terrace sessions close 5f0c3f6a9be84d0c8e7d2a1b4c6f8e90\n",
       make_sessions_command},
      {"clients", "List the clients of the trust group, with what they hold and how long their requests take",
       "  terrace clients\n"
       "  terrace clients --json | jq '.clients[] | {connection, name, leased_bytes, quarantined_bytes}'\n",
       make_clients_command},
      {"top", "Show rates, latencies, occupancy and the slowest clients, refreshed",
       "  terrace top\n"
       "  terrace top --interval 0.5 --clients 30\n"
       "  terrace top --count 1                      prints one report\n",
       make_top_command},
      {"events", "Show what comes and goes in the tiers of the trust group",
       "  terrace events                             what is there now\n"
       "  terrace events --follow\n"
       "  terrace events --follow --json | jq 'select(.tier == \"disk\")'\n"
       "  terrace events --zmq-pub tcp://127.0.0.1:5557 --zmq-replay tcp://127.0.0.1:5558\n",
       make_events_command},
      {"leases", "List the leases of the trust group, the oldest first",
       "  terrace leases\n"
       "  terrace leases --limit 100000 --json | jq '.leases[] | select(.age_ms > 3600000)'\n",
       make_leases_command},
      {"check", "Verify the daemon's internal accounting",
       "  terrace check\n"
       "  terrace check --json | jq '.differences[]'\n",
       make_check_command},
      {"lease revoke", "End a lease for its owner and all readers",
       "  terrace lease revoke 5f0c3f6a9be84d0c8e7d2a1b4c6f8e90\n", make_lease_revoke_command},
      {"pin", "Keep what is cached of a prompt until it is unpinned",
       "  terrace pin --model llama --dtype bf16 --layout paged --pool kv:4MiB --tokens @prompt.json\n",
       make_pin_command},
      {"unpin", "End the pin of a prompt",
       "  terrace unpin --model llama --dtype bf16 --layout paged --pool kv:4MiB --tokens @prompt.json\n",
       make_unpin_command},
      {"evict", "Remove what is cached of a prompt",
       "  terrace evict --model llama --dtype bf16 --layout paged --pool kv:4MiB --tokens @prompt.json\n"
       "  terrace evict --tier host --model llama --dtype bf16 --layout paged --pool kv:4MiB --digests "
       "d830de3d42c00f25\n",
       make_evict_command},
      {"move", "Move what is cached of a prompt to host memory or to disk",
       "  terrace move --to disk --model llama --dtype bf16 --layout paged --pool kv:4MiB --tokens "
       "@prompt.json\n",
       make_move_command},
      {"quota", "Show or change the quotas of tenants",
       "  terrace quota\n"
       "  terrace quota --json | jq '.tenants[] | select(.name == \"batch\")'\n"
       "  terrace quota set batch --tier host --max 2GiB\n"
       "  terrace quota set batch --tier disk --max none --guaranteed 10%\n",
       make_quota_command},
      {"log-level", "Change what the daemon logs", "  terrace log-level debug\n", make_log_level_command},
      {"drain", "Refuse new clients; stop when the current ones have left", "  terrace drain\n",
       make_drain_command},
      {"shutdown", "End the daemon in order, as SIGTERM does", "  terrace shutdown\n", make_shutdown_command},
      {"lookup", "Show which leading chunks of a prompt are cached, and where",
       "  terrace lookup --model llama --dtype bf16 --layout paged --pool kv:4MiB --tokens @prompt.json\n"
       "  terrace lookup --model llama --dtype bf16 --layout paged --pool kv:4MiB --digests "
       "d830de3d42c00f25,fedd9e4abebebbe6\n",
       make_lookup_command},
      {"explain", "Say of each chunk of a prompt where it is, or why it is a miss",
       "  terrace explain --space 1 --tokens @prompt.json\n"
       "  terrace explain --space 1 --digests d830de3d42c00f25,fedd9e4abebebbe6 --json | jq '.chunks[]'\n"
       "  terrace explain --space 1 --text prompt.txt --tokenizer ./Llama-3.1-8B\n"
       "  terrace explain --lookup last\n",
       make_explain_command},
      {"put", "Store a file in the cache",
       "  terrace put adapter.safetensors            prints the key, which is the file's SHA-256\n"
       "  terrace put video.bin --object-bytes 4MiB\n",
       make_put_command},
      {"get", "Fetch a file from the cache and verify it",
       "  terrace get d2a84f4b8b650937ec8f73cd8be2c74add5a911ba64df27458ed8229da804a26 -o "
       "adapter.safetensors\n",
       make_get_command},
      {"clear", "Remove cached objects permanently",
       "  terrace clear --all\n"
       "  terrace clear --model llama --dtype bf16 --layout paged --pool kv:4MiB\n",
       make_clear_command},
      {"replay", "Run a trace against the daemon and check every byte",
       "  terrace replay trace.jsonl.gz --limit 2000\n"
       "  terrace replay trace.jsonl --clients 4 --speed 10 --bytes-per-token 4096\n"
       "  terrace replay trace.jsonl --mode daemon --json\n",
       make_replay_command},
      {"record", "Record the lookups of a running daemon as a trace, without prompts",
       "  terrace record -o trace.jsonl --requests 5000\n"
       "  terrace record --space 1 --kept -o trace.jsonl\n"
       "  terrace simulate trace.jsonl --block-tokens 256 --chunk-tokens 256\n",
       make_record_command},
      {"bench", "Measure lookups, stores and loads of a running daemon",
       "  terrace bench\n"
       "  terrace bench --objects 64 --object-bytes 1MiB --depth 8 --json\n",
       make_bench_command},
      {"doctor", "Say what this machine or container lacks for the daemon, with a fix for each finding",
       "  terrace doctor\n"
       "  terrace doctor --config /etc/terrace/terraced.toml --json\n"
       "  terrace doctor --unit > /etc/systemd/system/terraced.service.d/paths.conf\n",
       make_doctor_command},
      {"size", "Compute the KV bytes of a model, and of its users, from its config.json",
       "  terrace size Llama-3.1-8B/config.json\n"
       "  terrace size config.json --kv-dtype fp8 --users 200 --tokens 16000 --think 45\n",
       make_size_command},
      {"simulate", "Compute the hit ratio of each eviction policy on a trace, without a daemon",
       "  terrace simulate trace.jsonl.gz --plot hits.svg\n"
       "  terrace simulate trace.jsonl --policies lru,fifo --capacity 512MiB,1GiB --json\n"
       "  terrace simulate trace.jsonl --second-tier 8x --admission seen-twice\n",
       make_simulate_command},
      {"disk inspect", "Show the metadata of a disk tier's file",
       "  terrace disk inspect /var/lib/terrace/terrace.extents\n"
       "  terrace disk inspect terrace.extents --json | jq '.spaces[] | {fingerprint, objects}'\n",
       make_disk_inspect_command},
      {"disk verify", "Read every object of a disk tier's file and compare it with the index",
       "  terrace disk verify /var/lib/terrace/terrace.extents\n"
       "  terrace disk verify terrace.extents --jobs 16 --json | jq '.findings[]'\n",
       make_disk_verify_command},
      {"disk wipe", "Make the volume in a disk tier's file empty",
       "  terrace disk wipe /var/lib/terrace/terrace.extents\n"
       "  terrace disk wipe terrace.extents --yes\n",
       make_disk_wipe_command},
      {"disk resize", "Grow or shrink a disk tier's file and keep its objects",
       "  terrace disk resize /var/lib/terrace/terrace.extents 500GiB\n"
       "  terrace disk resize terrace.extents 100GiB --dry-run\n"
       "  terrace disk resize terrace.extents 100GiB --drop\n",
       make_disk_resize_command},
      {"remote status",
       "Show the stores of the remote tiers: state and why, latency, bytes, misses and memory",
       "  terrace remote status\n"
       "  terrace remote status --json | jq '.remotes[] | {address, state, reason, warnings}'\n",
       make_remote_status_command},
      {"remote probe",
       "Ask the store of a remote tier once, step by step, and say what to do about a failure",
       "  terrace remote probe\n"
       "  terrace remote probe --json | jq '.steps[]'\n",
       make_remote_probe_command},
      {"remote sweep", "Remove the values that clears have left behind in the store of a remote tier",
       "  terrace remote sweep --dry-run\n"
       "  terrace remote sweep --rate 5000\n",
       make_remote_sweep_command},
      {"trace generate", "Generate a trace of multi-turn conversations",
       "  terrace trace generate -o trace.jsonl --requests 5000 --seed 7\n"
       "  terrace trace generate --arrivals bursty --rate 4 | gzip > trace.jsonl.gz\n"
       "  terrace trace generate --sessions 20 --turns 10 --branch 0.3 -o branching.jsonl\n",
       make_trace_generate_command},
      {"trace info", "Show statistics of a trace",
       "  terrace trace info trace.jsonl.gz\n"
       "  terrace trace info trace.jsonl --json\n",
       make_trace_info_command},
      {"trace convert", "Convert a public trace of another format, or conversations as text",
       "  terrace trace convert BurstGPT_1.csv -o trace.jsonl\n"
       "  terrace trace convert qwen_traceA_blksz_16.jsonl -o trace.jsonl --limit 10000\n"
       "  terrace trace convert ShareGPT_V3.json --bytes-per-token 4 --rate 2 -o trace.jsonl\n",
       make_trace_convert_command},
      {"help", "Show the help of a command",
       "  terrace help replay\n"
       "  terrace help trace generate\n",
       make_help_command},
      {"version", "Print the version", "  terrace version\n", make_version_command},
      {"completion", "Print a script that completes commands and options in a shell",
       "  source <(terrace completion bash)                    # in ~/.bashrc\n"
       "  terrace completion zsh > \"${fpath[1]}/_terrace\"\n"
       "  terrace completion fish > ~/.config/fish/completions/terrace.fish\n",
       make_completion_command},
  };
  return table;
}

} // namespace terrace::cli
