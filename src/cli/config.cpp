// iket config: where this iket stands, as a compiler and a build script ask for it.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/json_writer.h"

namespace iket::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  bool cflags = false;
  bool enable = false;
  bool includedir = false;
  bool libdir = false;
  bool session_libdir = false;
  bool prefix = false;
  bool version = false;
  bool json = false;
};

constexpr const char* kFooter =
    "Without an option: all of it, in a table. Paths follow from where this program lies, so they\n"
    "are right in an installed tree, in an unpacked one that was moved, and in a build folder.\n"
    "\n"
    "  nvcc $(iket config --cflags --enable) -std=c++20 -arch=sm_90a app.cu -o app\n"
    "  CXXFLAGS += $(shell iket config --cflags)              # in a Makefile: without marks\n"
    "  cmake -DCMAKE_PREFIX_PATH=\"$(iket config --prefix)\" ...  # for find_package(iket)\n"
    "\n"
    "The words of --cflags are quoted as a shell wants them where a path needs it; in such a "
    "place\n"
    "use eval \"nvcc $(iket config --cflags) ...\", and shlex.split in Python. Single paths are\n"
    "printed as they are.";

struct Place {
  fs::path prefix;
  fs::path include;
  fs::path library;
  fs::path session;
};

Result<Place> FindPlace() {
  std::error_code why;
  const fs::path program = fs::read_symlink("/proc/self/exe", why);
  if (why) return Fail(ErrorKind::kSystem, "/proc/self/exe: {}", why.message());
  const fs::path prefix = program.parent_path().parent_path();
  return Place{prefix, prefix / "include", prefix / "lib", prefix / "lib" / "iket-session"};
}

// A compiler would say it too, but not what to do.
Result<void> RequireHeader(const Place& place) {
  const fs::path header = place.include / "iket" / "iket.cuh";
  std::error_code ignored;
  if (fs::exists(header, ignored)) return {};
  return Fail(ErrorKind::kSystem,
              "{}: is not there; install iket whole: bin, lib and include belong side by side",
              header.string());
}

std::string Cflags(const Place& place, bool enable) {
  return ShellWord("-I" + place.include.string()) + (enable ? " -DIKET_ENABLE" : "");
}

// What is there of the files by which build systems find us; a build folder has none.
std::string IfThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? path.string() : "";
}

Result<int> Config(const Options& options) {
  // One answer at a time: a script reads the whole output.
  if (options.cflags + options.includedir + options.libdir + options.session_libdir +
          options.prefix + options.version + options.json >
      1) {
    return Fail(
        ErrorKind::kUsage,
        "config: --cflags, --includedir, --libdir, --session-libdir, --prefix, --version and "
        "--json are asked one at a time; without any of them all is said");
  }
  if (options.enable && !options.cflags) {
    return Fail(ErrorKind::kUsage, "config: --enable says something about --cflags alone");
  }
  const auto place = FindPlace();
  if (!place) return tl::unexpected(place.error());
  if (options.version) {
    Print(IKET_VERSION "\n");
    return kExitDone;
  }
  if (options.prefix || options.libdir || options.session_libdir) {
    const fs::path& path = options.prefix   ? place->prefix
                           : options.libdir ? place->library
                                            : place->session;
    Print(path.string() + "\n");
    return kExitDone;
  }
  if (auto found = RequireHeader(*place); !found) return tl::unexpected(found.error());
  if (options.includedir || options.cflags) {
    Print((options.cflags ? Cflags(*place, options.enable) : place->include.string()) + "\n");
    return kExitDone;
  }

  // Key in JSON, label in the table, value.
  const std::string cmake = IfThere(place->library / "cmake" / "iket");
  const std::string pkg_config = IfThere(place->library / "pkgconfig" / "iket.pc");
  const std::vector<std::array<std::string, 3>> rows = {
      {"version", "version", IKET_VERSION},
      {"prefix", "prefix", place->prefix.string()},
      {"includedir", "includedir", place->include.string()},
      {"libdir", "libdir", place->library.string()},
      {"session_libdir", "session lib", place->session.string()},
      {"cflags", "cflags", Cflags(*place, false)},
      {"cflags_enable", "with marks", Cflags(*place, true)},
      {"cmake", "find_package", cmake},
      {"pkg_config", "pkg-config", pkg_config},
  };
  if (options.json) {
    exporter::JsonWriter json;
    {
      auto object = json.Object();
      for (const auto& [key, label, value] : rows) json.Member(key, value);
    }
    Print(json.text() + "\n");
    return kExitDone;
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (const auto& [key, label, value] : rows) {
    table.Row({label, value.empty() ? "not in a build folder; make install puts it" : value});
  }
  Print(table.Text());
  return kExitDone;
}

}  // namespace

void AddConfig(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "config", "Say where iket's header and library are, and what compilers need to find them");
  sub->add_flag("--cflags", options->cflags, "For nvcc or a host compiler, to find the header: -I");
  sub->add_flag("--enable", options->enable, "With --cflags: and -DIKET_ENABLE, to build marks in");
  sub->add_flag("--includedir", options->includedir, "The folder that holds iket/iket.cuh");
  sub->add_flag("--libdir", options->libdir, "The folder that holds libiket_inject.so");
  sub->add_flag("--session-libdir", options->session_libdir,
                "The folder that holds libiket_injection.so, for programs that profile themselves");
  sub->add_flag("--prefix", options->prefix, "The folder that bin, include and lib are in");
  sub->add_flag("--version", options->version, "The version alone");
  sub->add_flag("--json", options->json, "All of it as JSON");
  sub->footer(kFooter);
  sub->callback([options, &run] { run = [options] { return Config(*options); }; });
}

}  // namespace iket::cli
