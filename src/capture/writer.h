// writer.h: writes a capture file (docs/format.md), chunk by chunk.
//
// Made to live in somebody else's process: no exception of its own, no stdio, no thread, no lock
// (the caller serialises calls; but see WriterOptions::shared). A chunk goes out whole with each
// call, so a process that dies leaves all that it had appended. Strings are interned here and
// written before their first use.
//
// When the disk is full the writer says so once, as the error of that call; later calls succeed,
// drop their data and count it (chunks_lost). Finish then still tries to write the small closing
// chunk, which carries that count. What was written before stays readable.
//
// Shared writers: several threads may append rings at once, and one after the other anything else.
// Checksum and copy of a chunk run beside those of others; only its number and its place in the
// file are taken one at a time. A chunk that fails when others have later numbers counts as missing
// too; those that were being written when the process died are holes, which readers step over and
// count.
//
// Cost: one copy of the data and one deflate pass (level 1) a chunk; memory about two chunks (9 MB)
// at most, plus the interned strings. Without compression rings go to the sink from where they lie:
// one checksum pass, and whatever the sink does. Packed (pack_records.h) they take a tenth to a
// half of that room at 300 M records a second; memory one chunk for each thread that appends.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "capture/content.h"
#include "capture/sink.h"

namespace iket::capture {

struct WriterOptions {
  int compression_level = 1;             // libdeflate's 1..12; 0 stores everything raw
  size_t chunk_bytes = size_t{4} << 20;  // raw size at which tables and rings start a new chunk
  bool shared = false;  // rings are appended by several threads at once; nothing is deflated
  // Rings are packed in place of being compressed: for who has to write very many of them.
  bool pack_rings = false;
};

template <typename T>
concept TableRow =
    std::same_as<T, Session> || std::same_as<T, Image> || std::same_as<T, Kernel> ||
    std::same_as<T, KernelFilter> || std::same_as<T, Declaration> || std::same_as<T, Attribute> ||
    std::same_as<T, DeclaredEdge> || std::same_as<T, Context> || std::same_as<T, ClockExchange> ||
    std::same_as<T, PlacedSm> || std::same_as<T, Launch> || std::same_as<T, GraphNode> ||
    std::same_as<T, GraphLaunch> || std::same_as<T, Counter> || std::same_as<T, Note>;

class Writer {
 public:
  // Writes the file header. The sink is owned. Error: kSystem.
  static Result<Writer> Create(std::unique_ptr<ByteSink> sink, WriterOptions options = {});
  // The same on a new file at `path`.
  static Result<Writer> Create(const std::string& path, WriterOptions options = {});

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();  // does not call Finish: a file without DONE says that its writer died

  // Each call appends one chunk (tables above chunk_bytes: several), preceded by new strings.
  Result<void> Append(std::span<const Session> sessions);
  Result<void> Append(const Device& device);
  Result<void> Append(std::span<const Image> images);
  Result<void> Append(std::span<const Kernel> kernels);
  Result<void> Append(std::span<const KernelFilter> filters);
  Result<void> Append(std::span<const Declaration> declarations);
  Result<void> Append(std::span<const Attribute> attributes);
  Result<void> Append(std::span<const DeclaredEdge> edges);
  Result<void> Append(std::span<const Context> contexts);
  Result<void> Append(std::span<const ClockExchange> exchanges);
  Result<void> Append(std::span<const PlacedSm> placed);
  Result<void> Append(std::span<const Launch> launches);
  Result<void> Append(std::span<const GraphNode> nodes);
  Result<void> Append(std::span<const GraphLaunch> launches);
  Result<void> Append(std::span<const Counter> counters);
  Result<void> Append(std::span<const Note> notes);

  // One object instead of a span.
  template <typename T>
    requires TableRow<T>
  Result<void> Append(const T& one) {
    return Append(std::span<const T>(&one, 1));
  }

  // The rings of one context at one moment. Rings without a record may be left out unless their
  // header says something. Error: kUsage when `written` is not a multiple of 16 or is smaller than
  // what is handed over; then nothing is written. From any thread if the writer is shared.
  Result<void> Append(const RingMoment& moment, std::span<const RingContents> rings);

  // Writes DONE. Nothing can be appended afterwards (kUsage).
  Result<void> Finish();

  // What could not be written so far: chunks, and their bytes before compression.
  uint64_t chunks_lost() const;
  uint64_t bytes_lost() const;
  uint64_t chunks_written() const;
  uint64_t file_bytes() const;  // bytes handed to the sink so far

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace iket::capture
