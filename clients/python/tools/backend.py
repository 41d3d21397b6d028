"""meson-python with one change: the stable ABI, if the Python version has enough of it.

nanobind's stable ABI begins with Python 3.12. A wheel built there serves 3.12 and all later versions; one built
with 3.10 or 3.11 serves only that version.
"""

import sys
import sysconfig

from mesonpy import *  # noqa: F403  the hooks of PEP 517 that stay as they are
import mesonpy


def _settings(given):
    settings = dict(given or {})
    if sys.version_info < (3, 12) or sysconfig.get_config_var("Py_GIL_DISABLED"):
        arguments = settings.get("setup-args", [])
        arguments = [arguments] if isinstance(arguments, str) else list(arguments)
        settings["setup-args"] = [*arguments, "-Dpython.allow_limited_api=false"]
    return settings


def build_wheel(folder, settings=None, metadata=None):
    return mesonpy.build_wheel(folder, _settings(settings), metadata)


def build_editable(folder, settings=None, metadata=None):
    return mesonpy.build_editable(folder, _settings(settings), metadata)
