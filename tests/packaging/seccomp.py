"""Seccomp profiles in the format of container runtimes, compiled by libseccomp into what the kernel loads."""

import ctypes
import errno
import json
import os

LIBRARY = ctypes.CDLL("libseccomp.so.2", use_errno=True)
LIBRARY.seccomp_init.restype = ctypes.c_void_p
LIBRARY.seccomp_release.argtypes = [ctypes.c_void_p]
LIBRARY.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
KILL = 0x80000000
ALLOW = 0x7FFF0000
COMPARISONS = {"SCMP_CMP_MASKED_EQ": 7}


def refuse(number):
    return 0x00050000 | number


ACTIONS = {"SCMP_ACT_ALLOW": ALLOW}


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("datum_a", ctypes.c_uint64), ("datum_b", ctypes.c_uint64)]


LIBRARY.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]


def number_of(name):
    """The number of a system call; below -1 if this processor has none of that name, None if nobody has."""
    number = LIBRARY.seccomp_syscall_resolve_name(name.encode())
    return None if number == -1 else number


class Profile:
    def __init__(self, path):
        self.rules = json.loads(path.read_text())

    def names(self):
        return [name for rule in self.rules["syscalls"] for name in rule["names"]]

    def without(self, *names):
        """A profile that does not name these system calls."""
        other = Profile.__new__(Profile)
        other.rules = dict(self.rules, syscalls=[dict(rule, names=[name for name in rule["names"] if name not in names])
                                                 for rule in self.rules["syscalls"]])
        return other

    def compiled(self, otherwise=None, answered=()):
        """A descriptor of the filter. `otherwise`: the action for system calls that the profile does not name, instead of
        its own; it does not reach those of `answered`."""
        default = refuse(self.rules["defaultErrnoRet"])
        assert self.rules["defaultAction"] == "SCMP_ACT_ERRNO"
        rules = LIBRARY.seccomp_init(ctypes.c_uint32(default if otherwise is None else otherwise))
        try:
            for rule in self.rules["syscalls"]:
                arguments = [Comparison(one["index"], COMPARISONS[one["op"]], one["value"], one["valueTwo"])
                             for one in rule.get("args", ())]
                for name in rule["names"]:
                    self._add(rules, ACTIONS[rule["action"]], name, arguments)
            for name in answered:
                self._add(rules, default, name, [])
            file = os.memfd_create("seccomp")
            if LIBRARY.seccomp_export_bpf(rules, file) != 0:
                raise OSError("libseccomp cannot export the profile")
            os.lseek(file, 0, os.SEEK_SET)
            return file
        finally:
            LIBRARY.seccomp_release(rules)

    @staticmethod
    def _add(rules, action, name, arguments):
        number = number_of(name)
        if number is None:
            raise ValueError(f"{name} is no system call")
        if number < 0:
            return  # of another processor
        result = LIBRARY.seccomp_rule_add_array(rules, action, number, len(arguments),
                                                (Comparison * len(arguments))(*arguments))
        if result != 0:
            raise OSError(-result, f"{name}: {errno.errorcode.get(-result, result)}")
