// iket doctor: what of this machine iket can use, and what to do about the rest.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/trial.h"
#include "export/json_writer.h"
#include "sass/generation.h"
#include "supervisor/gpus.h"
#include "supervisor/installation.h"

namespace iket::cli {
namespace {

enum class Verdict { kGood, kNote, kBad };

struct Finding {
  std::string_view about;  // a word for JSON and the left column
  Verdict verdict = Verdict::kGood;
  std::string what;    // one sentence
  std::string advice;  // what to do; empty if nothing
};

std::string_view WordFor(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kBad:
      return "bad";
  }
  return "";
}

void LookAtCollector(std::vector<Finding>& findings) {
  const auto found = supervisor::FindCollector();
  if (found) {
    findings.push_back({"collector", Verdict::kGood, *found, ""});
  } else {
    findings.push_back({"collector", Verdict::kBad, found.error().message,
                        "install iket whole: bin and lib belong side by side"});
  }
}

// The signal that ends a process which opens the driver; 0 if it lives. A library that is cut or
// damaged does that inside the loader.
int SignalOfOpening() {
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(supervisor::ListGpus(""));
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? WTERMSIG(status)
                                                                                 : 0;
}

// How many GPUs there are.
size_t LookAtGpus(std::vector<Finding>& findings) {
  if (const int signal = SignalOfOpening(); signal != 0) {
    findings.push_back(
        {"driver", Verdict::kBad,
         fmt::format("libcuda.so.1 ends the process that opens it (signal {})", signal),
         "it is cut or damaged: install the driver again, or look at LD_LIBRARY_PATH"});
    return 0;
  }
  const auto list = supervisor::ListGpus("");
  if (!list) {
    findings.push_back({"driver", Verdict::kBad, list.error().message,
                        "programs can run on the software device: iket profile --device sim"});
    return 0;
  }
  const uint32_t version = list->driver_version;
  const std::string cuda = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  if (std::ranges::any_of(list->gpus, &supervisor::Gpu::simulated)) {
    findings.push_back({"driver", Verdict::kNote,
                        fmt::format("iket's software device for {} stands in for NVIDIA's driver: "
                                    "times are a model's",
                                    cuda),
                        "for a GPU take the folder of its libcuda.so.1 out of LD_LIBRARY_PATH"});
  } else {
    findings.push_back({"driver", Verdict::kGood, "NVIDIA driver for " + cuda, ""});
  }
  if (list->gpus.empty()) {
    findings.push_back({"gpu", Verdict::kBad, "the driver shows no GPU",
                        "look at CUDA_VISIBLE_DEVICES and at nvidia-smi"});
  }
  for (size_t i = 0; i < list->gpus.size(); ++i) {
    const supervisor::Gpu& gpu = list->gpus[i];
    const std::string what =
        fmt::format("GPU {}: {}, sm_{}, {} SMs", i, gpu.name, gpu.sm, gpu.sm_count);
    const auto generation = sass::GenerationOf(gpu.sm);
    if (generation == sass::Generation::kHopper) {
      findings.push_back({"gpu", Verdict::kGood, what, ""});
    } else if (generation) {
      findings.push_back({"gpu", Verdict::kNote,
                          what + "; what iket writes into its code was never run on such a GPU",
                          "iket doctor --trial tries it: see docs/design/architectures.md"});
    } else {
      findings.push_back({"gpu", Verdict::kNote, what + "; marks are recorded from sm_80 to sm_121",
                          "its programs run as without iket"});
    }
  }
  return list->gpus.size();
}

void TryGpus(size_t gpus, std::vector<Finding>& findings) {
  if (gpus == 0) {
    findings.push_back({"trial", Verdict::kBad, "there is no GPU to try", ""});
  }
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    const Trial trial = TryGpu(gpu, "/proc/self/exe");
    const std::string of_gpu = fmt::format("GPU {}: ", gpu);
    switch (trial.verdict) {
      case Trial::Verdict::kPassed:
        findings.push_back({"trial", Verdict::kGood, of_gpu + trial.what, ""});
        break;
      case Trial::Verdict::kFailed:
        findings.push_back({"trial", Verdict::kBad, of_gpu + trial.what,
                            "tell us: do not use marks on this GPU until it is mended"});
        break;
      case Trial::Verdict::kNotTried:
        findings.push_back({"trial", Verdict::kBad, of_gpu + "not tried: " + trial.what, ""});
        break;
    }
  }
}

void LookAtSoftwareDevice(std::vector<Finding>& findings) {
  const auto found = supervisor::FindSoftwareDevice();
  if (found) {
    findings.push_back({"software device", Verdict::kGood, *found, ""});
  } else {
    findings.push_back({"software device", Verdict::kNote, found.error().message,
                        "only iket profile --device sim needs it"});
  }
}

void LookAtEnvironment(std::vector<Finding>& findings) {
  // What gets into a program beside us, or keeps us out.
  struct Variable {
    const char* name;
    const char* meaning;
  };
  constexpr Variable kVariables[] = {
      {"LD_PRELOAD", "its libraries come before and after iket's own"},
      {"CUDA_INJECTION64_PATH", "another tool is loaded into every CUDA program"},
      {"CUDA_VISIBLE_DEVICES", "programs see these GPUs alone"},
      {"LD_AUDIT", "an auditing library sees every function call into libraries"},
  };
  size_t set = 0;
  for (const Variable& variable : kVariables) {
    const char* const value = std::getenv(variable.name);
    if (value == nullptr || *value == 0) continue;
    ++set;
    findings.push_back({"environment", Verdict::kNote,
                        fmt::format("{}={}: {}", variable.name, value, variable.meaning), ""});
  }
  if (set == 0) {
    findings.push_back({"environment", Verdict::kGood, "nothing else gets into programs", ""});
  }
}

void LookAtFolder(std::vector<Finding>& findings) {
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  const auto space = std::filesystem::space(here, error);
  if (access(here.c_str(), W_OK) != 0) {
    findings.push_back({"folder", Verdict::kBad, here.string() + " cannot be written into",
                        "go elsewhere, or name a folder with iket profile -o"});
  } else if (!error && space.available < 1'000'000'000) {
    findings.push_back(
        {"folder", Verdict::kNote,
         fmt::format("{} has {} MB left", here.string(), space.available / 1'000'000),
         "a capture takes up to the size of the rings: 270 MB on an H200"});
  } else {
    findings.push_back({"folder", Verdict::kGood, here.string() + " can be written into", ""});
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    findings.push_back({"folder", Verdict::kNote,
                        fmt::format("files may have {} bytes at most", uint64_t{limit.rlim_cur}),
                        "ulimit -f unlimited"});
  }
}

struct DoctorOptions {
  bool as_json = false;
  bool trial = false;
  std::pair<uint32_t, std::string> trial_of;  // GPU and capture: this is the trial's process
};

Result<int> Doctor(const DoctorOptions& options) {
  if (!options.trial_of.second.empty()) {
    return RunTrial(options.trial_of.first, options.trial_of.second);
  }
  std::vector<Finding> findings;
  LookAtCollector(findings);
  const size_t gpus = LookAtGpus(findings);
  if (options.trial) TryGpus(gpus, findings);
  LookAtSoftwareDevice(findings);
  LookAtEnvironment(findings);
  LookAtFolder(findings);

  bool bad = false;
  exporter::JsonWriter json;
  std::string text;
  {
    auto object = json.Object();
    auto array = json.Array("findings");
    for (const Finding& finding : findings) {
      bad |= finding.verdict == Verdict::kBad;
      auto entry = json.Object();
      json.Member("about", finding.about);
      json.Member("verdict", WordFor(finding.verdict));
      json.Member("what", finding.what);
      json.Member("advice", finding.advice);
      text += fmt::format("{:<16}{:<6}{}\n", finding.about, WordFor(finding.verdict),
                          Printable(finding.what));
      if (!finding.advice.empty()) text += fmt::format("{:<22}{}\n", "", finding.advice);
    }
  }
  Print(options.as_json ? json.text() + "\n" : text);
  return bad ? kExitFound : kExitDone;
}

}  // namespace

void AddDoctor(CLI::App& app, Run& run) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* sub = app.add_subcommand(
      "doctor",
      "Look at this machine: driver, GPUs, collector, environment; 1 if something is bad");
  sub->add_flag("--json", options->as_json, "The findings as JSON");
  sub->add_flag("--trial", options->trial,
                "Also run a small kernel with marks on each GPU, and look at what was recorded");
  sub->add_option("--trial-of", options->trial_of)->group("");  // its own process
  sub->callback([options, &run] { run = [options] { return Doctor(*options); }; });
}

}  // namespace iket::cli
