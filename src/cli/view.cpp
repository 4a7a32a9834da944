// iket view: a timeline in the browser, from a server of this process's own.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/shown_file.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/check.h"
#include "export/formats.h"
#include "export/page_elements.h"
#include "serve/server.h"
#include "viewer/perfetto_page.h"

namespace iket::cli {
namespace {

struct Options {
  std::string file;
  uint16_t port = 0;
  bool perfetto = false;
  bool no_browser = false;
};

// What a file is for.
enum class Kind {
  kCapture,   // made into what is wanted
  kPage,      // of iket export --format html
  kPerfetto,  // what Perfetto reads
  kOther,     // another export
};

Result<Kind> KindOf(const std::string& path) {
  if (IsOfRunIket(path)) return Kind::kCapture;
  const auto file = MappedFile::Open(path, "capture");
  if (!file) return tl::unexpected(file.error());
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  if (exporter::PagePolicy(text)) return Kind::kPage;
  if (path.ends_with(".html")) {
    return Fail(ErrorKind::kBadInput, "{}: no page of iket's; iket check says more", path);
  }
  if (!exporter::LooksLikeExport(file->bytes())) return Kind::kCapture;
  const std::string format = exporter::FormatOfName(path).value_or("");
  const bool readable = format.starts_with("pftrace") || format.starts_with("chrome.json");
  return readable ? Kind::kPerfetto : Kind::kOther;
}

// The capture as a file of `format`, which only this process has.
Result<ShownFile> Exported(const std::string& path, std::string_view format) {
  auto loaded = Load(path);
  if (!loaded) return tl::unexpected(loaded.error());
  ReadCode(*loaded);  // says what is damaged or missing
  if (loaded->model.warps.size() == 0) {
    return Fail(ErrorKind::kNothing, "{}: there is nothing to show", path);
  }
  auto file = ShownFile::Create();
  if (!file) return file;
  Progress progress(fmt::format("making the {} of {}", format == "html" ? "page" : "trace", path));
  std::string note;
  const auto written = exporter::WriteAs(
      format, loaded->model, [&](std::string_view block) { return file->Write(block); },
      {.page = {.capture = ShellWord(std::filesystem::path(path).filename().string()),
                .note = [&note](const std::string& text) { note = text; }},
       .progress = progress.Callback()});
  if (!written) return tl::unexpected(written.error());
  if (!note.empty()) PrintWarning(fmt::format("{}: {}", Printable(path), note));
  return file;
}

// What the page's own policy says, said to the browser before it reads the page.
Result<std::string> PolicyOf(const ShownFile& file, const std::string& path) {
  constexpr size_t kMost = 4096;  // of a page's beginning; the policy is the first thing in it
  std::string beginning(kMost, '\0');
  const ssize_t got = pread(file.fd(), beginning.data(), beginning.size(), 0);
  beginning.resize(got > 0 ? static_cast<size_t>(got) : 0);
  const auto policy = exporter::PagePolicy(beginning);
  const auto admits = policy ? exporter::WhatPolicyAdmits(*policy) : "it has none";
  if (!admits) return std::string(*policy);
  return Fail(ErrorKind::kBadInput,
              "{}: not shown: its Content-Security-Policy is too weak: {}; export it again", path,
              *admits);
}

Result<ShownFile> PageOf(const std::string& path, Kind kind) {
  switch (kind) {
    case Kind::kCapture:
      return Exported(path, "html");
    case Kind::kPage:
      return ShownFile::Open(path);
    case Kind::kPerfetto:
      return Fail(ErrorKind::kUsage,
                  "{}: a file for Perfetto: --perfetto opens it there; or view the capture", path);
    case Kind::kOther:
      break;
  }
  return Fail(ErrorKind::kUsage, "{}: nothing shows a file of this format; view the capture", path);
}

Result<ShownFile> TraceOf(const std::string& path, Kind kind) {
  switch (kind) {
    case Kind::kCapture:
      return Exported(path, "pftrace");
    case Kind::kPerfetto:
      return ShownFile::Open(path);
    case Kind::kPage:
    case Kind::kOther:
      break;
  }
  return Fail(ErrorKind::kUsage, "{}: Perfetto does not read this format; give the capture", path);
}

// How the file is called where it is kept: as `iket export` calls it.
std::string NameOf(const std::string& path, Kind kind) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  return kind == Kind::kCapture ? std::filesystem::path(name).replace_extension("pftrace").string()
                                : name.string();
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? Printable(name.data()) : "HOST";
}

// Opens the browser, or says how to reach this from one.
Result<void> Invite(const serve::Server& server, const Options& options) {
  const std::string address = server.Address();
  const std::string file = Printable(options.file);
  const auto browser = options.no_browser ? std::nullopt : BrowserCommand(server.Entry());
  if (browser) {
    if (auto started = Start(*browser); !started) return started;
    Print(fmt::format("{} is at {}, and the browser was asked to show it.\n", file, address));
  } else {
    Print(fmt::format("{} is at {}\n", file, address));
    Print(
        fmt::format("From another machine: ssh -L {0}:127.0.0.1:{0} {1}, then the same address "
                    "there.\n",
                    server.port(), HostName()));
  }
  Print("The address is a secret. Ctrl-C ends it.\n");
  return FlushOut();
}

Result<int> View(const Options& options) {
  const auto kind = KindOf(options.file);
  if (!kind) return tl::unexpected(kind.error());
  auto server = serve::Server::Listen(options.port);
  if (!server) return tl::unexpected(server.error());
  auto file = options.perfetto ? TraceOf(options.file, *kind) : PageOf(options.file, *kind);
  if (!file) return tl::unexpected(file.error());
  constexpr const char* kHtml = "text/html; charset=utf-8";
  if (options.perfetto) {
    server->Add({.type = kHtml,
                 .policy = std::string(exporter::PagePolicy(viewer::kPerfettoPage).value_or("")),
                 .bytes = viewer::kPerfettoPage});
    server->Add({.name = "trace",
                 .type = "application/octet-stream",
                 .policy = "default-src 'none'",
                 .file_name = NameOf(options.file, *kind),
                 .file = file->fd(),
                 .size = file->size()});
  } else {
    auto policy = PolicyOf(*file, options.file);
    if (!policy) return tl::unexpected(policy.error());
    server->Add(
        {.type = kHtml, .policy = std::move(*policy), .file = file->fd(), .size = file->size()});
  }
  if (auto invited = Invite(*server, options); !invited) return tl::unexpected(invited.error());
  if (auto ran = server->Run(); !ran) return tl::unexpected(ran.error());
  return kExitDone;
}

}  // namespace

void AddView(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "view", "Show a timeline in the browser, from this machine to yours alone");
  sub->add_option("file", options->file,
                  "A capture (.iketcap), a run of run-iket (iket.data.json), or a page of iket "
                  "export (.html); with --perfetto a capture, .pftrace or .chrome.json, .gz too")
      ->required()
      ->type_name("FILE");
  sub->add_flag("--perfetto", options->perfetto,
                "Show it in Perfetto, https://ui.perfetto.dev, which your browser loads from the "
                "network; the trace goes from this process to that page within your browser, and "
                "is not uploaded");
  sub->add_option("--port", options->port, "Port of 127.0.0.1; by default one that is free")
      ->type_name("PORT");
  sub->add_flag("--no-browser", options->no_browser, "Say the address only");
  sub->footer(
      "Other users of this machine, and pages of other sites, get nothing: the address has a\n"
      "secret in it. Without a display, as in a remote shell, no browser is started: the ssh line\n"
      "says how to use your own. Nothing is written beside FILE, and nothing is left behind.");
  sub->callback([options, &run] { run = [options] { return View(*options); }; });
}

}  // namespace iket::cli
