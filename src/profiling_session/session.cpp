#include "profiling_session/session.h"

#include <algorithm>
#include <cstdlib>

#include "inject/contexts.h"
#include "inject/guest.h"
#include "inject/never_destroyed.h"
#include "inject/recording.h"
#include "inject/say.h"
#include "inject/selection.h"
#include "inject/settings.h"
#include "profiling_session/exporter.h"
#include "profiling_session/interception.h"
#include "profiling_session/trace_file.h"
#include "session/message.h"

namespace iket::profiling_session {
namespace {

constexpr auto kError = IKET_PROFILING_SESSION_LOG_ERROR;
constexpr auto kWarn = IKET_PROFILING_SESSION_LOG_WARN;
constexpr auto kInfo = IKET_PROFILING_SESSION_LOG_INFO;

// What all sessions have in common.
struct Process {
  session::Selection base;  // what IKET_SELECTION wants, whatever the options of a session
  const Session* active = nullptr;
};
Process& Get() noexcept { return inject::NeverDestroyed<Process>(); }

session::Selection BaseSelection() {
  const char* const wanted = std::getenv(session::kEnvSelection);
  auto selection = session::DecodeSelection(wanted != nullptr ? wanted : "");
  if (!selection) {
    inject::Say(selection.error().message + "; all kernels are recorded");
    return {};
  }
  if (!selection->nvtx.empty()) {
    inject::Say("windows of NVTX are for iket profile --nvtx, and none here");
    selection->nvtx.clear();
  }
  return std::move(*selection);
}

}  // namespace

void Prepare() {
  FindExporter();
  Get().base = BaseSelection();
  inject::Select(SelectionFor({}, Get().base));
  inject::SetSetting(session::kEnvSocket, "");
  inject::SetSetting(session::kEnvOutput, inject::kTemporaryFolder);
  Intercept();
}

Session::~Session() {
  if (Get().active == this) Stop();
}

void Session::Log(uint32_t level, const std::string& text) const {
  if (level <= options_.log_level) inject::Say("profiling session: " + text);
}

IketProfilingSessionResult Session::SetOptions(const IketProfilingSessionOptions* untrusted) {
  Options options;
  if (const auto read = Read(untrusted, options); read != IKET_PROFILING_SESSION_SUCCESS) {
    return read;
  }
  if (Get().active == this) return IKET_PROFILING_SESSION_INVALID_STATE;
  options_ = std::move(options);
  if (options_.sizes_buffers) {
    Log(kWarn,
        "max_ts_per_warp and device_buffer_size have no effect: warps record into rings, which "
        "keep the newest events and count the others (IKET_RING_BYTES, IKET_MEMORY_BYTES)");
  }
  // Code that is loaded from now on is patched so; Start() says whether there was some before.
  if (Get().active == nullptr) inject::Select(SelectionFor(options_, Get().base));
  return IKET_PROFILING_SESSION_SUCCESS;
}

IketProfilingSessionResult Session::Start() {
  Process& process = Get();
  if (process.active != nullptr) return IKET_PROFILING_SESSION_DUPLICATE_OPERATION;
  if (HasOtherCollector()) {
    Log(kError, "not started: this process is traced by iket profile, or by iket/embed.h");
    return IKET_PROFILING_SESSION_INVALID_STATE;
  }
  Intercept();
  if (const char* const why = WhyNotIntercepted()) {
    Log(kError, std::string("not started: ") + why);
    return IKET_PROFILING_SESSION_NOT_INSTRUMENTED;
  }
  if (!inject::Guest::MayTrace()) {
    Log(kError, "not started: this process cannot be traced");
    return IKET_PROFILING_SESSION_NOT_INSTRUMENTED;
  }
  if (!inject::Select(SelectionFor(options_, process.base))) {
    Log(kError,
        "not started: a cluster and lifetimes are chosen when code is loaded, and code was loaded, "
        "or a session started, with another choice; set the options before");
    return IKET_PROFILING_SESSION_FEATURE_NOT_SUPPORTED;
  }
  times_.times.push_back({.begin_ns = session::NowNs(), .end_ns = INT64_MAX});
  process.active = this;
  inject::OpenByProgram();
  Log(kInfo, "started");
  return IKET_PROFILING_SESSION_SUCCESS;
}

IketProfilingSessionResult Session::Stop() {
  if (Get().active != this) return IKET_PROFILING_SESSION_DUPLICATE_OPERATION;
  Get().active = nullptr;
  inject::CloseByProgram();
  inject::SettleWindows();
  session::Times::Time& time = times_.times.back();
  if (!options_.contexts.empty()) {
    time.contexts.emplace();
    for (const CUcontext context : options_.contexts) {
      if (const auto index = inject::IndexOf(context)) time.contexts->push_back(*index);
    }
  }
  const auto read = inject::ReadAllRings({.wait = true, .follow = true}, [](auto&&...) {});
  time.end_ns = session::NowNs();
  if (inject::Guest::Existing() == nullptr) {
    Log(kWarn,
        "nothing was recorded: no code with marks was loaded where this library could see it");
  }
  if (!read) {
    Log(kError, "what was recorded cannot be read: " + read.error().message);
    return IKET_PROFILING_SESSION_INTERNAL_ERROR;
  }
  Log(kInfo, "stopped");
  return IKET_PROFILING_SESSION_SUCCESS;
}

IketProfilingSessionResult Session::Clear() {
  if (Get().active == this) return IKET_PROFILING_SESSION_INVALID_STATE;
  times_.times.clear();
  return IKET_PROFILING_SESSION_SUCCESS;
}

IketProfilingSessionResult Session::Save(const std::string& path) {
  if (Get().active == this) return IKET_PROFILING_SESSION_INVALID_STATE;
  const auto written = WriteTrace(times_, path);
  if (!written) {
    Log(kError, written.error().message);
    return IKET_PROFILING_SESSION_IO_ERROR;
  }
  Log(kInfo, "trace written to " + path);
  return IKET_PROFILING_SESSION_SUCCESS;
}

}  // namespace iket::profiling_session
