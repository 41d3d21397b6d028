"""Two conversations with a server that has Terrace under it, through OpenAI's client. They begin alike, so the second one finds the KV
of the first. two_conversations.py URL TERRACE SOCKET"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from openai import OpenAI

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs/architecture.md").read_text()[:6000]
QUESTIONS = ("What is a trust group?", "What does a lease do?")


def ask(client, question):
    """Prints the answer; returns the tokens of the prompt, and those that the engine did not compute."""
    began = time.monotonic()
    first, text, usage = None, "", None
    stream = client.chat.completions.create(
        model="smollm2", max_tokens=24, temperature=0, stream=True, stream_options={"include_usage": True},
        messages=[{"role": "system", "content": f"Answer from this page.\n\n{DOCUMENT}"}, {"role": "user", "content": question}])
    for part in stream:
        if part.choices and part.choices[0].delta.content:
            first = first or time.monotonic() - began
            text += part.choices[0].delta.content
        usage = part.usage or usage
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens if details else 0) or 0
    print(f"  {question}\n    answer       {' '.join(text.split())}\n"
          f"    prompt       {usage.prompt_tokens:,} tokens, {cached:,} of them not computed\n"
          f"    first token  after {first or time.monotonic() - began:.2f} s", flush=True)
    return usage.prompt_tokens, cached


def host_tier(terrace, socket):
    said = subprocess.run([terrace, "--socket", socket, "status", "--json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said)["groups"][0]["tiers"][0]


def main(url, terrace, socket):
    client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=600)
    print("\nthe first conversation", flush=True)
    ask(client, QUESTIONS[0])
    # The engine has its own prefix cache. It forgets that, as if it had been started again.
    urllib.request.urlopen(urllib.request.Request(f"{url}/reset_prefix_cache", method="POST")).close()
    before = host_tier(terrace, socket)["bytes_read"]
    print("\nthe engine forgets its KV; the second conversation begins with the same page", flush=True)
    prompt, cached = ask(client, QUESTIONS[1])
    read = host_tier(terrace, socket)["bytes_read"] - before
    print(f"\nhit          {cached / prompt:.0%} of the second prompt came from Terrace, {read / 2**20:.1f} MiB of KV")
    return 0 if cached != 0 and read != 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
