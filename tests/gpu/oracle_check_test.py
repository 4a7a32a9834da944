"""The oracle's checker says yes to a capture that equals the log, and no to each way of lying."""
import copy
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle_check as oracle  # noqa: E402
from oracle_check import iketcap  # noqa: E402

TICK, POP = 0x11, 0x22
DECLARED = [["tick", "mark", "i32"], ["", "pop", "none"]]
RING_BYTES = 4096


def log_of(warps, path):
    """A log of one launch of one-warp CTAs on one SM; `warps` are their events' payloads."""
    with open(path, "w", encoding="utf-8") as file:
        print(json.dumps({"case": "made", "events": DECLARED}), file=file)
        print(json.dumps({"kernel": "K", "grid": [len(warps), 1, 1], "block": [32, 1, 1]}),
              file=file)
        for cta, values in enumerate(warps):
            start = 2**32 - 500 + 100000 * cta  # the clock wraps in the first warp
            events = []
            for i, value in enumerate(values):
                at = start + 100 * i
                events.append([0, value, at + 10 & oracle.WORD, at + 30 & oracle.WORD])
                events.append([1, 0, at + 40 & oracle.WORD, at + 60 & oracle.WORD])
            print(json.dumps({"sm": 0, "grid_id": 9, "cta": [cta, 0, 0], "warp": 0,
                              "start": start & oracle.WORD, "events": events}), file=file)


def capture_of(warps):
    """What a right recorder keeps of it in one ring."""
    records, previous_end, identity = [], 0, None
    for cta, values in enumerate(warps):
        start = 2**32 - 500 + 100000 * cta
        identity = [cta, oracle.TAG_IDENTITY, 0, 9]
        records += [[start - 5 & oracle.WORD, oracle.TAG_BEGIN | 3, 0, previous_end], identity]
        for i, value in enumerate(values):
            at = start + 100 * i
            records += [[at + 20 & oracle.WORD, TICK, value, 77], [at + 50 & oracle.WORD, POP, 1, 2]]
        previous_end = start + 100 * len(values) + 70 & oracle.WORD
    written = 16 * len(records)
    kept = records[-RING_BYTES // 16:]
    ring = {"ring": 5, "written": written, "first": written - 16 * len(kept), "records": kept,
            "header": [written, previous_end, 0, 0, *identity] + [0] * 8}
    block = {"context": 0, "live": False, "last_of_moment": True, "settled": False, "moment": 0, "rings": [ring]}
    declarations = [{"image": 0, "event": TICK, "name": "tick", "kind": 0, "payload": 5},
                    {"image": 0, "event": POP, "name": "", "kind": 2, "payload": 0}]
    return iketcap.Capture(
        sessions=[], devices=[], images=[], kernels=[{"index": 3, "mangled_name": "K", "state": 1}],
        filters=[], declarations=declarations, attributes=[], edges=[],
        contexts=[{"index": 0, "slots_per_sm": 64}], exchanges=[], placed_sms=[], launches=[], graph_nodes=[],
        graph_launches=[], counters=[], notes=[], rings=[block], damage=iketcap.Damage())


class OracleCheckTest(unittest.TestCase):
    def compare(self, warps, change=lambda ring: None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            log_of(warps, path)
            capture = copy.deepcopy(capture_of(warps))
            change(capture.rings[0]["rings"][0])
            return oracle.compare(oracle.Log(path), oracle.Rings(capture))

    def test_equal(self):
        self.assertEqual(self.compare([[1, 2, 3], [], [4]]), (3, 8))

    def test_lapped(self):
        """Twenty laps: what is kept is the log's tail; the rest is owed and counted."""
        self.assertEqual(self.compare([range(2560), range(100)]), (2, 254))
        self.assertEqual(self.compare([[1], range(2560)]), (1, 256))

    def test_whole_warp_behind_an_anonymous_tail(self):
        self.assertEqual(self.compare([[1], range(127), []]), (2, 254))

    def test_tails_of_warps_that_ran_in_step(self):
        """A tail that fits two warps does not take the one that another tail needs."""
        label = ("tick", "mark", "i32", 1)
        logged = {warp: {"key": warp, "sm": 0, "start": 0, "events": [(label, warp, 30 + warp)]}
                  for warp in (0, 10)}
        for clocks, whose in {(20, 5): [10, 0], (5, 20): [0, 10], (35, 20): [10, 0]}.items():
            tails = [oracle.Warp(0, None, None, None, 90, [oracle.Event(clock, label)]) for clock in clocks]
            found = oracle.tails_of_warps(tails, dict(logged), logged.get)
            self.assertEqual([warp["key"] for warp in found], whose)
        for clocks in ((5, 5), (45,), (20, 20, 20)):
            tails = [oracle.Warp(0, None, None, None, 90, [oracle.Event(clock, label)]) for clock in clocks]
            with self.assertRaises(oracle.Differs):
                oracle.tails_of_warps(tails, dict(logged), logged.get)

    def test_differences(self):
        def set_word(record, word, value):
            def change(ring):
                ring["records"][record][word] = value
            return change

        def drop(ring):
            del ring["records"][3]
            ring["written"] -= 16
            ring["header"][0] -= 16

        def uncounted(ring):
            ring["written"] += 16

        # Records: 0 begin, 1 identity, 2 tick, 3 pop, 4 tick, 5 pop, 6 begin, ...
        for what, change in {
            "payload": set_word(2, 2, 8),
            "late by a cycle": set_word(2, 0, 2**32 - 500 + 31),
            "early by a cycle": set_word(3, 0, 2**32 - 500 + 39),
            "another event": set_word(3, 1, TICK),
            "no event": set_word(3, 1, 0x33),
            "another CTA": set_word(1, 0, 1),
            "no such CTA": set_word(1, 0, 7),
            "another grid": set_word(1, 3, 8),
            "no such kernel": set_word(0, 1, oracle.TAG_BEGIN | 4),
            "ended before its last event": set_word(6, 3, 2**32 - 500 + 159),
            "a record missing": drop,
            "a record too many": uncounted,
        }.items():
            with self.subTest(what), self.assertRaises(oracle.Differs):
                self.compare([[1, 2], [3]], change)

    def test_declared_twice(self):
        capture = capture_of([[1]])
        capture.declarations.append({"image": 0, "event": TICK, "name": "tock", "kind": 0, "payload": 5})
        with self.assertRaises(oracle.Differs):
            oracle.Rings(capture)


if __name__ == "__main__":
    unittest.main()
