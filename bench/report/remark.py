"""Remarks beside a row's figures, against misreading."""

from numbers_text import three, whole

# A limited sender's row that delivered less than this share of its target is remarked.
ENOUGH = 0.97


def remark(data, table, system, absent):
    """A row's remark. `absent`: the row has no main figure, and the remark has the reason."""
    said = [*damage(data, table, system), *failed(data, table, system)]
    if table.below_target:
        said += short_of_target(data, table, system)
    if absent:
        why = data.why_absent(table.workload, table.main.variant, system)
        # The reason is losses or failed runs, with numbers.
        if not said or not (why == "not run" or why.startswith("failed")):
            said = [why]
    may_lose = data.systems.get(system, {}).get("may_lose")
    if may_lose:
        said.append(f"loses by design: {may_lose}")
    return "; ".join(said)


def phases(data, table, system):
    """Everything measured that the row shows."""
    for variant, label in table.cells():
        yield from data.cell(table.workload, variant, system, label).values()


def damage(data, table, system):
    """Loss and wrong content."""
    sums = dict.fromkeys(("count", "lost", "corrupt", "out_of_order"), 0)
    wrong = 0
    for phase in phases(data, table, system):
        for field in sums:
            sums[field] += phase.total(field) or 0
        sums["count"] += len(phase.round_trips())
        sums["lost"] += phase.round_trips_lost() or 0
        wrong += phase.wrong() or 0
    said = []
    if sums["lost"]:
        share = 100 * sums["lost"] / (sums["lost"] + sums["count"])
        said.append(f"**lost {whole(sums['lost'])} ({three(share)} %)**")
    if sums["corrupt"]:
        said.append(f"**corrupt {whole(sums['corrupt'])}**")
    if sums["out_of_order"]:
        said.append(f"out of order {whole(sums['out_of_order'])}")
    if wrong:
        said.append(f"**wrong answers {whole(wrong)}**")
    return said


def failed(data, table, system):
    """Runs that failed."""
    said = []
    for variant in table.variants():
        failures = data.failures(table.workload, variant, system)
        if failures:
            runs = data.repetitions(table.workload, variant, system)
            said.append(f"**{len(failures)} of {runs} runs failed** ({variant}): {failures[0][1]}")
    return said


def short_of_target(data, table, system):
    """In how many repetitions less was delivered than was to be sent."""
    pairs = [(p.rate(), p.target()) for p in phases(data, table, system)]
    pairs = [(rate, target) for rate, target in pairs if rate is not None and target]
    short = sum(rate < ENOUGH * target for rate, target in pairs)
    if not short:
        return []
    return [f"**below 97 % of its target in {short} of {len(pairs)} repetitions**"]
