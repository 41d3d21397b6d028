#!/usr/bin/env python3
"""Says what is wrong with files that other programs read, by the schemas of those programs. It runs in the environment that
index_tools.py makes.

    foreign_formats.py kubernetes|compose|grafana      stdin: a JSON list of documents; stdout: for each, a list of errors

kubernetes: against the oldest version that docs/kubernetes.md promises and the newest that has a schema. Unknown fields are
errors in all three.
"""

import enum
import json
import sys
import types
import typing

OLDEST_KUBERNETES = "1.29"


def wrong_for_kubernetes(document):
    import kubernetes_validate

    errors = []
    for version in OLDEST_KUBERNETES, kubernetes_validate.latest_version():
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            errors.append(f"{version}: {'.'.join(str(part) for part in error.path)}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            errors.append(f"{version}: {error.message}")
    return errors


def wrong_for_compose(document):
    from compose_spec import PyCompose

    try:
        PyCompose.from_json(json.dumps(document)).validate()
    except ValueError as error:
        return [str(error)]
    return []


def fits(value, hint):
    """Whether a decoded value is of the type that its model gives it."""
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, arguments[1]) for one in value.values())
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in [one.value for one in hint]
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return hint is typing.Any or isinstance(value, hint)


def wrong_types(value, path):
    if isinstance(value, list):
        for i, one in enumerate(value):
            yield from wrong_types(one, f"{path}[{i}]")
    elif hasattr(value, "to_json"):
        for name, hint in typing.get_type_hints(type(value)).items():
            if not fits(getattr(value, name), hint):
                yield f"{path}.{name}: {getattr(value, name)!r} is not of {hint}"
            yield from wrong_types(getattr(value, name), f"{path}.{name}")


def unknown_fields(given, kept, path):
    """What the models have dropped or changed."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name not in kept:
                yield f"{path}.{name}: Grafana has no such field"
            else:
                yield from unknown_fields(value, kept[name], f"{path}.{name}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for i, (one, other) in enumerate(zip(given, kept)):
            yield from unknown_fields(one, other, f"{path}[{i}]")
    elif given != kept:
        yield f"{path}: Grafana keeps {given!r} as {kept!r}"


def wrong_for_grafana(document):
    from grafana_foundation_sdk.cog import encoder, plugins, runtime
    from grafana_foundation_sdk.models import dashboard, units

    plugins.register_default_plugins()
    known_units = {value for value in vars(units).values() if isinstance(value, str)}
    try:
        decoded = dashboard.Dashboard.from_json(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [f"Grafana's models cannot decode it: {error!r}"]
    errors = list(wrong_types(decoded, "dashboard"))
    errors += unknown_fields(document, json.loads(json.dumps(decoded, cls=encoder.JSONEncoder)), "dashboard")
    for panel in decoded.panels:
        if panel.type_val == "row":
            continue
        if runtime.panelcfg_config(panel.type_val) is None:
            errors.append(f"{panel.title}: Grafana has no panel of type {panel.type_val!r}")
        if panel.field_config.defaults.unit not in known_units:
            errors.append(f"{panel.title}: Grafana has no unit {panel.field_config.defaults.unit!r}")
        if any(isinstance(target, runtime.UnknownDataquery) for target in panel.targets):
            errors.append(f"{panel.title}: Grafana has no such data source")
    return errors


FORMATS = {"kubernetes": wrong_for_kubernetes, "compose": wrong_for_compose, "grafana": wrong_for_grafana}

if __name__ == "__main__":
    json.dump([FORMATS[sys.argv[1]](document) for document in json.load(sys.stdin)], sys.stdout)
