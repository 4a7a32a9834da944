// patch_cubin IN OUT: patches a cubin as the collector would, every kernel of it, marked or not.
// Prints a line for each function that is refused; exit code 1 if there was one, or nothing to
// patch.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "patch/patch.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: patch_cubin IN OUT\n");
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(in)), {});
  const auto image =
      iket::cubin::Image::Parse(iket::UntrustedBytes(std::as_bytes(std::span(file))));
  if (!image) {
    fmt::print(stderr, "{}: {}\n", argv[1], image.error().message);
    return 1;
  }
  iket::patch::Options options;
  options.layout = iket::ring::MakeLayout(32 << 10, 132).value();
  options.choose = [](const std::string&) { return iket::patch::Choice{.unmarked = true}; };
  const auto patched = iket::patch::PatchImage(*image, options);
  if (!patched || !patched->image) {
    fmt::print("{}\n", patched ? "nothing to patch" : patched.error().message);
    return 1;
  }
  int code = 0;
  for (const iket::patch::FunctionReport& function : patched->report.functions) {
    if (function.refusal.empty()) continue;
    fmt::print("{}: {}\n", function.name, function.refusal);
    code = 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(patched->image->data()),
            static_cast<std::streamsize>(patched->image->size()));
  return out.good() ? code : 1;
}
