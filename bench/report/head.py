"""The top of the report: where and how it was measured, and on which systems."""

from numbers_text import three
from table import escape


def title(data):
    """The heading."""
    options = data.raw.get("options", {})
    minutes = three((options.get("elapsed_s") or 0) / 60)
    quick = " **A quick run: too short for conclusions.**" if options.get("quick") else ""
    return [
        "# robot-net and the field, side by side",
        "",
        f"Made by `{escape(options.get('command', ''))}`, started {options.get('started', '?')}, "
        f"{options.get('repeat', '?')} repetitions, {minutes} minutes.{quick} "
        "Every line below is generated from the raw data.",
        "",
        *message_path(data.raw.get("machine", {}).get("message_path")),
    ]


def message_path(measured):
    """The hash of the sources that were measured; `cargo xtask tidy` reads this line."""
    return [f"message path: {measured}", ""] if measured else []


def reading(method):
    """How to read the tables."""
    return [
        f"How it is measured, and how to object: {method}.",
        "",
        "A figure is the median of the repetitions, with [least–greatest] where there is room; a figure "
        "that says *max* is the longest of all repetitions, and counts are sums over them. Nothing is "
        "trimmed. The ratio *robot-net (default) : this* is taken within each repetition, in which the "
        "systems ran one after another, and then the median; *default* is robot-net with its "
        "default way of waiting, reliable as the others are; its other configurations are rows "
        "as well. Messages carry their number, time and content, and each is checked. "
        "Three digits are significant.",
        "",
    ]


def machine(data):
    """The machine."""
    m, options = data.raw.get("machine", {}), data.raw.get("options", {})
    facts = [
        ("processor", f"{m.get('cpu')}, {m.get('cores')} cores"),
        ("memory", f"{three(m.get('memory_gib'))} GiB"),
        ("system", f"{m.get('os')}, kernel {m.get('kernel')}"),
        ("virtual machine", m.get("virtual") or "no"),
        ("governor", m.get("governor") or "not shown by the machine"),
        ("pinning", m.get("pinning")),
        ("disk of durable values", m.get("disk") or "none was used"),
        ("compiler", m.get("rustc")),
        ("Python", m.get("python")),
        ("commit", m.get("commit")),
        ("scale of durations", three(options.get("scale"))),
    ]
    lines = [f"| {name} | {escape(fact)} |" for name, fact in facts]
    return ["## Machine", "", "| | |", "|---|---|", *lines, ""]


def systems(data):
    """Versions and settings of each system."""
    out = ["## Systems", "", "<details><summary>versions, clients and settings</summary>", ""]
    for system, about in data.systems.items():
        version = about.get("version") or about.get("unavailable") or "?"
        out.append(
            f"- **{about.get('label', system)}** (`{system}`), {version}; client: {about.get('client')}"
        )
        out += [f"  - {setting}" for setting in about.get("settings") or []]
        if about.get("may_lose"):
            out.append(f"  - may lose by design: {about['may_lose']}")
    return [*out, "", "</details>", ""]
