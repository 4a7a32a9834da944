#!/usr/bin/env python3
"""iketcap: reads .iketcap captures. Written from docs/format.md alone, with Python's library alone.

An independent witness of the format, for tests and for people who want to look into a capture
without iket; slow (CRC-32C byte by byte) and simple on purpose.

    iketcap.py FILE           a summary
    iketcap.py --json FILE    everything, rings included
"""
import argparse
import dataclasses
import json
import struct
import sys
import zlib

MAGIC = b"iketcap\0"
HEADER_BYTES = 32
CHUNK_HEADER = struct.Struct("<4sHHQQIIII")
MAX_RAW = 1 << 26


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class NotACapture(Exception):
    """The file is no capture, or one of a version that this reader does not know."""


class Malformed(Exception):
    """A whole chunk whose contents break a rule."""


@dataclasses.dataclass
class Damage:
    chunks_whole: int = 0
    chunks_damaged: int = 0
    chunks_unknown: int = 0
    chunks_malformed: int = 0
    chunks_missing: int = 0
    bytes_skipped: int = 0
    strings_lost: int = 0
    file_header_damaged: bool = False
    cut: bool = True
    chunks_unwritten: int = 0
    bytes_unwritten: int = 0


@dataclasses.dataclass
class Chunk:
    kind: str
    version: int
    codec: int
    raw_bytes: int
    sequence: int
    stored: bytes


@dataclasses.dataclass
class Capture:
    sessions: list
    devices: list
    images: list
    kernels: list
    filters: list
    declarations: list
    attributes: list
    edges: list
    contexts: list
    exchanges: list
    placed_sms: list
    launches: list
    graph_nodes: list
    graph_launches: list
    counters: list
    notes: list
    rings: list
    damage: Damage


# ---- Sections 2 to 4: the chunks ----


def _right_header(data, at):
    if at + CHUNK_HEADER.size > len(data):
        return None
    fields = CHUNK_HEADER.unpack_from(data, at)
    if not (fields[0].isalpha() and fields[0].isupper()):
        return None
    return fields if crc32c(data[at:at + 36]) == fields[8] else None


def _search(data, at):
    while at < len(data):
        header = _right_header(data, at)
        if header and at + 40 + header[3] <= len(data):
            return at
        at += 1
    return len(data)


def scan(data):
    """The whole chunks of a file, and what was passed over."""
    if data[:8] != MAGIC:
        raise NotACapture("not a capture")
    damage = Damage()
    counted = 0  # bytes of the file header and of whole chunks
    at = 8
    if len(data) >= HEADER_BYTES and crc32c(data[:28]) == struct.unpack_from("<I", data, 28)[0]:
        version, header_bytes, _, required = struct.unpack_from("<4I", data, 8)
        if HEADER_BYTES <= header_bytes <= len(data) and header_bytes % 8 == 0:
            if version != 1 or required != 0:
                raise NotACapture(f"format version {version}, required flags {required:#x}")
            counted = at = header_bytes
    if counted == 0:
        damage.file_header_damaged = True
        at = _search(data, at)
    chunks, wasted = {}, 0
    numbers = set()  # of all right headers
    while at < len(data):
        header = _right_header(data, at)
        if not header:
            at = _search(data, at + 1)
            continue
        kind, chunk_version, codec, stored_bytes, raw_bytes, sequence, _, payload_crc, _ = header
        numbers.add(sequence)
        payload_at = at + 40
        stored = data[payload_at:payload_at + stored_bytes]
        if len(stored) < stored_bytes:
            at = _search(data, payload_at)
            continue
        end = min(payload_at + stored_bytes + -stored_bytes % 8, len(data))
        if crc32c(stored) == payload_crc:
            if sequence in chunks:
                at = end
                continue
            chunks[sequence] = Chunk(kind.decode(), chunk_version, codec, raw_bytes, sequence, stored)
            following = end
            if end < len(data) and not _right_header(data, end):
                following = _search(data, payload_at + stored_bytes)
            counted += min(end, following) - at
            at = following
            continue
        following = _right_header(data, end)
        if following and following[5] == sequence + 1:
            at = end
            continue
        wasted += stored_bytes
        at = len(data) if wasted > 8 * len(data) else _search(data, payload_at)
    damage.chunks_whole = len(chunks)
    damage.chunks_damaged = len(numbers) - len(chunks)
    damage.chunks_missing = max(numbers, default=-1) + 1 - len(numbers)
    damage.bytes_skipped = len(data) - counted
    return [chunk for _, chunk in sorted(chunks.items())], damage


# ---- Section 5: payloads ----


def raw_payload(chunk):
    if chunk.raw_bytes > MAX_RAW:
        raise Malformed("raw length")
    if chunk.codec == 0:
        if chunk.raw_bytes != len(chunk.stored):
            raise Malformed("raw length")
        return chunk.stored
    if chunk.codec == 2:
        return unpacked_records(chunk)
    if chunk.raw_bytes > 1032 * len(chunk.stored) + 64:
        raise Malformed("raw length")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(chunk.stored, chunk.raw_bytes + 1)
    except zlib.error as error:
        raise Malformed(str(error)) from error
    if len(raw) != chunk.raw_bytes or not inflater.eof or inflater.unused_data:
        raise Malformed("zlib")
    return raw


def unpacked_records(chunk):
    """Section 7."""
    table = Table(chunk.stored, 48, 96)
    counts = [row[0] for row in table.rows("<4xI88x")]
    records = sum(counts)
    raw = bytearray(chunk.stored[:len(chunk.stored) - len(table.data)])
    if chunk.raw_bytes != len(raw) + 16 * records or records > len(table.data):
        raise Malformed("raw length")
    tags, values, at = table.data[:records], table.data[records:], 0

    def value(size):
        nonlocal at
        if at + size > len(values):
            raise Malformed("values")
        at += size
        return int.from_bytes(values[at - size:at], "little")

    def meant(folded):
        return -(folded + 1) // 2 if folded & 1 else folded // 2

    words, cycles, newest, before = [0] * 256, [0] * 256, [[0, 0]] * 256, [[0, 0]] * 256
    following = [0] * 1024
    sizes = (0, 1, 2, 4)
    identity, done = 0, 0
    for count in counts:
        clock, history = value(4) if count else 0, 0
        for tag in tags[done:done + count]:
            slot, c, payload = following[history], tag - 192, [0, 0]
            if tag < 192:
                c = value(sizes[tag >> 4 & 3])
                if tag >> 6 == 1:
                    slot = value(1)
                elif tag >> 6 == 2:
                    word = value(4)
                    slot = (word * 0x9E3779B1 & 0xFFFFFFFF) >> 24
                    words[slot] = word
                payload = [value(sizes[tag >> 2 & 3]), value(sizes[tag & 3])]
            following[history] = slot
            history = (history * 8 ^ slot) % 1024
            cycles[slot] = cycles[slot] + meant(c) & 0xFFFFFFFF
            if words[slot] & 0x8000FC00 == 0x80000C00:
                identity = first = identity + cycles[slot] & 0xFFFFFFFF
            else:
                clock = first = clock + cycles[slot] & 0xFFFFFFFF
            after = [2 * new - old + meant(off) & 0xFFFFFFFF
                     for new, old, off in zip(newest[slot], before[slot], payload)]
            before[slot], newest[slot] = newest[slot], after
            raw += struct.pack("<4I", first, words[slot], *after)
        done += count
    if at != len(values):
        raise Malformed("values")
    return bytes(raw)


class Table:
    """Head, rows and data of a payload."""

    def __init__(self, raw, min_head, min_row):
        if len(raw) < 16:
            raise Malformed("no table header")
        head_bytes, self.count, self.row_bytes, _ = struct.unpack_from("<4I", raw)
        if head_bytes % 8 or self.row_bytes % 8 or head_bytes < min_head:
            raise Malformed("head or row size")
        if self.row_bytes < min_row or head_bytes + self.count * self.row_bytes > len(raw):
            raise Malformed("rows")
        self.head = raw[:head_bytes]
        self.table = raw[head_bytes:head_bytes + self.count * self.row_bytes]
        self.data = raw[head_bytes + self.count * self.row_bytes:]

    def rows(self, form):
        for row in range(self.count):
            yield struct.unpack_from(form, self.table, row * self.row_bytes)

    def columns(self, form):
        """Rows of a transposed table whose columns are the letters of `form`."""
        columns, at = [], 0
        for letter in form:
            column = struct.Struct(f"<{self.count}{letter}")
            columns.append(column.unpack_from(self.table, at))
            at += column.size
        return zip(*columns)


class Strings:
    def __init__(self):
        self.by_id = {}
        self.lost = 0

    def add(self, raw):
        table = Table(raw, 24, 8)
        first = struct.unpack_from("<I", table.head, 16)[0]
        lengths = [row[0] for row in table.rows("<II")]
        ids = range(first, first + len(lengths))
        if first == 0 or first + len(lengths) > 0xFFFFFFFF or sum(lengths) != len(table.data):
            raise Malformed("strings")
        if any(string in self.by_id for string in ids):
            raise Malformed("string defined twice")
        at = 0
        for string, length in zip(ids, lengths):
            self.by_id[string] = table.data[at:at + length]
            at += length

    def raw(self, string):
        if string == 0:
            return b""
        if string not in self.by_id:
            self.lost += 1
            return b"lost#%d" % string
        return self.by_id[string]

    def text(self, string):
        return _text(self.raw(string))


def _text(raw):
    """UTF-8; bytes that are none are shown as \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def _words(raw):
    words = raw.split(b"\0")
    return [_text(word) for word in (words[:-1] if words[-1] == b"" else words)]


# ---- Section 6: kinds ----


def sessions(raw, strings):
    for (index, flags, pid, status, signal, version, argv, host, start_realtime, start,
         end_realtime, end, directory) in Table(raw, 16, 72).rows("<IIIiiIIIqqqqI4x"):
        yield index, {
            "index": index, "ended": bool(flags & 1), "software_device": bool(flags & 2),
            "pid": pid, "exit_status": status, "signal": signal,
            "tool_version": strings.text(version), "command_line": _words(strings.raw(argv)),
            "host": strings.text(host), "start_realtime_ns": start_realtime, "start_ns": start,
            "end_realtime_ns": end_realtime, "end_ns": end,
            "working_directory": strings.text(directory)}


def devices(raw, strings):
    table = Table(raw, 88, 8)
    (index, flags, uuid, name, major, minor, sms, clock_max, clock, cuda, memory,
     driver) = struct.unpack_from("<II16sIHHIIIIQI", table.head, 16)
    yield index, {
        "index": index, "simulated": bool(flags & 1), "uuid": uuid.hex(),
        "name": strings.text(name), "compute_major": major, "compute_minor": minor,
        "sm_count": sms, "sm_clock_max_khz": clock_max, "sm_clock_khz": clock,
        "cuda_version": cuda, "driver_version": strings.text(driver), "memory_bytes": memory,
        "topology": [list(row) for row in table.rows("<ii")]}


def images(raw, strings):
    for index, sm, content, marked, source, size in Table(raw, 16, 32).rows("<IIQIIQ"):
        yield index, {"index": index, "sm": sm, "hash": content, "bytes": size,
                      "marked_functions": marked, "source": strings.text(source)}


def kernels(raw, strings):
    for (index, image, mangled, demangled, state, refusal, before, after, sites, refused,
         shared, left_out) in Table(raw, 16, 48).rows("<IIIIB3xIHHIIII4x"):
        yield index, {
            "index": index, "image": image, "mangled_name": strings.text(mangled),
            "demangled_name": strings.text(demangled), "state": state,
            "refusal": strings.text(refusal), "registers_before": before,
            "registers_after": after, "sites": sites, "sites_refused": refused,
            "static_shared_bytes": shared, "sites_left_out": left_out}


def filters(raw, strings):
    del strings
    for kernel, flags, x, y, z, sample, cx, cy, cz in Table(raw, 16, 40).rows("<II3II3I4x"):
        yield kernel, {
            "kernel": kernel, "by_cluster": bool(flags & 1), "by_sm": bool(flags & 2),
            "cluster": [x, y, z], "sample": sample, "cluster_ctas": [cx, cy, cz]}


def declarations(raw, strings):
    for image, event, kind, payload, name, colour, file, line, flags in Table(raw, 16, 32).rows(
            "<IIBB2xIIIII"):
        yield (image, event), {
            "image": image, "event": event, "kind": kind, "payload": payload,
            "name": strings.text(name), "colour": colour, "file": strings.text(file),
            "line": line, "left_out": bool(flags & 1)}


def attributes(raw, strings):
    for image, event, position, what, number, text in Table(raw, 16, 24).rows("<IIIBB2xI4x"):
        yield (image, event, position), {
            "image": image, "event": event, "position": position, "what": what,
            "number": number, "text": strings.text(text)}


def edges(raw, strings):
    for image, *names in Table(raw, 16, 32).rows("<6I8x"):
        texts = [strings.raw(name) for name in names]
        yield (image, *texts), {"image": image, **{
            field: _text(text) for field, text in zip(("dag", "from", "to", "label", "via"), texts)}}


def contexts(raw, strings):
    del strings
    for index, device, ring, slots, sms, memory, flags, words in Table(raw, 16, 48).rows(
            "<IIQIIQII8x"):
        yield index, {
            "index": index, "device": device, "ring_bytes": ring, "slots_per_sm": slots,
            "sm_count": sms, "device_memory_bytes": memory, "sink_only": bool(flags & 1),
            "in_process_drain": bool(flags & 2), "in_host": bool(flags & 4), "recording_version": words}


def launches(raw, strings):
    del strings
    for (sequence, stream, time, kernel, context, gx, gy, gz, bx, by, bz, cx, cy, cz, shared, flags,
         _) in Table(raw, 16, 80).columns("QQqIIIIIIIIIIIIII"):
        yield None, {
            "sequence": sequence, "stream": stream, "host_ns": time, "kernel": kernel,
            "context": context, "grid": [gx, gy, gz], "block": [bx, by, bz],
            "cluster": [cx, cy, cz], "dynamic_shared_bytes": shared,
            "cooperative": bool(flags & 1), "graph": bool(flags & 2), "failed": bool(flags & 4),
            "left_out": bool(flags & 8)}


def graph_nodes(raw, strings):
    del strings
    for (graph, node, since, kernel, gx, gy, gz, bx, by, bz, cx, cy, cz, shared,
         flags) in Table(raw, 16, 72).rows("<IIQI3I3I3III8x"):
        yield None, {
            "graph": graph, "node": node, "since": since, "kernel": kernel, "grid": [gx, gy, gz],
            "block": [bx, by, bz], "cluster": [cx, cy, cz], "dynamic_shared_bytes": shared,
            "cooperative": bool(flags & 1), "ordered": bool(flags & 2),
            "disabled": bool(flags & 4), "uncounted": bool(flags & 8),
            "conditional": bool(flags & 16)}


def graph_launches(raw, strings):
    del strings
    for sequence, stream, time, graph, context, flags, _ in Table(raw, 16, 40).columns("QQqIIII"):
        yield None, {"sequence": sequence, "stream": stream, "host_ns": time, "graph": graph,
                     "context": context, "captured": bool(flags & 2), "failed": bool(flags & 4),
                     "left_out": bool(flags & 8)}


def exchanges(raw, strings):
    del strings
    for context, timer, before, after, realtime in Table(raw, 16, 40).rows("<I4xQqqq"):
        yield None, {"context": context, "timer_ns": timer, "before_ns": before, "after_ns": after,
                     "realtime_ns": realtime}


def placed_sms(raw, strings):
    del strings
    for context, sm, tpc, gpc in Table(raw, 16, 16).rows("<IIii"):
        yield (context, sm), {"context": context, "sm": sm, "tpc": tpc, "gpc": gpc}


def counters(raw, strings):
    for name, value in Table(raw, 16, 16).rows("<I4xQ"):
        name = strings.raw(name)
        yield name, {"name": _text(name), "value": value}


def notes(raw, strings):
    for severity, kernel, time, text in Table(raw, 16, 24).rows("<B3xiqI4x"):
        yield None, {"severity": severity, "kernel": kernel, "time_ns": time,
                     "text": strings.text(text)}


def ring_block(raw):
    table = Table(raw, 48, 96)
    context, flags, moment, begin = struct.unpack_from("<IIQq", table.head, 16)
    rings, at = [], 0
    for ring, count, written, first, header in table.rows("<IIQQ8x64s"):
        if written % 16 or first % 16 or first + 16 * count > written:
            raise Malformed("ring positions")
        if at + 16 * count > len(table.data):
            raise Malformed("records past the end")
        records = struct.unpack_from(f"<{4 * count}I", table.data, at)
        at += 16 * count
        rings.append({"ring": ring, "written": written, "first": first,
                      "header": list(struct.unpack("<16I", header)),
                      "records": [list(records[i:i + 4]) for i in range(0, len(records), 4)]})
    if at != len(table.data):
        raise Malformed("data left over")
    return {"context": context, "live": bool(flags & 1), "last_of_moment": bool(flags & 2),
            "settled": bool(flags & 4),
            "moment": moment, "begin_ns": begin, "rings": rings}


FACTS = {"SESS": sessions, "DEVC": devices, "IMAG": images, "KERN": kernels, "SLCT": filters,
         "DECL": declarations, "ATTR": attributes, "EDGE": edges, "CTXT": contexts, "LNCH": launches, "GRPH": graph_nodes, "GLCH": graph_launches, "CLKX": exchanges, "PLAC": placed_sms,
         "LOSS": counters, "NOTE": notes}


def read(data):
    """The capture in `data`, as far as it can be read. Raises NotACapture."""
    chunks, damage = scan(data)
    known = [chunk for chunk in chunks if chunk.version == 1
             and chunk.codec <= (2 if chunk.kind == "RING" else 1)
             and chunk.kind in (*FACTS, "STRS", "RING", "DONE")]
    damage.chunks_unknown = len(chunks) - len(known)
    strings, found, rings = Strings(), {kind: [] for kind in FACTS}, []
    budget = (64 << 20) + 32 * len(data)
    # Strings first, so that the order in the file does not matter.
    for chunk in sorted(known, key=lambda chunk: chunk.kind != "STRS"):
        try:
            if chunk.kind != "RING":
                if chunk.raw_bytes > budget:
                    raise Malformed("too much for a file of this size")
                budget -= chunk.raw_bytes
            raw = raw_payload(chunk)
            if chunk.kind == "STRS":
                strings.add(raw)
            elif chunk.kind == "RING":
                rings.append(ring_block(raw))
            elif chunk.kind == "DONE":
                head = Table(raw, 40, 16).head
                _, damage.chunks_unwritten, damage.bytes_unwritten = struct.unpack_from(
                    "<QQQ", head, 16)
                damage.cut = False
            else:
                found[chunk.kind] += FACTS[chunk.kind](raw, strings)
        except Malformed:
            damage.chunks_malformed += 1
    damage.strings_lost = strings.lost

    def latest(kind):
        return [row for _, row in sorted(dict(found[kind]).items())]

    def every(kind):
        return [row for _, row in found[kind]]

    return Capture(latest("SESS"), latest("DEVC"), latest("IMAG"), latest("KERN"), latest("SLCT"),
                   latest("DECL"), latest("ATTR"), latest("EDGE"), latest("CTXT"), every("CLKX"), latest("PLAC"), every("LNCH"), every("GRPH"), every("GLCH"), latest("LOSS"),
                   every("NOTE"), rings, damage)


def summary(capture):
    lines = []
    for session in capture.sessions:
        lines.append(f"process {session['pid']} on {session['host']}: "
                     f"{' '.join(session['command_line'])}")
    for field in dataclasses.fields(capture):
        value = getattr(capture, field.name)
        if isinstance(value, list):
            lines.append(f"{len(value):8} {field.name}")
    records = sum(len(ring["records"]) for block in capture.rings for ring in block["rings"])
    lines.append(f"{records:8} records kept")
    lines += [f"{field.name}: {getattr(capture.damage, field.name)}"
              for field in dataclasses.fields(Damage) if getattr(capture.damage, field.name)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="reads .iketcap captures")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("file")
    arguments = parser.parse_args()
    try:
        with open(arguments.file, "rb") as file:
            capture = read(file.read())
    except (OSError, NotACapture) as error:
        print(f"{arguments.file}: {error}", file=sys.stderr)
        return 3
    print(json.dumps(dataclasses.asdict(capture)) if arguments.json else summary(capture))
    return 0


if __name__ == "__main__":
    sys.exit(main())
