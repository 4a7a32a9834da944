#include "inject/images.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/descriptor.h"
#include "cubin/fatbin.h"
#include "cubin/kernels.h"
#include "inject/compile.h"
#include "inject/devices.h"
#include "inject/guest.h"
#include "inject/host_object.h"
#include "inject/say.h"
#include "inject/selection.h"
#include "patch/scan.h"

namespace iket::inject {
namespace {

using cubin::EntryKind;
using cubin::Fatbin;
using cubin::FatbinEntry;

constexpr char kOriginalRuns[] = "; the program runs the original, which is not traced";

// One image on its way.
struct Request {
  const Loading& loading;
  std::string source;  // for the capture
  bool unpack = true;  // compressed entries are worth to be looked into
};

// Says that a marked image is not traced, here and in the capture.
void Refuse(const std::string& line) {
  Say(line);
  if (Guest* guest = Guest::Get()) guest->Note(capture::Severity::kRefusal, -1, line);
}

bool HasWantedKernel(const Result<std::vector<cubin::Function>>& functions) {
  // Which kernels have PMTRIG instructions their code alone says.
  if (!Wanted().triggers.empty()) return true;
  return functions && std::any_of(functions->begin(), functions->end(), [](const auto& function) {
           return function.is_kernel && Choose(std::string(function.name)).unmarked;
         });
}

// Patches one cubin; nothing if it is not ours or cannot be.
std::optional<std::vector<std::byte>> PatchCubin(UntrustedBytes bytes, const std::string& source,
                                                 KernelNumbers& numbers) {
  const bool marked = patch::MayHoldMarks(bytes);
  if (!marked && !WantsUnmarked()) return std::nullopt;
  auto image = cubin::Image::Parse(bytes);
  if (!image) {
    if (marked) Say("a marked code image is not traced: " + image.error().message);
    return std::nullopt;
  }
  if (!RunsHere(*image)) return std::nullopt;  // the driver will say so
  const auto functions = cubin::Functions(*image);
  if (!marked && !HasWantedKernel(functions)) return std::nullopt;
  Guest* guest = Guest::Get();
  if (guest == nullptr) return std::nullopt;
  // Numbers are taken for the most kernels that this image can need.
  const uint32_t most = functions ? static_cast<uint32_t>(functions->size()) : 0;
  patch::Options options{.layout = guest->layout(),
                         .first_kernel = guest->TakeKernelNumbers(most),
                         .numbered = &numbers,
                         .choose = Choose,
                         .triggers = Wanted().triggers};
  if (!WantsAllEvents()) options.wants_event = WantsEvent;
  auto patched = patch::PatchImage(*image, options);
  if (!patched) {
    Say("a marked code image is not traced: " + patched.error().message);
    guest->Note(capture::Severity::kRefusal, -1, patched.error().message);
    return std::nullopt;
  }
  Account(*guest, *image, patched->report, bytes, source, patched->image ? &numbers : nullptr);
  return std::move(patched->image);
}

bool MayHoldMarks(const std::vector<std::byte>& bytes) {
  return patch::MayHoldMarks(UntrustedBytes(bytes.data(), bytes.size()));
}

// What the driver would compile and hold marks in: patched machine code, or nothing.
std::shared_ptr<PatchedImage> CompileAndPatch(std::span<const CompilerInput> inputs,
                                              const Request& request) {
  // A library's code is for every GPU, and the linker makes code for one.
  if (request.loading.library && Capabilities().size() > 1) {
    Refuse(std::string("marked PTX of a library, and GPUs of several architectures") +
           kOriginalRuns);
    return nullptr;
  }
  const Loading& loading = request.loading;
  auto patched = std::make_shared<PatchedImage>();
  patched->jit =
      std::make_unique<JitOptions>(JitOptions::Attempt::kCompileAndLoad, loading.jit_count,
                                   loading.jit_options, loading.jit_values);
  const auto code = Compile(inputs, *patched->jit);
  if (!code) {
    Refuse("marked PTX could not be compiled (" + code.error().message + ")" + kOriginalRuns);
    return nullptr;
  }
  auto bytes = PatchCubin(UntrustedBytes(code->data(), code->size()),
                          request.source + ", compiled from PTX", patched->kernels);
  if (!bytes) return nullptr;
  patched->bytes = std::move(*bytes);
  return patched;
}

// The PTX of a fatbin that the driver would compile for a GPU, if it shows marks.
bool HasMarkedPtx(const Fatbin& fatbin, uint32_t capability) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : fatbin.entries) {
    if (entry.kind != EntryKind::kPtx || (capability != 0 && !RunsOn(entry, capability))) continue;
    if (best == nullptr || entry.sm >= best->sm) best = &entry;
  }
  if (best == nullptr) return false;
  const auto text = cubin::Decompress(*best);
  return text && MayHoldMarks(*text);
}

// Machine code that the driver would rather take than compile PTX.
bool HasMachineCode(const Fatbin& fatbin, uint32_t capability) {
  return std::any_of(fatbin.entries.begin(), fatbin.entries.end(), [&](const FatbinEntry& entry) {
    return entry.kind == EntryKind::kElf && (capability == 0 || RunsOn(entry, capability));
  });
}

// A fatbin without machine code for the GPU; `prelinked` are those that make up a program whose
// device code the driver has to link.
std::shared_ptr<PatchedImage> CompileFatbin(const Fatbin& fatbin,
                                            std::span<const UntrustedBytes> prelinked,
                                            const Request& request) {
  const auto is_ptx = [](const FatbinEntry& entry) { return entry.kind == EntryKind::kPtx; };
  if (prelinked.empty() && std::none_of(fatbin.entries.begin(), fatbin.entries.end(), is_ptx)) {
    return nullptr;
  }
  uint32_t capability = CurrentCapability();
  if (const auto all = Capabilities(); capability == 0 && !all.empty()) capability = all.front();
  if (HasMachineCode(fatbin, capability)) return nullptr;
  std::vector<CompilerInput> inputs;
  bool marked = HasMarkedPtx(fatbin, capability);
  if (marked || prelinked.empty()) {
    inputs.push_back({.type = CU_JIT_INPUT_FATBINARY, .bytes = fatbin.bytes});
  } else {
    for (const UntrustedBytes& bytes : prelinked) {
      inputs.push_back({.type = CU_JIT_INPUT_FATBINARY, .bytes = bytes});
      const auto part = cubin::ReadFatbin(bytes);
      marked = marked || (part && HasMarkedPtx(*part, capability));
    }
  }
  return marked ? CompileAndPatch(inputs, request) : nullptr;
}

std::shared_ptr<PatchedImage> PatchFatbin(UntrustedBytes bytes,
                                          std::span<const UntrustedBytes> prelinked,
                                          const Request& request) {
  const auto fatbin = cubin::ReadFatbin(bytes);
  if (!fatbin) return nullptr;  // the driver will say what it thinks of it
  auto patched = std::make_shared<PatchedImage>();
  std::vector<std::vector<std::byte>> codes;
  std::vector<size_t> entries;
  uint64_t broken = 0;
  std::string why_broken;  // the first one
  for (size_t i = 0; i < fatbin->entries.size(); ++i) {
    const FatbinEntry& entry = fatbin->entries[i];
    if (entry.kind != EntryKind::kElf || !RunsHere(entry)) continue;
    std::optional<std::vector<std::byte>> code;
    if (entry.compression() == cubin::Compression::kNone) {
      code = PatchCubin(entry.code, request.source, patched->kernels);
    } else if (request.unpack) {
      const auto unpacked = cubin::Decompress(entry);
      if (!unpacked) {
        if (broken++ == 0) why_broken = unpacked.error().message;
        continue;
      }
      code = PatchCubin(UntrustedBytes(unpacked->data(), unpacked->size()), request.source,
                        patched->kernels);
    }
    if (!code) continue;
    codes.push_back(std::move(*code));
    entries.push_back(i);
  }
  if (broken == 1) {
    Say("a code image is not looked into: " + why_broken);
  } else if (broken > 1) {
    Say(fmt::format("{} code images of a fatbin are not looked into, the first: {}", broken,
                    why_broken));
  }
  if (codes.empty()) {
    return request.unpack ? CompileFatbin(*fatbin, prelinked, request) : nullptr;
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

std::shared_ptr<PatchedImage> PatchBytes(cubin::ImageKind kind, UntrustedBytes bytes,
                                         std::span<const UntrustedBytes> prelinked,
                                         const Request& request) {
  switch (kind) {
    case cubin::ImageKind::kElf: {
      auto patched = std::make_shared<PatchedImage>();
      auto code = PatchCubin(bytes, request.source, patched->kernels);
      if (!code) return nullptr;
      patched->bytes = std::move(*code);
      return patched;
    }
    case cubin::ImageKind::kFatbin:
      return PatchFatbin(bytes, prelinked, request);
    case cubin::ImageKind::kPtx: {
      if (!patch::MayHoldMarks(bytes)) return nullptr;
      const CompilerInput input{.type = CU_JIT_INPUT_PTX, .bytes = bytes};
      return CompileAndPatch(std::span(&input, 1), request);
    }
    default:
      return nullptr;
  }
}

std::shared_ptr<PatchedImage> PrepareBytes(cubin::ImageKind kind, UntrustedBytes bytes,
                                           std::span<const UntrustedBytes> prelinked,
                                           const Request& request) {
  auto patched = PatchBytes(kind, bytes, prelinked, request);
  if (patched != nullptr && patched->jit == nullptr) {
    const Loading& loading = request.loading;
    patched->jit = std::make_unique<JitOptions>(JitOptions::Attempt::kLoad, loading.jit_count,
                                                loading.jit_options, loading.jit_values);
  }
  return patched;
}

// The whole of a regular file; nothing if it is another thing or cannot be read. What is not a
// file, a pipe for one, can be read once only, and the driver is to do that.
std::optional<std::vector<std::byte>> ReadRegularFile(const char* path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const int descriptor = file.get();
  struct stat about{};
  if (descriptor < 0 || fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(about.st_size));
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t piece = read(descriptor, bytes.data() + got, bytes.size() - got);
    if (piece < 0 && errno == EINTR) continue;
    if (piece < 0) return std::nullopt;
    if (piece == 0) break;
    got += static_cast<size_t>(piece);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

std::shared_ptr<PatchedImage> Prepare(const void* image, const Loading& loading) noexcept {
  try {
    if (image == nullptr) return nullptr;
    const auto found = cubin::UntrustedImageAt(image);
    if (!found) return nullptr;
    // Only what nvcc put into an object with its host code can have the note. Device code that was
    // linked may come from objects without any. Other tools' marks leave none.
    const bool embedded = found->wrapper_version == 1;
    const Request request{.loading = loading,
                          .source = loading.call,
                          .unpack = WantsUnmarked() || !embedded ||
                                    HostObjectAt(found->bytes.data()) != HostObject::kUnmarked};
    auto patched = PrepareBytes(found->kind, found->bytes, found->prelinked, request);
    if (patched != nullptr && found->wrapper_version != 0 &&
        cubin::KindOf(UntrustedBytes(patched->bytes.data(), patched->bytes.size())) ==
            cubin::ImageKind::kFatbin) {
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

std::shared_ptr<PatchedImage> PrepareFile(const char* path, const Loading& loading) noexcept {
  const int before = errno;
  std::shared_ptr<PatchedImage> patched;
  try {
    if (path == nullptr) return nullptr;
    if (const auto bytes = ReadRegularFile(path)) {  // else the driver reports it
      const UntrustedBytes view(bytes->data(), bytes->size());
      patched = PrepareBytes(cubin::KindOf(view), view, {}, {.loading = loading, .source = path});
    }
  } catch (...) {
    Say("out of memory; a code image is not traced");
  }
  errno = before;
  return patched;
}

}  // namespace iket::inject
