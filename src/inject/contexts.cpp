#include "inject/contexts.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "inject/describe_device.h"
#include "inject/early_window.h"
#include "inject/guest.h"
#include "inject/launches.h"
#include "inject/never_destroyed.h"
#include "inject/recording.h"
#include "inject/ring_reading.h"
#include "inject/say.h"
#include "inject/selection.h"
#include "inject/window.h"
#include "patch/window_constant.h"
#include "session/finish.h"

namespace iket::inject {
namespace {

struct LoadedImage {
  std::shared_ptr<PatchedImage> image;
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  unsigned long long module_context = 0;    // id of the context that a module belongs to
  std::set<unsigned long long> armed = {};  // ids of contexts that have its constant
};

struct TracedContext {
  unsigned long long id = 0;  // unique in the process, unlike the handle
  CUcontext handle = nullptr;
  CUdevice device = 0;
  uint32_t index = 0;
  std::optional<Window> window;
  RingReading reading{};
  ClockExchanges clocks{};
  bool drained_here = false;  // the supervisor does not have its memory
  bool ended = false;         // its rings were read here, or can be read by nobody
  bool is_primary = false;    // of its device
  bool gone = false;
};

// Guards all below. Held across driver calls: the driver never calls back into these hooks, and no
// thread that waits for it holds a lock of the driver's.
std::mutex g_mutex;
std::vector<LoadedImage>& Images() { return NeverDestroyed<std::vector<LoadedImage>>(); }
std::vector<TracedContext>& Contexts() { return NeverDestroyed<std::vector<TracedContext>>(); }

// Changes whenever an image comes or a context goes; 0 while there has been no patched image.
std::atomic<uint64_t> g_generation{0};

// What this thread knows to be armed.
struct Armed {
  CUcontext context = nullptr;
  uint64_t generation = 0;
  uint32_t index = capture::kNoContext;
};
thread_local Armed t_armed;

// Does something with a context current that is not gone.
template <typename Do>
Result<void> Within(const TracedContext& context, const Do& act) {
  const CUresult entered = Real().CtxPushCurrent(context.handle);
  if (entered != CUDA_SUCCESS) return Fail(ErrorKind::kSystem, "{}", NameOf(entered));
  struct Leave {
    ~Leave() {
      CUcontext popped = nullptr;
      Real().CtxPopCurrent(&popped);
    }
  } const leave;
  return act();
}

// Waits until nothing runs in a context that is not gone; false if it has failed.
bool Settle(const TracedContext& context) {
  CUresult waited = CUDA_ERROR_INVALID_CONTEXT;
  const auto entered = Within(context, [&]() -> Result<void> {
    waited = Real().CtxSynchronize();
    return {};
  });
  return entered && waited == CUDA_SUCCESS;
}

void NoteClocks(const TracedContext& context, std::optional<capture::ClockExchange> exchange) {
  Guest* const guest = Guest::Existing();
  if (guest == nullptr || !exchange) return;
  exchange->context = context.index;
  guest->Append(*exchange);
}

// Reads the rings of a context that is not gone. `quiet`: none of its kernels runs.
Result<void> ReadHere(TracedContext& context, bool quiet, const RingReading::Append& append) {
  return Within(context, [&] {
    const RelaxedCapture relaxed;
    auto read = context.reading.Read(*context.window, context.index, quiet, append);
    if (quiet) NoteClocks(context, context.clocks.Make());
    return read;
  });
}

// Reads the rings of a context into the account, if nobody else does.
void SaveRings(TracedContext& context) {
  Guest* guest = Guest::Existing();
  if (guest == nullptr || context.ended || context.window->is_sink()) return;
  if (!context.drained_here) {
    if (guest->HasSupervisor() || guest->AccountIsTaken()) return;
    Say("the supervisor was lost; rings are read in this process");
    guest->Note(capture::Severity::kWarning, -1,
                fmt::format("the supervisor was lost: rings of context {} {}", context.index,
                            context.gone ? "are lost with it" : "were read by the program itself"));
  }
  context.ended = true;
  if (context.gone) return;
  const Result<void> copied = ReadHere(
      context, true, [&](const auto& moment, auto rings) { guest->Append(moment, rings); });
  if (!copied) {
    Say("the events of a context are lost: " + copied.error().message);
    guest->Note(
        capture::Severity::kWarning, -1,
        fmt::format("rings of context {} not read: {}", context.index, copied.error().message));
  }
}

// True if nothing runs in the legacy default stream of the context, nor will in a moment.
bool IsIdle(const TracedContext& context) {
  constexpr auto kMoment = std::chrono::milliseconds(5);
  CUresult state = CUDA_ERROR_UNKNOWN;
  const auto done = Within(context, [&]() -> Result<void> {
    const RelaxedCapture relaxed;
    const auto until = std::chrono::steady_clock::now() + kMoment;
    do {
      state = Real().StreamQuery(CU_STREAM_LEGACY);
    } while (state == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < until);
    return {};
  });
  return done && state == CUDA_SUCCESS;
}

// Reads all rings into the account where that is what the supervisor would find there: it saves
// that the 0.2 s that a CUDA context takes. Only if all launches can be seen to have ended. The
// number of launches that were logged; nothing if the supervisor shall read.
std::optional<uint64_t> ReadForSupervisor(Guest& guest) noexcept {
  if (guest.is_streamed() || guest.in_flight() || !OnlyLegacyStream()) return std::nullopt;
  const session::LaunchLog* const log = guest.launch_log();
  if (log == nullptr) return std::nullopt;
  // In this order: what is logged from now on, the supervisor will see.
  const uint64_t launches = log->next_sequence();
  if (!NothingOnItsWay()) return std::nullopt;
  try {
    {
      const std::lock_guard lock(g_mutex);
      for (const TracedContext& context : Contexts()) {
        // What is gone the supervisor has, and what is no ring nobody reads.
        if (context.gone) return std::nullopt;
        if (!context.window->is_sink() && !IsIdle(context)) return std::nullopt;
      }
    }
    const auto read = ReadAllRings(
        {.quiet = true}, [&](const auto& moment, auto rings) { guest.Append(moment, rings); });
    return read ? std::optional(launches) : std::nullopt;
  } catch (...) {
    return std::nullopt;
  }
}

// What a supervisor has been given, it makes the capture of: finished here, it would lack the
// rings.
void AtExit() {
  SaveAllRings();
  Guest* guest = Guest::Existing();
  if (guest == nullptr) return;
  if (guest->HasSupervisor()) {
    guest->SayFarewell(ReadForSupervisor(*guest));
  } else if (!guest->AccountIsTaken()) {
    guest->Finish();
  }
}

// Writes a new context into the capture and gives its memory to the supervisor. Not `keeps`: it was
// said already why it has no rings.
void Announce(Guest& guest, TracedContext& context, bool keeps) {
  const capture::Device described = DescribeDevice(context.device);
  if (context.window->is_sink()) {
    if (keeps)
      Say("no device memory for rings: kernels of this context run, but are not recorded (try a "
          "smaller "
          "--ring)");
  } else {
    context.drained_here = true;
    if (guest.HasSupervisor()) {
      session::RingMemory memory{.context = context.index,
                                 .ring_bytes = guest.layout().ring_bytes,
                                 .sm_count = guest.layout().sm_count,
                                 .in_host = context.window->is_in_host(),
                                 .device_uuid = described.uuid};
      auto shared = context.window->Share();
      if (shared) {
        memory.table = shared->table;
        memory.rings = shared->rings;
        context.drained_here = !guest.Share(memory);
        close(shared->table);
        close(shared->rings);
      } else {
        Say("rings cannot be shared (" + shared.error().message +
            "); they are read at the end of the program, if it ends well (--flight)");
      }
    }
  }
  guest.Append(described);
  guest.Append(capture::Context{.index = context.index,
                                .device = described.index,
                                .ring_bytes = guest.layout().ring_bytes,
                                .sm_count = guest.layout().sm_count,
                                .device_memory_bytes = context.window->device_bytes(),
                                .sink_only = context.window->is_sink(),
                                .in_process_drain = context.drained_here,
                                .in_host = context.window->is_in_host()});
}

// True if the context, which is current, is the primary one of its device.
bool IsPrimary(CUcontext context, CUdevice device) {
  const RealDriver& real = Real();
  unsigned flags = 0;
  int active = 0;
  // Never made on our account.
  if (real.PrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) return false;
  CUcontext primary = nullptr;
  if (real.PrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  real.PrimaryCtxRelease(device);
  return primary == context;
}

// Gives a new context its window. Null if that cannot be.
TracedContext* OpenContext(Guest& guest, unsigned long long id, CUcontext handle) {
  CUdevice device = 0;
  if (Real().CtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  Contexts().reserve(Contexts().size() + 1);  // once there is a window, nothing may fail
  uint64_t taken = guest.layout().window_bytes();
  for (const TracedContext& other : Contexts()) {
    if (other.device == device && !other.gone) taken += other.window->device_bytes();
  }
  const bool keeps = taken <= guest.memory_bytes();
  if (!keeps) {
    Say(fmt::format(
        "kernels of one more context run, but are not recorded: its rings would be above "
        "the {} MiB that all may take (--memory)",
        guest.memory_bytes() >> 20));
  }
  Result<Window> window = tl::unexpected(Error());
  if (guest.in_flight()) {
    window = Window::CreateInHost(guest.layout());
    if (!window) Say("rings are in device memory: " + window.error().message);
  }
  std::optional<ClockExchanges> clocks;
  if (auto early = TakeEarlyWindow(id, guest.layout()); early && keeps && !window) {
    window = std::move(early->window);
    clocks = std::move(early->clocks);
  }
  if (!window) window = Window::Create(device, guest.layout(), keeps);
  if (!window) {
    Say("no rings for a context: " + window.error().message);
    return nullptr;
  }
  // The program may have closed a window that nobody asked for beforehand.
  if (NeedsSinks() || !IsRecording()) {
    if (auto made = window->MakeSinks(); !made) {
      Say("no rings for a context: " + made.error().message);
      return nullptr;
    }
  }
  if (!clocks) clocks = window->is_sink() ? ClockExchanges() : ClockExchanges::Begin(device);
  static const bool kRegistered = std::atexit(AtExit) == 0;
  if (!kRegistered) Say("cannot register an exit handler; events may be lost");
  Contexts().push_back({.id = id,
                        .handle = handle,
                        .device = device,
                        .index = guest.TakeContextNumber(),
                        .window = std::move(*window),
                        .clocks = std::move(*clocks),
                        .is_primary = IsPrimary(handle, device)});
  try {
    Announce(guest, Contexts().back(), keeps);
    NoteClocks(Contexts().back(), Contexts().back().clocks.first());
  } catch (...) {
    Say("out of memory; a context is not in the capture, and its events are lost");
  }
  return &Contexts().back();
}

// Writes where to record into the image's constant in the current context. False if code of the
// image cannot run there.
bool Point(const LoadedImage& image, const TracedContext& context) {
  CUdeviceptr constant = 0;
  size_t bytes = 0;
  CUresult result =
      image.module != nullptr
          ? Real().ModuleGetGlobal(&constant, &bytes, image.module, patch::kWindowSymbol)
          : Real().LibraryGetGlobal(&constant, &bytes, image.library, patch::kWindowSymbol);
  // A library that has no code for this context's GPU cannot be launched there either; the same
  // goes for everything that keeps the driver from loading it, but a want of memory.
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) return true;
  const Window& window = *context.window;
  // Without sinks there is nowhere else: PointImages() has said so.
  const bool records = IsRecording() || !window.has_sinks();
  const uint64_t base = records ? window.base() : window.sink_base();
  if (result == CUDA_SUCCESS) {
    const PrivateStream stream;
    result = stream.result();
    if (result == CUDA_SUCCESS) {
      result = Real().MemcpyHtoDAsync(constant, &base, sizeof base, stream);
    }
    if (result == CUDA_SUCCESS) result = stream.Wait();
  }
  if (result != CUDA_SUCCESS) {
    Say(std::string("cannot tell a patched image where its rings are: ") + NameOf(result));
    return false;
  }
  return true;
}

bool ArmImage(LoadedImage& image, const TracedContext& context) {
  if (image.armed.count(context.id) != 0) return true;
  if (image.module != nullptr && image.module_context != context.id) return true;
  if (!Point(image, context)) return false;
  image.armed.insert(context.id);
  return true;
}

Arming ArmSlowly(CUcontext handle, uint64_t generation) {
  constexpr Arming kUnsafe{.result = CUDA_ERROR_OUT_OF_MEMORY};
  Guest* guest = Guest::Existing();
  if (guest == nullptr) return kUnsafe;
  unsigned long long id = 0;
  if (Real().CtxGetId(handle, &id) != CUDA_SUCCESS) return kUnsafe;
  const RelaxedCapture relaxed;
  const std::lock_guard lock(g_mutex);
  TracedContext* context = nullptr;
  for (TracedContext& known : Contexts()) {
    if (known.id == id) context = &known;
  }
  if (context == nullptr) context = OpenContext(*guest, id, handle);
  if (context == nullptr) return kUnsafe;
  bool safe = true;
  for (LoadedImage& image : Images()) safe &= ArmImage(image, *context);
  if (safe) t_armed = {.context = handle, .generation = generation, .index = context->index};
  return {.result = safe ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, .context = context->index};
}

// What the driver answers in a context that could not be made ready: the error that the program's
// kernels left there, or else that there is no memory.
CUresult WhyNot() noexcept {
  const RelaxedCapture relaxed;
  const PrivateStream stream;
  return stream.result() != CUDA_SUCCESS ? stream.result() : CUDA_ERROR_OUT_OF_MEMORY;
}

bool Add(LoadedImage image) noexcept {
  try {
    const std::lock_guard lock(g_mutex);
    Images().push_back(std::move(image));
    g_generation.fetch_add(1);
    return true;
  } catch (...) {
    return false;
  }
}

template <typename Handle>
bool Find(Handle LoadedImage::* member, Handle handle, const char* name, uint32_t* number) {
  if (name == nullptr) return false;
  const std::lock_guard lock(g_mutex);
  for (const LoadedImage& image : Images()) {
    if (image.*member != handle) continue;
    const auto found = image.image->kernels.find(std::string_view(name));
    if (found == image.image->kernels.end()) return false;
    *number = found->second;
    return true;
  }
  return false;
}

// With the mutex held: forgets the images for which `gone` holds.
template <typename Gone>
void Forget(const Gone& gone) {
  std::erase_if(Images(), [&](const LoadedImage& image) {
    if (!gone(image)) return false;
    for (const auto& [name, number] : image.image->kernels) ForgetKernel(number);
    return true;
  });
}

template <typename Handle>
void Remove(Handle LoadedImage::* member, Handle handle) {
  ForgetPlainKernels();
  if (g_generation.load() == 0 || handle == nullptr) return;
  const std::lock_guard lock(g_mutex);
  Forget([&](const LoadedImage& image) { return image.*member == handle; });
}

// With the mutex held: a context that is about to end.
void End(TracedContext& context) {
  // What reads them here must wait for its kernels, as the driver is about to.
  if (context.drained_here && !context.ended) Settle(context);
  SaveRings(context);
  context.gone = true;
  Forget([&](const LoadedImage& image) {
    return image.module != nullptr && image.module_context == context.id;
  });
}

}  // namespace

bool AddLibrary(CUlibrary library, std::shared_ptr<PatchedImage> image) noexcept {
  if (!Real().usable) return false;
  if (!Add({.image = std::move(image), .library = library})) return false;
  // Where a context is current already, arming now keeps the first launch quick.
  if (ArmCurrentContext().result == CUDA_SUCCESS) return true;
  RemoveLibrary(library);
  return false;
}

bool AddModule(CUmodule module, std::shared_ptr<PatchedImage> image) noexcept {
  if (!Real().usable) return false;
  CUcontext context = nullptr;
  unsigned long long id = 0;
  if (Real().CtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr ||
      Real().CtxGetId(context, &id) != CUDA_SUCCESS ||
      !Add({.image = std::move(image), .module = module, .module_context = id})) {
    return false;
  }
  if (ArmCurrentContext().result == CUDA_SUCCESS) return true;
  RemoveModule(module);
  return false;
}

void RemoveLibrary(CUlibrary library) noexcept { Remove(&LoadedImage::library, library); }
void RemoveModule(CUmodule module) noexcept { Remove(&LoadedImage::module, module); }

bool FindKernel(CUlibrary library, const char* name, uint32_t* number) noexcept {
  return library != nullptr && Find(&LoadedImage::library, library, name, number);
}
bool FindKernel(CUmodule module, const char* name, uint32_t* number) noexcept {
  return module != nullptr && Find(&LoadedImage::module, module, name, number);
}

bool FindKernel(CUfunction function, uint32_t* number) noexcept {
  const RealDriver& real = Real();
  CUmodule module = nullptr;
  const char* name = nullptr;
  if (g_generation.load() == 0 || function == nullptr || real.FuncGetModule == nullptr ||
      real.FuncGetName == nullptr || real.FuncGetModule(&module, function) != CUDA_SUCCESS ||
      real.FuncGetName(&name, function) != CUDA_SUCCESS || name == nullptr) {
    return false;
  }
  const std::lock_guard lock(g_mutex);
  for (const LoadedImage& image : Images()) {
    CUmodule own = image.module;
    const bool known =
        own != nullptr || (real.LibraryGetModule != nullptr &&
                           real.LibraryGetModule(&own, image.library) == CUDA_SUCCESS);
    if (!known || own != module) continue;
    const auto found = image.image->kernels.find(std::string_view(name));
    if (found == image.image->kernels.end()) return false;
    *number = found->second;
    return true;
  }
  return false;
}

Arming ArmCurrentContext() noexcept {
  const uint64_t generation = g_generation.load(std::memory_order_acquire);
  if (generation == 0) {
    MapEarly();
    return {};
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    CUcontext context = nullptr;
    if (Real().CtxGetCurrent(&context) != CUDA_SUCCESS) {
      // What this thread found armed last, if nothing has come since, is so still.
      if (t_armed.generation == generation) return {.context = t_armed.index};
      continue;
    }
    if (context == nullptr) return {};
    if (t_armed.context == context && t_armed.generation == generation) {
      return {.context = t_armed.index};
    }
    try {
      const Arming arming = ArmSlowly(context, generation);
      if (arming.result == CUDA_SUCCESS) return arming;
    } catch (...) {
      Say("out of memory while a context is made ready");
    }
  }
  return {.result = WhyNot()};
}

void PointImages() noexcept {
  if (g_generation.load() == 0) return;
  try {
    const std::lock_guard lock(g_mutex);
    const RelaxedCapture relaxed;
    for (TracedContext& context : Contexts()) {
      if (context.gone || Real().CtxPushCurrent(context.handle) != CUDA_SUCCESS) continue;
      const CUresult waited = Real().CtxSynchronize();
      if (waited != CUDA_SUCCESS) {
        Say(std::string("a window of the recording begins or ends amidst running kernels: ") +
            NameOf(waited));
      }
      if (auto made = context.window->MakeSinks(); !made) {
        Say("recording cannot pause: " + made.error().message);
      } else {
        for (const LoadedImage& image : Images()) {
          if (image.armed.count(context.id) != 0) Point(image, context);
        }
      }
      CUcontext popped = nullptr;
      Real().CtxPopCurrent(&popped);
    }
  } catch (...) {
    Say("out of memory; a window of the recording is not as it should be");
  }
}

Result<void> ReadAllRings(const ReadingWish& wish, const RingReading::Append& append) noexcept {
  if (g_generation.load() == 0) return {};
  Result<void> all;
  const auto keep = [&all](Result<void> one) {
    if (!one && all) all = std::move(one);
  };
  try {
    const std::lock_guard lock(g_mutex);
    Guest* const guest = Guest::Existing();
    if (guest == nullptr) return {};
    for (TracedContext& context : Contexts()) {
      if (context.gone || context.ended || context.window->is_sink()) continue;
      if (wish.follow) context.reading.Follow();
      // Where kernels have failed there may be something to read all the same.
      const bool quiet = wish.wait ? Settle(context) : wish.quiet;
      // No later reading finds again what one that follows has found.
      const bool into_account = context.reading.follows();
      keep(ReadHere(context, quiet, [&](const auto& moment, auto rings) {
        if (into_account) guest->Append(moment, rings);
        append(moment, rings);
      }));
    }
  } catch (...) {
    return Fail(ErrorKind::kSystem, "out of memory");
  }
  return all;
}

std::optional<uint32_t> IndexOf(CUcontext context) noexcept {
  try {
    const std::lock_guard lock(g_mutex);
    for (const TracedContext& known : Contexts()) {
      if (known.handle == context && !known.gone) return known.index;
    }
  } catch (...) {
    Say("out of memory; a context is not found");
  }
  return std::nullopt;
}

void ContextEnds(CUcontext context) noexcept {
  ForgetPlainKernels();
  if (g_generation.load() == 0) return;
  try {
    const std::lock_guard lock(g_mutex);
    for (TracedContext& known : Contexts()) {
      if (known.handle == context && !known.gone) End(known);
    }
    g_generation.fetch_add(1);  // the handle may come back as another context
  } catch (...) {
    Say("out of memory; the events of a context are lost");
  }
}

void DeviceContextEnds(CUdevice device) noexcept {
  ForgetPlainKernels();
  if (g_generation.load() == 0) return;
  try {
    const std::lock_guard lock(g_mutex);
    for (TracedContext& known : Contexts()) {
      if (known.device == device && known.is_primary && !known.gone) End(known);
    }
    g_generation.fetch_add(1);
  } catch (...) {
    Say("out of memory; the events of a context are lost");
  }
}

void SaveAllRings() noexcept {
  if (g_generation.load() == 0) return;
  try {
    const std::lock_guard lock(g_mutex);
    for (TracedContext& known : Contexts()) SaveRings(known);
  } catch (...) {
    Say("out of memory; events are lost");
  }
}

}  // namespace iket::inject
