#include "inject/images.h"

#include <cstdio>
#include <optional>

#include "capture/demangle.h"
#include "cubin/fatbin.h"
#include "cubin/kernels.h"
#include "inject/guest.h"
#include "inject/say.h"

namespace iket::inject {
namespace {

// Compressed entries above this size are not unpacked to look for marks: libraries hold thousands.
constexpr uint64_t kMaxUnpacked = uint64_t{4} << 20;

constexpr char kPtxOnly[] =
    "marked code is PTX only, which cannot be traced: build with -arch=sm_90 (or add it)";

capture::Declaration ToCapture(uint32_t image, const patch::Declaration& declaration) {
  return {.image = image,
          .event = declaration.id,
          .kind = static_cast<capture::EventKind>(declaration.kind),
          .payload = static_cast<capture::PayloadType>(declaration.payload),
          .name = declaration.name};
}

// Writes what is known of a patched, or refused, cubin into the account.
void Account(Guest& guest, const cubin::Image& image, const patch::ImageReport& report,
             UntrustedBytes bytes, const char* source, PatchedImage* patched) {
  const uint32_t number = guest.TakeImageNumber();
  guest.Append(capture::Image{.index = number,
                              .sm = static_cast<uint32_t>(image.sm()),
                              .hash = capture::ImageHash(bytes.span()),
                              .bytes = bytes.size(),
                              .marked_functions = static_cast<uint32_t>(report.functions.size()),
                              .source = source});
  for (const patch::Declaration& declaration : report.declarations) {
    guest.Append(ToCapture(number, declaration));
  }
  for (const std::string& problem : report.problems) {
    guest.Note(capture::Severity::kWarning, -1, problem);
  }
  for (const patch::FunctionReport& function : report.functions) {
    const std::string demangled = capture::DemangledName(function.name);
    if (!function.refusal.empty()) Say(demangled + " is not traced: " + function.refusal);
    if (!function.is_kernel) {
      if (!function.refusal.empty()) {
        guest.Note(capture::Severity::kRefusal, -1, demangled + ": " + function.refusal);
      }
      continue;
    }
    const uint32_t kernel = function.has_trampoline ? function.number : guest.TakeKernelNumbers(1);
    guest.Append(capture::Kernel{
        .index = kernel,
        .image = number,
        .mangled_name = function.name,
        .demangled_name = demangled,
        .state = function.has_trampoline ? capture::KernelState::kPatched
                                         : capture::KernelState::kRefused,
        .refusal = function.refusal,
        .registers_before = static_cast<uint16_t>(function.registers),
        .registers_after = static_cast<uint16_t>(function.patched_registers),
        .sites = static_cast<uint32_t>(function.sites.size()),
        .sites_refused =
            function.refusal.empty() ? 0 : static_cast<uint32_t>(function.sites.size())});
    if (function.has_trampoline && patched != nullptr) {
      patched->kernels.emplace(function.name, kernel);
    }
  }
}

// Patches one cubin; nothing if it is not ours or cannot be.
std::optional<std::vector<std::byte>> PatchCubin(UntrustedBytes bytes, const char* source,
                                                 PatchedImage& into) {
  if (!patch::MayHoldMarks(bytes)) return std::nullopt;
  auto image = cubin::Image::Parse(bytes);
  if (!image) {
    Say("a marked code image is not traced: " + image.error().message);
    return std::nullopt;
  }
  Guest* guest = Guest::Get();
  if (guest == nullptr) return std::nullopt;
  // Numbers are taken for the most kernels that this image can need.
  auto functions = cubin::Functions(*image);
  const uint32_t most = functions ? static_cast<uint32_t>(functions->size()) : 0;
  auto patched = patch::PatchImage(
      *image, {.layout = guest->layout(), .first_kernel = guest->TakeKernelNumbers(most)});
  if (!patched) {
    Say("a marked code image is not traced: " + patched.error().message);
    guest->Note(capture::Severity::kRefusal, -1, patched.error().message);
    return std::nullopt;
  }
  Account(*guest, *image, patched->report, bytes, source, patched->image ? &into : nullptr);
  return std::move(patched->image);
}

// A fatbin without machine code that its PTX shows to be marked.
void RefusePtxOnly(const cubin::Fatbin& fatbin) {
  for (const cubin::FatbinEntry& entry : fatbin.entries) {
    if (entry.kind == cubin::EntryKind::kElf) return;
  }
  for (const cubin::FatbinEntry& entry : fatbin.entries) {
    if (entry.kind != cubin::EntryKind::kPtx || entry.uncompressed_size > kMaxUnpacked) continue;
    const auto text = cubin::Decompress(entry);
    if (!text || !patch::MayHoldMarks(UntrustedBytes(text->data(), text->size()))) continue;
    Say(kPtxOnly);
    if (Guest* guest = Guest::Get()) guest->Note(capture::Severity::kRefusal, -1, kPtxOnly);
    return;
  }
}

std::shared_ptr<PatchedImage> PatchFatbin(UntrustedBytes bytes, const char* source) {
  const auto fatbin = cubin::ReadFatbin(bytes);
  if (!fatbin) return nullptr;  // the driver will say what it thinks of it
  auto patched = std::make_shared<PatchedImage>();
  std::vector<std::vector<std::byte>> codes;
  std::vector<size_t> entries;
  for (size_t i = 0; i < fatbin->entries.size(); ++i) {
    const cubin::FatbinEntry& entry = fatbin->entries[i];
    if (entry.kind != cubin::EntryKind::kElf) continue;
    std::optional<std::vector<std::byte>> code;
    if (entry.compression() == cubin::Compression::kNone) {
      code = PatchCubin(entry.code, source, *patched);
    } else if (entry.uncompressed_size <= kMaxUnpacked) {
      const auto unpacked = cubin::Decompress(entry);
      if (unpacked) {
        code = PatchCubin(UntrustedBytes(unpacked->data(), unpacked->size()), source, *patched);
      }
    }
    if (!code) continue;
    codes.push_back(std::move(*code));
    entries.push_back(i);
  }
  if (codes.empty()) {
    RefusePtxOnly(*fatbin);
    return nullptr;
  }
  std::vector<cubin::Replacement> replacements;
  for (size_t i = 0; i < codes.size(); ++i) {
    replacements.push_back({.entry = entries[i], .code = codes[i]});
  }
  auto rebuilt = cubin::RebuildFatbin(*fatbin, replacements);
  if (!rebuilt) {
    Say("a marked fatbin is not traced: " + rebuilt.error().message);
    return nullptr;
  }
  patched->bytes = std::move(*rebuilt);
  return patched;
}

std::shared_ptr<PatchedImage> PrepareBytes(cubin::ImageKind kind, UntrustedBytes bytes,
                                           const char* source) {
  switch (kind) {
    case cubin::ImageKind::kElf: {
      auto patched = std::make_shared<PatchedImage>();
      auto code = PatchCubin(bytes, source, *patched);
      if (!code) return nullptr;
      patched->bytes = std::move(*code);
      return patched;
    }
    case cubin::ImageKind::kFatbin:
      return PatchFatbin(bytes, source);
    case cubin::ImageKind::kPtx:
      if (patch::MayHoldMarks(bytes)) Say(kPtxOnly);
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

std::shared_ptr<PatchedImage> Prepare(const void* image, const char* source) noexcept {
  try {
    if (image == nullptr) return nullptr;
    const auto found = cubin::UntrustedImageAt(image);
    if (!found) return nullptr;
    auto patched = PrepareBytes(found->kind, found->bytes, source);
    if (patched != nullptr && found->wrapper_version != 0) {
      patched->wrapper = *static_cast<const cubin::FatbinWrapper*>(image);
      patched->wrapper.fatbin = patched->bytes.data();
      patched->has_wrapper = true;
    }
    return patched;
  } catch (...) {
    Say("out of memory; a code image is not traced");
    return nullptr;
  }
}

std::shared_ptr<PatchedImage> PrepareFile(const char* path) noexcept {
  try {
    if (path == nullptr) return nullptr;
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return nullptr;  // the driver reports it
    std::vector<std::byte> bytes;
    std::byte buffer[65536];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
      bytes.insert(bytes.end(), buffer, buffer + got);
    }
    std::fclose(file);
    const UntrustedBytes view(bytes.data(), bytes.size());
    return PrepareBytes(cubin::KindOf(view), view, path);
  } catch (...) {
    Say("out of memory; a code image is not traced");
    return nullptr;
  }
}

}  // namespace iket::inject
