#!/usr/bin/env python3
"""Installs the build into an empty folder, compiles the example with pkg-config alone, shared and static, and runs it on the
installed daemon. The manual pages name every option of the programs.

    install_test.py BUILD_FOLDER
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_workload import Daemon  # noqa: E402

CONFIGURATION = "[host]\nbytes = \"64MiB\"\n[disk]\nbytes = 0\n"


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, text=True, **options)


def only(found):
    found = list(found)
    assert len(found) == 1, found
    return found[0]


def check_manual(page, program):
    text = page.read_text().replace("\\-", "-")
    helps = [run(program, *command, "--help", capture_output=True).stdout for command in
             ([], ["replay"], ["trace", "generate"], ["disk", "resize"]) if not command or program.name == "terrace"]
    for option in set(re.findall(r"--[a-z][a-z-]+", "".join(re.findall(r"^  \S*--.*$", "\n".join(helps), re.M)))):
        assert option == "--help" or option in text, f"{page.name} does not name {option}"


def commands_of(program, *above):
    text = run(program, *above, "--help", capture_output=True).stdout
    listed = re.search(r"^Subcommands:\n(.*?)\n\n", text, re.S | re.M)
    if not listed:
        return [above]
    return [command for line in listed[1].splitlines() for command in commands_of(program, *above, line.split()[0])]


def check_command_pages(stage, terrace):
    """Each command has a page that names its options, and there is no other page."""
    commands = commands_of(terrace)
    assert {path.name for path in stage.rglob("man1/terrace-*.1")} == {f"terrace-{'-'.join(each)}.1" for each in commands}
    for command in commands:
        text = only(stage.rglob(f"terrace-{'-'.join(command)}.1")).read_text().replace("\\-", "-")
        help_text = run(terrace, *command, "--help", capture_output=True).stdout
        for option in set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_text, re.M)) - {"--help"}:
            assert option in text, (command, option)
        assert "\n.SH EXAMPLES\n" in text, command


def check_completion(stage):
    script = only(stage.rglob("bash-completion/completions/terrace.bash"))
    asked = 'source "$1"; COMP_WORDS=(terrace sta); COMP_CWORD=1; _terrace; echo "${COMPREPLY[@]}"'
    assert run("bash", "-c", asked, "bash", script, capture_output=True).stdout == "status\n"
    assert only(stage.rglob("zsh/site-functions/_terrace")).read_text().startswith("#compdef terrace\n")
    assert "complete -c terrace" in only(stage.rglob("fish/vendor_completions.d/terrace.fish")).read_text()


def compile_example(stage, folder, *pkg_config_options):
    pc = only(stage.rglob("terrace.pc"))
    found = run("pkg-config", *pkg_config_options, "--cflags", "--libs", "terrace", capture_output=True,
                env=dict(os.environ, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(stage)))
    flags = found.stdout.split()
    if pkg_config_options: # the archive, not the shared library beside it
        flags = ["-l:libterrace.a" if flag == "-lterrace" else flag for flag in flags]
    program = folder / "-".join(["example", *pkg_config_options])
    run(*os.environ.get("CXX", "c++").split(), "-std=c++20", "-Wall", "-Werror",
        only(stage.rglob("store_and_find.cpp")), *flags, "-o", program)
    if not pkg_config_options:
        return [program, *compile_others(stage, folder, flags)]
    return [program]


def compile_others(stage, folder, flags):
    """The same in C, which is also the test of the header, and in Rust where it can be compiled."""
    program = folder / "example-in-c"
    run(*os.environ.get("CC", "cc").split(), "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror",
        only(stage.rglob("store_and_find.c")), *flags, "-o", program)
    if not shutil.which("rustc"):
        print("the example in Rust is left out: rustc is not installed")
        return [program]
    in_rust = folder / "example-in-rust"
    run("rustc", "--deny", "warnings", only(stage.rglob("store_and_find.rs")), "-L", only(stage.rglob("libterrace.so")).parent, "-o", in_rust)
    return [program, in_rust]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="terrace-install-") as name:
        folder = pathlib.Path(name)
        stage = folder / "stage"
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", env=dict(os.environ, DESTDIR=str(stage)))
        terrace, terraced = (only(stage.rglob(f"bin/{name}")) for name in ("terrace", "terraced"))
        check_manual(only(stage.rglob("terrace.1")), terrace)
        check_command_pages(stage, terrace)
        check_completion(stage)
        for page in "README.md", "CHANGELOG.md", "docs/operations.md", "docs/engines/vllm.md", "docs/images/scaling.svg":
            only(stage.rglob(f"doc/terrace/{page}"))
        check_manual(only(stage.rglob("terraced.8")), terraced)
        assert not list(stage.rglob("include/**/*actor*")), "only what client.hpp includes is public"
        unit = only(stage.rglob("terraced.service")).read_text()
        assert f"ExecStart={'/' / terraced.relative_to(stage)} --config" in unit, unit
        configuration = folder / "terraced.toml"
        configuration.write_text(CONFIGURATION)
        run(terraced, "--check", "--config", only(stage.rglob("terraced.toml")), stdout=subprocess.DEVNULL)
        programs = compile_example(stage, folder) + compile_example(stage, folder, "--static")
        daemon = Daemon(terraced, configuration, folder)
        try:
            assert daemon.wait_until_ready(), daemon.log_path.read_text()
            for program in programs:
                library = only(stage.rglob("libterrace.so")).parent
                out = run(program, daemon.socket_path, capture_output=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(library))).stdout
                assert out == "2 chunks found, 1048576 bytes in the first\n", out
        finally:
            assert daemon.stop() == 0, daemon.log_path.read_text()


if __name__ == "__main__":
    main()
