"""The tables of docs/benchmarks/attach.md, from attach.json alone: nothing in them is typed by hand."""
import re

NOT = "not measured"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(value, form="{:,.0f}"):
    return "-" if value is None else form.format(value)


def rate(value):
    return "as fast as it can" if not value else f"{value / 1e9:.2f} G/s"


def size(value):
    return "-" if value is None else f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.1f} MB"


def short(text, most=230):
    """What a program said, as a cell."""
    text = re.sub(r"\s+", " ", text or "").replace("|", "/")
    return text if len(text) <= most else "... " + text[-most:]


def launch(row):
    ns = row["ns"]

    def cell(mode, name):
        return number(ns[mode][name]["least_quartile"]) if mode in ns and name in ns[mode] else NOT

    def difference(mode, base, name, key="least_quartile"):
        if mode not in ns or base not in ns or name not in ns[mode] or name not in ns[base]:
            return NOT
        return f"{ns[mode][name][key] - ns[base][name][key]:+,.0f}"

    def spread(mode, name):
        of = ns[mode][name]["quartiles"]
        return f"{min(of):,.0f} to {max(of):,.0f}"

    targets = {"unmarked host": "+50", "marked host": "+300"}
    rows = [[name.replace(" host", ", until issued").replace(" each", ", until done"), cell("plain", name),
             cell("iket", name), f"**{difference('iket', 'plain', name)}**",
             difference("iket", "plain", name, "median_quartile"), targets.get(name, ""),
             cell("plain_nvidia", name), cell("run_iket", name), difference("run_iket", "plain_nvidia", name),
             f"{spread('plain', name)}; {spread('iket', name)}"] for name in ns.get("plain", {})]
    processes = row["processes"]
    return (f"`<<<1, 32>>>`, empty but for the mark, nanoseconds a launch. {row['batches']} batches of "
            f"{row['launches']} launches of each kernel in turns, from one core ({row['core']}); of each process the "
            f"lower quartile, and of {processes['plain']} processes without and {processes['iket']} with `iket "
            f"profile`, in turns, the least. run-iket: {processes['run_iket']} processes.\n\n"
            + table(["kernel", "plain", "iket profile", "difference", "of medians over processes", "target",
                     "plain, run-iket's marks", "run-iket", "difference", "least to most: plain; iket"], rows))


def start(row):
    names = {"plain": "plain", "iket": "`iket profile --export none`", "run_iket": "`run-iket profile`"}
    base = row["plain"]["median"]
    rows = [[title, row[mode]["runs"], f"{row[mode]['median']:.3f}", f"{row[mode]['median'] - base:+.3f}",
             f"{row[mode]['least']:.3f} to {row[mode]['most']:.3f}"] if mode in row else [title, 0, NOT, "", ""]
            for mode, title in names.items()]
    return ("A program that launches one marked kernel, wall time of the whole in seconds, medians. Target +0.15.\n\n"
            + table(["", "runs", "seconds", "difference", "least to most"], rows))


def stream_row(row):
    if "failed" in row:
        return [rate(row["rate"]), short(row["failed"])] + [""] * 7
    return [rate(row["rate"]), f"{row['seconds']:.2f}", rate(row["made_a_second"]), number(row["written"]),
            number(row["kept"]), number(row["lost"]), f"{row['kept_a_second'] / 1e9:.3f} G/s",
            size(row["capture_bytes"]), "yes" if row["exact"] else "**no**"]


STREAM_HEAD = ["rate asked for", "kernel, s", "made", "records written", "kept", "lost", "events kept a second",
               "capture", "written is what the kernel counted"]


def stream(row):
    good = [one for one in row["rows"] if "failed" not in one and one["lost"] == 0]
    best = max((one["made_a_second"] for one in good), default=0)
    memory = next((one["device_mib"] for one in row["rows"] if "failed" not in one), None)
    text = (f"One kernel with a warp in every slot of the GPU, each of which marks at its share of the rate, begun a "
            "second after the first launch, when the reader is there. "
            f"`--overflow stream --ring {row['ring']}`, {number(memory)} MiB of rings in all; captures in "
            f"`{row['scratch']}`. " + (f"Most that was sustained with nothing lost: **{best / 1e9:.2f} G events/s**."
                                       if good else "Something was lost at every rate."))
    if row.get("memory"):
        first, again = (f"{one / 1e9:.1f} GB/s" for one in row["memory"])
        text += f" Before it, one thread wrote some GiB there twice: {first}, then {again}."
    return text + "\n\n" + table(STREAM_HEAD, [stream_row(one) for one in row["rows"]])


def stopped(row):
    return (f"The reader is stopped (SIGSTOP) for {row['stopped_seconds']} s while the kernel runs. Kept and lost must "
            "be what was written, and that what the kernel counted.\n\n" + table(STREAM_HEAD, [stream_row(row)]))


def drain(row):
    rows = []
    for kind, times in row.items():
        if "plain" not in times:
            rows.append([kind, NOT, "", "", "", ""])
            continue
        base = times["plain"]["ms"]

        def cell(how):
            if how not in times:
                return NOT
            return f"{times[how]['ms']:.2f} ({100 * (times[how]['ms'] / base - 1):+.2f} %)"

        last, streamed = times.get("keep-last", {}), times.get("stream", {})
        by = (f"{100 * (streamed['ms'] / last['ms'] - 1):+.2f} %" if streamed and last else NOT)
        rows.append([kind, f"{base:.2f}", cell("keep-last"), cell("stream"), by, rate(streamed.get("made_a_second"))
                     if streamed else "-", number(streamed.get("lost"))])
    return ("A kernel that does work between its marks, FMAs or loads from 1 GiB, milliseconds, medians of its "
            "launches but the first.\n\n"
            + table(["kernel", "plain", "keep-last", "stream", "draining alone", "events", "lost"], rows))


def held(row):
    """What a trace of run-iket holds."""
    if "failed" in row:
        return short(row["failed"])
    finished = f"program finished {len(row['finished'])} times; "
    if row["traces"]:
        return finished + f"trace: {row['launches']} launches, {row['marks']} marks, {row['ranges']} ranges"
    return finished + f"no trace; {row['files']} files, {size(row['bytes'])}"


def kept(row):
    if "written" not in row:
        return "no closing lines"
    return (f"{number(row['events_kept'])} of {number(row['events'])} events, {number(row['warps_kept'])} of "
            f"{number(row['warps'])} warps, {number(row['lost'])} of {number(row['written'])} records lost")


def cases(row):
    ours, theirs = row["ours"], row["theirs"]
    rows = []

    def add(what, our_code, our, name, their=None):
        their_row = theirs.get(name)
        if their_row is None:
            cells = [NOT, NOT]
        elif isinstance(their_row, dict) and "failed" in their_row:
            cells = ["-", short(their_row["failed"])]
        else:
            cells = their(their_row)
        rows.append([what, our_code, our, *cells])

    counts = ours["counts"]
    add(f"{counts[0]['iterations']} iterations the first time, {counts[1]['iterations']:,} the second",
        ", ".join(str(one["code"]) for one in counts),
        "; ".join(f"{one['iterations']:,}: {kept(one)}" for one in counts),
        "counts", lambda one: [one["code"], f"{' and '.join(map(str, one['finished']))} iterations; {held(one)}"])
    add("a kernel faults after others have finished (the program ends with 3)", ours["fault"]["code"],
        f"{kept(ours['fault'])}, {ours['fault'].get('complete', 0)} launches complete", "fault",
        lambda one: [one["code"], f"{held(one)}. \"{short(one['said'], 120)}\""])
    add("begin and end of every warp of many launches (run-iket: `--warp-trace`)",
        ", ".join(str(one["code"]) for one in ours["ends"]),
        "; ".join(f"`{one['options'] or 'as it is'}`: {kept(one)}" for one in ours["ends"]), "ends",
        lambda all_of_it: [", ".join(str(one["code"]) for one in all_of_it),
                           "; ".join(f"{one['launches']:,} launches: {held(one)}"
                                     + ("" if one["code"] == 0 else f" \"{short(one['said'], 120)}\"")
                                     for one in all_of_it)])

    def memory(one):
        if one.get("used_mib") is None or one.get("plain_mib") is None:
            return "no figure"
        return (f"**{one['used_mib'] - one['plain_mib']:+,.0f} MiB** of device memory, {one['plain_us']:.2f} -> "
                f"{one['us']:.2f} us a launch")

    add("device memory after very many launches, one mark a warp", ours["many"]["code"],
        f"{memory(ours['many'])}; {kept(ours['many'])}", "many",
        lambda one: [one["code"], f"{memory(one)}; program finished {len(one['finished'])} times"])
    return ("Exit codes are what the tool returned.\n\n"
            + table(["case", "exit", "`iket profile`", "exit", "run-iket"], rows))


SECTIONS = {"launch": ("Cost of a launch", launch), "start": ("Start-up", start), "stream": ("Streams", stream),
            "stopped": ("A reader that is held up", stopped), "drain": ("What draining costs the kernel", drain),
            "cases": ("Where run-iket fails", cases)}


def render(data):
    device = data["device"]
    driver = re.sub(r"^(\d+)0(\d)0$", r"\1.\2", str(device["cuda_driver"]))
    text = (f"{device['device']}, {device['multiprocessors']} SMs, CUDA driver {driver}, {data['cores']} cores; "
            f"{data['iket']}; run-iket {'in the same run' if data['run_iket'] else NOT}.\n")
    if data["simulated"]:
        text += "\nOn the software device: no figure here is a measurement.\n"
    for name, (title, make) in SECTIONS.items():
        if name in data["rows"]:
            try:
                made = make(data["rows"][name])
            except (KeyError, TypeError, IndexError) as problem:  # a mode without any run that ended well
                made = f"No table: {type(problem).__name__} {problem}; what there is stands in the JSON.\n"
            text += f"\n## {title}\n\n{made}"
        elif name in data["not_measured"]:
            text += f"\n## {title}\n\nNot measured: {short(data['not_measured'][name])}\n"
    if data["wrong"]:
        text += "\n## Wrong\n\n" + "".join(f"- {name}: {short(line, 400)}\n" for name, lines in data["wrong"].items()
                                        for line in lines)
    return text
