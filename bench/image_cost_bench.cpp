// What code costs on its way into the driver: the scan of an image without marks (every image that
// any library loads is scanned), beside reading the same bytes once, and patching a cubin of 10 MB,
// beside copying it. Times are the ratio to those.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "cubin/image.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "patch/patch.h"
#include "patch/scan.h"
#include "ring/layout.h"

namespace {

using iket::UntrustedBytes;
using iket::cubin::Image;
using Bytes = std::vector<std::byte>;

constexpr size_t kScanned = size_t{64} << 20;
constexpr size_t kPatched = size_t{10} << 20;

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "image_cost_bench: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T Must(iket::Result<T> result) {
  if (!result) Stop(result.error().message);
  return std::move(*result);
}

Image Cubin(const char* name) {
  std::ifstream file(std::string(IKET_SOURCE_DIR "/tests/data/") + name, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return Must(Image::Parse(UntrustedBytes(bytes.data(), bytes.size())));
}

// The first kernel of an image, and its code.
iket::cubin::Function KernelOf(const Image& image) {
  for (const auto& function : Must(iket::cubin::Functions(image))) {
    if (function.is_kernel) return function;
  }
  Stop("no kernel");
}
std::span<const std::byte> Code(const Image& image) {
  return image.sections()[KernelOf(image).section].data;
}

// `size` bytes of machine code without marks, over and over.
Bytes Unmarked(size_t size) {
  const Image image = Cubin("cubin/pipeline.sm_90a.cubin");
  const auto code = Code(image);
  Bytes all;
  while (all.size() < size) {
    all.insert(all.end(), code.begin(), code.begin() + std::min(code.size(), size - all.size()));
  }
  return all;
}

// A cubin of `size` bytes of code in `kernels` kernels, each with marks at its beginning: a small
// marked cubin, to which kernels are added that are its own with other code behind.
Bytes Marked(size_t size, size_t kernels) {
  Image image = Cubin("patch/payloads.sm_90a.cubin");
  const auto first = KernelOf(image);
  const iket::cubin::Symbol symbol = image.symbols()[first.symbol];
  const std::string name(first.name);
  const auto marked = Code(image);
  const Bytes filler = Unmarked(size / kernels / 16 * 16 - marked.size());
  Bytes code(marked.begin(), marked.end());
  code.insert(code.end(), filler.begin(), filler.end());

  const uint32_t info = image.FindSection(".nv.info").value();
  const uint32_t own_info = image.FindSection(".nv.info." + name).value();
  const uint32_t parameters = image.FindSection(".nv.constant0." + name).value();
  const uint32_t registers = Must(iket::cubin::GetRegisterCount(image, first.symbol));
  const auto copy_of = [&](uint32_t section) {
    const auto data = image.sections()[section].data;
    return Bytes(data.begin(), data.end());
  };
  Bytes all_info = copy_of(info);
  for (size_t i = 0; i < kernels; ++i) {
    const std::string copy = name + std::to_string(i);
    const auto& section = image.sections()[first.section];
    const uint32_t text = Must(image.AddSection({.name = ".text." + copy,
                                                 .type = section.type,
                                                 .flags = section.flags,
                                                 .align = section.align,
                                                 .data = code,
                                                 .link = section.link,
                                                 .info = section.info}));
    const uint32_t number = Must(image.AddSymbol({.name = copy,
                                                  .section = text,
                                                  .size = code.size(),
                                                  .type = symbol.type,
                                                  .bind = symbol.bind,
                                                  .other = symbol.other}));
    const auto& constants = image.sections()[parameters];
    Must(image.AddSection({.name = ".nv.constant0." + copy,
                           .type = constants.type,
                           .flags = constants.flags,
                           .align = constants.align,
                           .data = copy_of(parameters),
                           .info = text}));
    const auto& about = image.sections()[own_info];
    Must(image.AddSection({.name = ".nv.info." + copy,
                           .type = about.type,
                           .flags = about.flags,
                           .align = about.align,
                           .data = copy_of(own_info),
                           .link = about.link,
                           .info = text}));
    const uint32_t words[] = {number, registers};
    const auto record = iket::cubin::EncodeWords(iket::cubin::AttributeCode::kRegCount, words);
    all_info.insert(all_info.end(), record.begin(), record.end());
  }
  if (!image.SetSectionData(info, all_info)) Stop("no .nv.info");
  return image.Serialize();
}

void Read(benchmark::State& state) {
  const Bytes bytes = Unmarked(kScanned);
  for (auto _ : state) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      sum += word;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(Read)->Unit(benchmark::kMillisecond);

void Scan(benchmark::State& state) {
  const Bytes bytes = Unmarked(kScanned);
  for (auto _ : state) {
    if (iket::patch::MayHoldMarks(UntrustedBytes(bytes.data(), bytes.size()))) Stop("marks?");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(Scan)->Unit(benchmark::kMillisecond);

void Copy(benchmark::State& state) {
  const Bytes bytes = Marked(kPatched, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    Bytes copy = bytes;
    benchmark::DoNotOptimize(copy.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(Copy)->Arg(100)->Unit(benchmark::kMillisecond);

// From bytes to bytes, all kernels patched; the argument is their number.
void Patch(benchmark::State& state) {
  const auto kernels = static_cast<size_t>(state.range(0));
  const Bytes bytes = Marked(kPatched, kernels);
  const auto layout = Must(iket::ring::FitLayout(32 << 10, 132, uint64_t{4} << 30));
  for (auto _ : state) {
    const Image image = Must(Image::Parse(UntrustedBytes(bytes.data(), bytes.size())));
    const auto patched = Must(iket::patch::PatchImage(image, {.layout = layout}));
    const auto traced =
        std::count_if(patched.report.functions.begin(), patched.report.functions.end(),
                      [](const auto& f) { return f.has_trampoline; });
    if (static_cast<size_t>(traced) != kernels + 1) Stop("not all kernels are patched");
    benchmark::DoNotOptimize(patched.image->data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(Patch)->Arg(1)->Arg(100)->Arg(1000)->Arg(2000)->Unit(benchmark::kMillisecond);

}  // namespace
