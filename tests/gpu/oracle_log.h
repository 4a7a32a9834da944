// SPDX-License-Identifier: Apache-2.0
//
// What the oracle's kernels and its program share: the layout of the log, and the events. Plain
// C++; pointers are those of the device.
#pragma once

namespace oracle {

// An event as the kernel saw it. The recorded clock lies in [before, after].
struct Entry {
  unsigned before, after;
  unsigned event;    // number in kEvents
  unsigned payload;  // bits; of several values what Digest() makes of them
};

struct WarpHeader {
  unsigned count;  // entries so far; may pass the capacity, then the log is of no use
  unsigned sm, grid_id, start;
  unsigned cta[3], warp;
};

// Kernel parameter: a header and `capacity` entries for each warp of the grid.
struct Log {
  WarpHeader* warps;
  Entry* entries;
  unsigned capacity;
};

enum Event : unsigned {
  kTick,
  kTickInt,
  kTickUnsigned,
  kTickFloat,
  kOdd,
  kEven,
  kLow,
  kMiddle,
  kHigh,
  kLoop,
  kCalled,
  kStay,
  kLeave,
  kLast,
  kPushPhase,
  kPushStep,
  kPop,
  kOuterBegin,
  kOuterEnd,
  kInnerBegin,
  kInnerEnd,
  kTile,
  kPoint
};

// What a reader must find them declared as.
struct Declared {
  const char *name, *kind, *payload;
};
inline constexpr Declared kEvents[] = {
    {"tick", "mark", "none"},
    {"tick", "mark", "i32"},
    {"tick", "mark", "u32"},
    {"tick", "mark", "f32"},
    {"odd lanes", "mark", "u32"},
    {"even lanes", "mark", "u32"},
    {"low", "mark", "none"},
    {"middle", "mark", "i32"},
    {"high", "mark", "f32"},
    {"loop", "mark", "i32"},
    {"called", "mark", "i32"},
    {"stay", "mark", "i32"},
    {"leave", "mark", "u32"},
    {"last", "mark", "none"},
    {"phase", "push", "none"},
    {"step", "push", "i32"},
    {"", "pop", "none"},
    {"outer", "range_begin", "none"},
    {"outer", "range_end", "none"},
    {"a range with quite a long name, as templates make them: inner<float, 128, 64>", "range_begin",
     "i32"},
    {"a range with quite a long name, as templates make them: inner<float, 128, 64>", "range_end",
     "none"},
    {"tile", "mark", "values"},
    {"point", "mark", "values"},
};

}  // namespace oracle
