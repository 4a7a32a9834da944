"""What Perfetto reads out of a .pftrace equals what the model says, slice by slice."""

import collections
import glob
import json
import math
import os
import re
import subprocess
import tempfile
import unittest

import replay

DUMP_MODEL = os.environ["IKET_DUMP_MODEL"]
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def frozen(args):
    """Arguments as something that can be counted; NaN equals NaN."""
    return frozenset(
        (name, "NaN" if isinstance(value, float) and math.isnan(value) else value)
        for name, value in args.items()
    )


def dims(size):
    return "x".join(str(n) for n in size)


class Expected:
    """The tracks, slices and instants that a dumped model must turn into."""

    def __init__(self, model):
        self.model = model
        ctas = [set() for _ in model["launches"]]
        for warp in model["warps"]:
            ctas[warp["launch"]].add(warp["cta"])
        self.by_slot = []
        for launch, seen in zip(model["launches"], ctas):
            count = math.prod(launch["grid"]) or len(seen)
            self.by_slot.append(count > 2000)

    def root(self):
        return "IKET (software device: no measurement)" if self.model["simulated"] else "IKET"

    def launch_label(self, launch):
        note = " (software device)" if self.model["simulated"] else ""
        kernel = launch["kernel"] or "unknown kernel"
        if launch["nobodys"]:
            return f"pieces of unknown warps, context {launch['context']}{note}"
        if launch["sequence"] is None:
            return f"#? {kernel} (grid id {launch['grid_id']}){note}"
        shape = f"<<<{dims(launch['grid'])}, {dims(launch['block'])}>>>"
        return f"#{launch['sequence']} {kernel}{shape}{note}"

    def path(self, warp_row):
        warp = self.model["warps"][warp_row]
        launch = self.model["launches"][warp["launch"]]
        path = [self.root(), self.launch_label(launch)]
        sm = f"SM {warp['sm']}"
        if warp["sm"] < len(launch["places"]):
            gpc, tpc = launch["places"][warp["sm"]]
            if gpc >= 0:
                path.append(f"GPC {gpc}")
            if tpc >= 0:
                sm = f"TPC {tpc} | {sm}"
        path.append(sm)
        if self.by_slot[warp["launch"]]:
            return (*path, f"slot {warp['slot']}")
        path.append("CTA ?" if warp["orphan"] else f"CTA {warp['cta']}")
        if warp["index"] is None:
            return (*path, f"warp ? (slot {warp['slot']})")
        return (*path, f"warp {warp['index']}")

    def row(self, event, child):
        """The path of a track of a warp, or of its lane or group."""
        path = self.path(event["warp"])
        own = [event["lane"]] if event["lane"] else []
        if event["group"]:
            own.insert(0, f"{event['group']} ({path[-1]})")
            path = path[:-1]
        if own:
            child = ": ".join(own + ([child] if child not in ("StackedRanges", "Marker") else []))
        return (*path, child)

    def values(self, event, key="payload"):
        """Arguments of a payload and of what else there is; what is taken gets a number."""
        if event.get(key) is None:
            return {}
        end = "end_" if key == "end_payload" else ""
        named = [(0, event[key + "_name"], event[key])]
        named += [(more["index"] + 1, more["name"], more["value"]) for more in event[key + "_more"]]
        args = {}
        for index, name, value in named:
            taken = {"payload", "end_payload", "cycles", "cta", "warp", "sm", "slot", "state", "unclosed"}
            # Others of the event are in front of it whether their records are kept or not.
            taken |= {"m"} if event["name"] == "many" and index == 2 else set()
            if not name:
                args[key] = value
            elif name in taken or name.startswith("end_"):
                args[f"{end}{index + 1}: {name}"] = value
            else:
                args[end + name] = value
        return args

    def slices(self):
        for row, warp in enumerate(self.model["warps"]):
            args = {"sm": warp["sm"], "slot": warp["slot"], "cycles": warp["cycles"]}
            if not warp["orphan"]:
                args["cta"] = warp["cta"]
            if warp["index"] is not None:
                args["warp"] = warp["index"]
            yield self.path(row), "Warp Life Time", warp["begin"], warp["end"], frozen(args)
        for r in self.model["ranges"]:
            child = f"Crossed {r['depth']}" if r["crossed"] else "StackedRanges"
            if r["token"]:
                child = f"{r['name']} ({r['depth'] + 1})" if r["depth"] else r["name"]
            args = self.values(r) | self.values(r, "end_payload")
            if r["unclosed"]:
                args["unclosed"] = True
            if r["source"]:
                args["source"] = r["source"]
            yield self.row(r, child), r["name"], r["begin"], r["end"], frozen(args)

    def instants(self):
        for mark in self.model["instants"]:
            name = mark["name"]
            if mark["unmatched"]:
                name = f"unmatched end of {name}" if name else "unmatched pop"
            elif mark["unknown"]:
                name = "unknown event"
            args = self.values(mark)
            if mark["source"]:
                args["source"] = mark["source"]
            yield self.row(mark, "Marker"), name, mark["ns"], frozen(args)

    def edge_label(self, edge):
        text = f"{edge['dag']}: " if edge["dag"] else ""
        text += f"{edge['from']} -> {edge['to']}"
        text += f", {edge['label']}" if edge["label"] else ""
        return text + (f", by {edge['via']}" if edge["via"] else "")

    def arrows(self):
        """Of declared dependencies: (label, (warp, ns), (warp, ns))."""
        ctas = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
        ranges = [(r, (r["begin_cycles"], r["begin"]), (r["end_cycles"], r["end"]))
                  for r in self.model["ranges"] if not r["unclosed"]]
        marks = [(m, (m["cycles"], m["ns"]), (m["cycles"], m["ns"]))
                 for m in self.model["instants"] if not m["unmatched"]]
        for entry, begin, end in ranges + marks:
            warp = self.model["warps"][entry["warp"]]
            if not warp["orphan"]:
                cta = (warp["launch"], warp["sm"], warp["cta"])
                ctas[cta][entry["name"]][entry["warp"]].append((begin, end, entry["payload"]))
        for edge in self.model["edges"]:
            for names in ctas.values():
                sources, targets = names.get(edge["from"], {}), names.get(edge["to"], {})
                same = set(sources) == set(targets)
                for source in sources:
                    for target in [source] if same else targets:
                        yield from self.arrows_of(edge, (source, sources[source]), (target, targets[target]))

    def arrows_of(self, edge, source, target):
        by_time = lambda one: one[0]  # noqa: E731
        by_payload = lambda one: (one[2], one[0])  # noqa: E731
        (source_warp, froms), (target_warp, tos) = source, target
        ordered = sorted(froms, key=by_time), sorted(tos, key=by_time)
        if edge["from"] == edge["to"]:
            ordered = ordered[0][:-1], ordered[0][1:]
        elif len(froms) != len(tos):
            return
        elif all(one[2] is not None for one in froms + tos):
            paired = sorted(froms, key=by_payload), sorted(tos, key=by_payload)
            if [one[2] for one in paired[0]] == [one[2] for one in paired[1]]:
                ordered = paired
        for (_, end, _), (begin, last, _) in zip(*ordered):
            if end <= last:
                to = last if begin < end else begin
                yield self.edge_label(edge), (source_warp, end[1]), (target_warp, to[1])


def counts(model, trace):
    """What golden.json holds of a capture."""
    return {
        "launches": len(model["launches"]),
        "warps": len(model["warps"]),
        "slices": sum("completeness" not in s.args for s in trace.slices),
        "instants": len(model["instants"]),
        "ranges": dict(sorted(collections.Counter(r["name"] for r in model["ranges"]).items())),
    }


class PerfettoTest(unittest.TestCase):
    maxDiff = 4000

    def make(self, folder, *arguments):
        out = os.path.join(folder, "model")
        subprocess.run([DUMP_MODEL, *map(str, arguments), out], check=True)
        with open(out + ".json", encoding="utf-8") as file:
            model = json.load(file)
        with open(out + ".pftrace", "rb") as file:
            return model, replay.Replay(file.read())

    def path_of(self, trace, uuid):
        # Second and further lanes of a slot are the slot's, too; roles are tested by themselves.
        return tuple(re.sub(r"^((?:slot|warp) \d+) \(.*\)$", r"\1", name, flags=re.S) for name in trace.path(uuid))

    def assert_same(self, expected, got, what):
        missing = expected - got
        surplus = got - expected
        self.assertFalse(
            missing or surplus,
            f"{what}: {len(missing)} missing, such as {list(missing)[:2]}; "
            f"{len(surplus)} that nobody recorded, such as {list(surplus)[:2]}",
        )

    def check(self, model, trace):
        expected = Expected(model)
        stateless = collections.Counter()
        for s in trace.slices:
            if "completeness" in s.args:
                continue  # a launch's, below
            state = s.args.pop("state", None)
            stateless[(self.path_of(trace, s.track), s.name, s.begin, s.end, frozen(s.args))] += 1
            if s.name == "Warp Life Time" and state is not None:
                self.assertNotEqual(state, "")
        self.assert_same(collections.Counter(expected.slices()), stateless, "slices")

        health_path = (expected.root(), "trace health")
        health = [i for i in trace.instants if trace.path(i.track) == health_path]
        labels = {expected.edge_label(edge) for edge in model["edges"]}
        marks = collections.Counter(
            (self.path_of(trace, i.track), i.name, i.ns, frozen(i.args))
            for i in trace.instants
            if trace.path(i.track) != health_path and trace.path(i.track)[-1] != "host launches" and i.name not in labels
        )
        self.assert_same(collections.Counter(expected.instants()), marks, "instants")
        self.check_flows(expected, trace)
        self.check_stages(expected, trace)
        self.check_launches(expected, trace)
        names = [i.name for i in health]
        for fault in model["faults"]:
            self.assertIn(fault, names)
        not_complete = sum(not launch["complete"] and not launch["nobodys"] for launch in model["launches"])
        self.assertEqual(sum(" launch #" in name for name in names), min(not_complete, 100))

    def check_flows(self, expected, trace):
        """Each arrow has a number of its own, one source and one target, and leads forward."""
        def place(event):
            return expected.path(event["warp"]), event["name"], event["ns"], event["payload"]

        def shown(instant):
            return self.path_of(trace, instant.track)[:-1], instant.name, instant.ns, instant.args.get("payload")

        by_event = {event["event"]: event for event in expected.model["instants"]}
        wanted = collections.Counter((place(by_event[flow["from"]]), place(by_event[flow["to"]]))
                                     for flow in expected.model["flows"])
        for label, (source, begin), (target, end) in expected.arrows():
            wanted[((expected.path(source), label, begin, None), (expected.path(target), label, end, None))] += 1
        sources = {number: i for i in trace.instants for number in i.flows_out}
        targets = {number: i for i in trace.instants for number in i.flows_in}
        self.assertEqual(len(sources), sum(len(i.flows_out) for i in trace.instants))
        self.assertEqual(len(targets), sum(len(i.flows_in) for i in trace.instants))
        self.assertEqual(set(sources), set(targets))
        got = collections.Counter((shown(sources[number]), shown(targets[number])) for number in sources)
        self.assert_same(wanted, got, "flows")
        self.assertTrue(all(sources[number].ns <= targets[number].ns for number in sources))

    def check_stages(self, expected, trace):
        launches = expected.model["launches"]
        self.assertEqual(len(trace.stages), len(launches))
        last_end = {}
        for stage, launch in zip(trace.stages, launches):
            self.assertEqual(stage.name, launch["kernel"] or "unknown kernel")
            self.assertEqual("Software device" in stage.queue, expected.model["simulated"])
            self.assertEqual((stage.begin, stage.end), (launch["begin"], launch["end"]))
            self.assertEqual(stage.grid, tuple(launch["grid"]))
            self.assertEqual(stage.block, tuple(launch["block"]))
            self.assertGreaterEqual(stage.begin, last_end.get(stage.queue, 0), stage.queue)
            last_end[stage.queue] = stage.end

    def check_launches(self, expected, trace):
        """Each has a slice on its track, and an instant where the host made it, if that is known: of one number."""
        launches = [launch for launch in expected.model["launches"] if launch["warps"]]
        slices = [s for s in trace.slices if "completeness" in s.args]
        self.assertEqual([(s.name, s.begin, s.end) for s in slices],
                         [(launch["kernel"] or "unknown kernel", launch["begin"], launch["end"]) for launch in launches])
        numbers = [s.correlation for s in slices]
        self.assertEqual(len(set(numbers)), len(numbers))
        self.assertTrue(all(numbers))
        label_of = {s.correlation: trace.tracks[s.track].name for s in slices}
        made = [i for i in trace.instants if trace.path(i.track)[-1] == "host launches"]
        self.assertEqual([i.ns for i in made], sorted(i.ns for i in made))
        for instant in made:
            self.assertEqual(label_of.get(instant.correlation, instant.name), instant.name)

    def check_order(self, trace):
        """Siblings have distinct ranks, so the viewer's order is ours."""
        ranks = collections.Counter((t.parent, t.rank) for t in trace.tracks.values())
        self.assertEqual([key for key, count in ranks.items() if count > 1], [])

    def synthetic(self, **options):
        default = {"seed": 1, "launches": 3, "ctas": 8, "events": 40, "window": 200}
        options = {**default, **options}
        with tempfile.TemporaryDirectory() as folder:
            return self.make(folder, "synthetic", *options.values())

    def test_random_models(self):
        for seed in range(1, 9):
            with self.subTest(seed=seed):
                model, trace = self.synthetic(seed=seed)
                self.check(model, trace)
                self.check_order(trace)
                self.assertTrue(any(r["crossed"] for r in model["ranges"]))
                self.assertTrue(any(r["unclosed"] for r in model["ranges"]))
                self.assertTrue(any(r["token"] and r["depth"] for r in model["ranges"]))
                self.assertGreater(len(model["flows"]), 5)
                self.assertGreater(trace.sequences, 10)

    def test_declared_dependencies(self):
        labels = collections.Counter()
        for seed in range(1, 9):
            for events in (1, 3, 12):
                with self.subTest(seed=seed, events=events), tempfile.TemporaryDirectory() as folder:
                    model, trace = self.make(folder, "edges", seed, 2, 8, events, 50)
                    self.check(model, trace)
                    self.check_order(trace)
                    labels.update(i.name for i in trace.instants if i.flows_out)
                    lines = [i.name for i in trace.instants if i.name.startswith("dependency ")]
                    self.assertIn("dependency d: load -> nobody: 0 arrows; no nobody",
                                  "\n".join(lines).replace("; no load", ""))
        for label in ("d: load -> tile, l", "d: tile -> stage, by v", "d: mark1 -> load", "d: load -> load"):
            self.assertGreater(labels[label], 3, label)

    def test_many_ctas_share_rows_of_warp_slots(self):
        model, trace = self.synthetic(launches=2, ctas=2500, events=6, window=100_000)
        self.check(model, trace)
        self.check_order(trace)
        rows = {s.track for s in trace.slices if s.name == "Warp Life Time"}
        self.assertLess(len(rows), 2 * 4 * 64 + 200)

    def test_kept_captures(self):
        """Every capture under tests/data, and the counts that its folder's golden.json holds."""
        captures = sorted(glob.glob(os.path.join(DATA, "*", "*.iketcap")))
        self.assertTrue(captures)
        for capture in captures:
            with self.subTest(capture=capture), tempfile.TemporaryDirectory() as folder:
                model, trace = self.make(folder, "capture", capture, 100_000)
                self.check(model, trace)
                self.check_golden(capture, model, trace)

    def check_golden(self, capture, model, trace):
        """golden.json beside the captures holds the counts of each; see make_golden.py."""
        path = os.path.join(os.path.dirname(capture), "golden.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                golden = json.load(file)
            self.assertEqual(counts(model, trace), golden[os.path.basename(capture)])
        if os.path.basename(os.path.dirname(capture)) != "h200":
            return  # made without a host
        made = [i.ns for i in trace.instants if trace.path(i.track)[-1] == "host launches"]
        self.assertEqual(len(made), len(model["launches"]))
        # No kernel begins before it was launched.
        self.assertLessEqual(made[0], model["launches"][0]["begin"])

    def test_rings_with_random_words_in_them(self):
        for seed in range(1, 7):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                model, trace = self.make(folder, "noisy", seed, 1000)
                self.check(model, trace)
                self.assertTrue(model["faults"])

    def test_one_window_and_tiny_windows_say_the_same(self):
        for window in (1, 1_000_000):
            model, trace = self.synthetic(window=window)
            self.check(model, trace)

    def test_a_software_device_is_named_on_every_track_that_heads_times(self):
        with tempfile.TemporaryDirectory() as folder:
            model, trace = self.make(folder, "simulated", 1, 3, 8, 40, 200)
        self.assertTrue(model["simulated"])
        self.check(model, trace)
        for track in trace.tracks.values():
            name = trace.path(track.uuid)[min(1, len(trace.path(track.uuid)) - 1)]
            if name != "trace health":
                self.assertIn("software device", name)
        self.assertIn("nothing here is a measurement", trace.attributes["iket.device.0.note"])
        _, trace = self.synthetic()
        self.assertFalse(any("oftware" in track.name for track in trace.tracks.values()))
        self.assertNotIn("iket.device.0.note", trace.attributes)

    def test_checker_can_fail(self):
        model, trace = self.synthetic()
        model["ranges"][0]["payload"] = 123456
        with self.assertRaises(AssertionError):
            self.check(model, trace)

    def test_roles_of_warps(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(DATA, "h200", "gemm_mma_marked.iketcap")
            _, trace = self.make(folder, "capture", capture, 100_000)
        roles = collections.Counter(track.name for track in trace.tracks.values() if track.name.startswith("warp "))
        self.assertEqual(len(roles), 12)
        for name, count in roles.items():
            warp = int(name.split()[1])
            self.assertEqual(name, f"warp {warp} ({'mma, full-wait' if warp < 8 else 'acquire, issue'})")
            self.assertEqual(count, 32)

    def test_active_warps_are_those_that_live(self):
        _, trace = self.synthetic()
        self.assertEqual(set(trace.curves), {"active warps", "events", "SM clock"})
        lives = [(it.begin, it.end) for it in trace.slices if it.name == "Warp Life Time"]
        points = trace.curves["active warps"]
        self.assertGreater(len(points), 10)
        for i, (ns, value) in enumerate(points):
            self.assertEqual(value, sum(begin <= ns < end for begin, end in lives), ns)
            if i + 1 < len(points):  # no change that has no point
                later = points[i + 1][0] - 1
                self.assertEqual(value, sum(begin <= later < end for begin, end in lives), later)
        self.assertEqual(points[-1][1], 0)

    def test_attributes(self):
        model, trace = self.synthetic()
        self.assertEqual(trace.attributes["iket.process_id"], 4711)
        self.assertEqual(trace.attributes["iket.clock"], "globaltimer")
        self.assertEqual(trace.attributes["iket.warps"], len(model["warps"]))


if __name__ == "__main__":
    unittest.main()
