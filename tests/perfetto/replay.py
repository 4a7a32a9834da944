"""Replays a .pftrace as Perfetto's importer does, and refuses whatever it would drop or bend.

An independent statement of the import rules: sequence state, interning, clocks, tracks, stacks.
Every broken rule raises BadTrace with the number of the packet.
"""

import dataclasses

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BOOTTIME = 6
STATE_CLEARED = 1
NEEDS_STATE = 2
CHILD_ORDERING_EXPLICIT = 3
MERGE_NONE = 2


class BadTrace(Exception):
    pass


@dataclasses.dataclass
class Track:
    uuid: int
    name: str
    parent: int
    rank: int
    description: str


@dataclasses.dataclass
class Slice:
    track: int
    name: str
    begin: int
    end: int
    args: dict
    depth: int
    correlation: int = 0


@dataclasses.dataclass
class Instant:
    track: int
    name: str
    ns: int
    args: dict
    flows_out: tuple
    flows_in: tuple
    correlation: int = 0


@dataclasses.dataclass
class Stage:
    name: str
    queue: str
    begin: int
    end: int
    grid: tuple
    block: tuple
    args: dict


class _Sequence:
    def __init__(self):
        self.clear()

    def clear(self):
        self.names = {}
        self.arguments = {}
        self.queues = {}
        self.categories = {}
        self.contexts = {}
        self.places = {}
        self.clock_id = None
        self.clocks = {}
        self.incremental = set()


class Replay:
    """`tracks`, `slices`, `instants`, `stages`, `curves`, `attributes` of a trace."""

    def __init__(self, data):
        self.tracks = {}
        self.slices = []
        self.instants = []
        self.stages = []
        self.curves = {}  # by name: moments and values
        self.attributes = {}
        self.sequences = 0
        self._state = {}
        self._open = {}
        self._last_on_track = {}
        self._last_snapshot = 0
        trace = pb.Trace()
        trace.ParseFromString(data)
        for self._at, packet in enumerate(trace.packet):
            self._packet(packet)
        for uuid, stack in self._open.items():
            if stack:
                self._fail(f"track {self.path(uuid)} ends with {len(stack)} open slices")

    def path(self, uuid):
        names = []
        while uuid:
            track = self.tracks[uuid]
            names.append(track.name)
            uuid = track.parent
        return tuple(reversed(names))

    def _fail(self, text):
        raise BadTrace(f"packet {self._at}: {text}")

    def _packet(self, packet):
        if packet.HasField("trace_attributes"):
            for attribute in packet.trace_attributes.attribute:
                self.attributes[attribute.key] = (
                    attribute.string_value
                    if attribute.HasField("string_value")
                    else attribute.long_value
                )
            return
        if not packet.trusted_packet_sequence_id:
            self._fail("no sequence id")
        sequence = self._sequence(packet)
        if packet.HasField("clock_snapshot"):
            self._snapshot(packet.clock_snapshot, sequence)
        if packet.HasField("interned_data"):
            self._intern(packet.interned_data, sequence)
        if packet.HasField("trace_packet_defaults"):
            sequence.clock_id = packet.trace_packet_defaults.timestamp_clock_id
        if packet.HasField("track_descriptor"):
            self._descriptor(packet.track_descriptor)
        if packet.HasField("track_event"):
            self._event(packet.track_event, self._time(packet, sequence), sequence)
        if packet.HasField("gpu_render_stage_event"):
            self._stage(packet.gpu_render_stage_event, self._time(packet, sequence), sequence)

    def _sequence(self, packet):
        number = packet.trusted_packet_sequence_id
        flags = packet.sequence_flags
        if number not in self._state:
            if not flags & STATE_CLEARED:
                self._fail(f"sequence {number} starts without clearing its state")
            if not packet.first_packet_on_sequence:
                self._fail(f"first packet of sequence {number} does not say so")
            self._state[number] = _Sequence()
            self.sequences += 1
        elif flags & STATE_CLEARED:
            self._state[number].clear()
        elif not flags & NEEDS_STATE:
            self._fail("sequence_flags not set")
        return self._state[number]

    def _snapshot(self, snapshot, sequence):
        trace_time = None
        for clock in snapshot.clocks:
            if clock.clock_id == BOOTTIME:
                trace_time = clock.timestamp
            elif 64 <= clock.clock_id <= 127:
                sequence.clocks[clock.clock_id] = clock.timestamp
                if clock.is_incremental:
                    sequence.incremental.add(clock.clock_id)
            else:
                self._fail(f"clock {clock.clock_id}")
        if trace_time is None or set(sequence.clocks.values()) != {trace_time}:
            self._fail("snapshot does not tie its clock to the trace's")
        if trace_time < self._last_snapshot:
            self._fail("snapshot goes back in trace time")
        self._last_snapshot = trace_time

    def _time(self, packet, sequence):
        if not packet.HasField("timestamp"):
            self._fail("no timestamp")
        clock = packet.timestamp_clock_id or sequence.clock_id
        if not clock or clock == BOOTTIME:
            return packet.timestamp
        if clock not in sequence.clocks:
            self._fail(f"clock {clock} has no snapshot")
        if clock in sequence.incremental:
            sequence.clocks[clock] += packet.timestamp
            return sequence.clocks[clock]
        return packet.timestamp

    def _intern(self, data, sequence):
        for entries, table in (
            (data.event_names, sequence.names),
            (data.debug_annotation_names, sequence.arguments),
            (data.gpu_specifications, sequence.queues),
            (data.event_categories, sequence.categories),
        ):
            for entry in entries:
                if entry.iid == 0 or entry.iid in table:
                    self._fail(f"bad interning id {entry.iid}")
                table[entry.iid] = entry.name
        for entry in data.source_locations:
            if entry.iid == 0 or entry.iid in sequence.places:
                self._fail(f"bad interning id {entry.iid} of a place")
            sequence.places[entry.iid] = f"{entry.file_name}:{entry.line_number}"
        for entry in data.graphics_contexts:
            if entry.iid == 0:
                self._fail("bad context id")
            sequence.contexts[entry.iid] = entry.pid

    def _descriptor(self, descriptor):
        if descriptor.uuid == 0 or descriptor.uuid in self.tracks:
            self._fail(f"track {descriptor.uuid} described twice")
        if descriptor.parent_uuid and descriptor.parent_uuid not in self.tracks:
            self._fail(f"parent {descriptor.parent_uuid} is not known yet")
        if descriptor.sibling_merge_behavior != MERGE_NONE:
            self._fail(f"track {descriptor.name} may merge with its siblings")
        if descriptor.child_ordering != CHILD_ORDERING_EXPLICIT:
            self._fail(f"children of {descriptor.name} have no explicit order")
        if descriptor.HasField("counter"):
            if descriptor.name in self.curves or not descriptor.counter.unit_name:
                self._fail(f"curve {descriptor.name} is there already, or has no unit")
            self.curves[descriptor.name] = []
        self.tracks[descriptor.uuid] = Track(
            descriptor.uuid,
            descriptor.name,
            descriptor.parent_uuid,
            descriptor.sibling_order_rank,
            descriptor.description,
        )

    def _arguments(self, event, sequence):
        args = {}
        for annotation in event.debug_annotations:
            if annotation.name_iid:
                if annotation.name_iid not in sequence.arguments:
                    self._fail(f"argument iid {annotation.name_iid} unknown")
                name = sequence.arguments[annotation.name_iid]
            else:
                name = annotation.name
            if name in args:
                self._fail(f"argument {name} twice: the later value would win")
            args[name] = getattr(annotation, annotation.WhichOneof("value"))
        return args

    def _event(self, event, ns, sequence):
        track = event.track_uuid
        if track not in self.tracks:
            self._fail(f"track {track} is not described")
        if ns < self._last_on_track.get(track, 0):
            self._fail(f"time goes back on {self.path(track)}")
        self._last_on_track[track] = ns
        if (event.type == pb.TrackEvent.TYPE_COUNTER) != (self.tracks[track].name in self.curves):
            self._fail(f"a value on {self.path(track)}, or none where one belongs")
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            self.curves[self.tracks[track].name].append((ns, event.double_counter_value))
            return
        if event.name_iid and event.name_iid not in sequence.names:
            self._fail(f"name iid {event.name_iid} unknown")
        name = sequence.names[event.name_iid] if event.name_iid else event.name
        args = self._arguments(event, sequence)
        if event.source_location_iid:
            if event.source_location_iid not in sequence.places:
                self._fail(f"place {event.source_location_iid} unknown")
            args["source"] = sequence.places[event.source_location_iid]
        if event.type != pb.TrackEvent.TYPE_INSTANT and (event.flow_ids or event.terminating_flow_ids):
            self._fail("a flow of a slice")
        stack = self._open.setdefault(track, [])
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            if len(stack) >= 512:
                self._fail("deeper than 512")
            stack.append(Slice(track, name, ns, -1, args, len(stack), event.correlation_id))
            self.slices.append(stack[-1])
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            if not stack:
                self._fail(f"end with nothing open on {self.path(track)}")
            closed = stack.pop()
            closed.end = ns
            if set(args) & set(closed.args):
                self._fail("arguments of an end would overwrite those of its begin")
            closed.args.update(args)
        elif event.type == pb.TrackEvent.TYPE_INSTANT:
            self.instants.append(Instant(track, name, ns, args, tuple(event.flow_ids), tuple(event.terminating_flow_ids), event.correlation_id))
        else:
            self._fail(f"event type {event.type}")

    def _stage(self, event, ns, sequence):
        for iid in (event.hw_queue_iid, event.stage_iid):
            if iid not in sequence.queues:
                self._fail(f"GPU specification {iid} unknown")
        if event.context not in sequence.contexts:
            self._fail(f"context {event.context} unknown")
        launch = event.launch
        self.stages.append(
            Stage(
                event.name,
                sequence.queues[event.hw_queue_iid],
                ns,
                ns + event.duration,
                (launch.grid_size.x, launch.grid_size.y, launch.grid_size.z),
                (launch.workgroup_size.x, launch.workgroup_size.y, launch.workgroup_size.z),
                {
                    a.name: a.string_value if a.HasField("string_value") else a.uint_value
                    for a in launch.args
                },
            )
        )
