"""Marks and ranges for Triton kernels: copy this file beside yours.

    import iket_triton as iket

    @triton.jit
    def kernel(...):
        for k in range(n):
            iket.begin("load", k)       # a range; k, an integer, shows beside the name
            ...
            iket.end("load")
        iket.mark("done")               # a point in time; iket.push(name) and iket.pop() are there, too

Each is inline PTX on scalars, which Triton gives to every warp once, and says that it has side effects, so that
it stays, and stays in order. The text is the placeholder of docs/placeholder.md: the declaration of the event is
a variable inside its braces, so that nothing has to stand at the top of Triton's PTX, and no hook is needed.
Names are constants of the kernel. The text is that for compute capability 9.0 and later (%cluster_ctarank).

Run without `iket profile` a mark reads the clock and writes nothing. With $IKET_TRITON=0, as on an older GPU, there
are none; Triton keeps the two builds apart in its cache. Tried with Triton 3.6.
"""

import os

import triton
import triton.language as tl

ON = tl.constexpr(os.environ.get("IKET_TRITON", "1") != "0")


@triton.constexpr_function
def placeholder(kind, payload, name):
    """The PTX of one event. kind: 0 mark, 1 push, 2 pop, 3 range begin, 4 range end. payload: 0 none, 5 int32.
    Writes 0 to operand 0, which Triton wants to have; a payload is operand 1, and stored inverted."""
    text = name.encode()
    payload = payload and payload | 0x80
    number = 0x811c9dc5  # FNV-1a
    for byte in bytes([kind, payload]) + text:
        number = ((number ^ byte) * 0x01000193) & 0xffffffff
    number = (number & 0x7fffffff) or 1
    declaration = (b"IKET" + (16).to_bytes(2, "little") + bytes([kind, payload]) + number.to_bytes(4, "little")
                   + len(text).to_bytes(4, "little") + text + b"\0")
    lines = [".global .align 4 .b8 iket_decl[] = {" + ",".join(str(byte) for byte in declaration) + "};",
             ".reg .b32 t, none, top, value;",
             ".reg .pred p;",
             # The top of the shared memory that the driver reserves, of this CTA of the cluster.
             "mov.u32 top, %reserved_smem_offset_cap;",
             "mov.u32 t, %cluster_ctarank;",
             "mad.lo.u32 top, t, 0x1000000, top;"]
    if payload == 0:
        lines += ["mov.u32 t, %clock;",
                  f"setp.eq.u32 p, t, {number};",
                  f"@p st.volatile.shared.v2.u32 [top+-8], {{t, {number}}};"]
    else:
        lines += ["not.b32 value, $1;",
                  "pmevent.mask 0xe200;",
                  "mov.u32 t, %clock;",
                  "setp.eq.u32 p, t, value;",
                  f"@p st.volatile.shared.v4.u32 [top+-16], {{t, {number}, value, none}};"]
    return "{\n" + "\n".join(lines + ["pmevent.mask 0xe110;", "mov.u32 $0, 0;"]) + "\n}"


@triton.jit
def event(kind: tl.constexpr, name: tl.constexpr, payload):
    if ON:
        if payload is None:
            tl.inline_asm_elementwise(placeholder(kind, 0, name), "=r", [], dtype=tl.int32,
                                      is_pure=False, pack=1)
        else:
            value = tl.cast(payload, tl.int32)
            # A tensor would be marked for each of its elements.
            tl.static_assert(len(value.shape) == 0, "iket: a payload is one integer, not a tensor")
            tl.inline_asm_elementwise(placeholder(kind, 5, name), "=r,r", [value], dtype=tl.int32,
                                      is_pure=False, pack=1)


@triton.jit
def mark(name: tl.constexpr, payload=None):
    event(0, name, payload)


@triton.jit
def push(name: tl.constexpr, payload=None):
    event(1, name, payload)


@triton.jit
def pop():
    event(2, "", None)


@triton.jit
def begin(name: tl.constexpr, payload=None):
    event(3, name, payload)


@triton.jit
def end(name: tl.constexpr):
    event(4, name, None)
