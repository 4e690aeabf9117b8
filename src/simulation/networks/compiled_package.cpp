#include "simulation/networks/compiled_package.hpp"

#include <filesystem>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

/// The package that a section names. It must have its weights: settings name none.
std::filesystem::path package_of(const Section& section) {
  auto path = std::filesystem::path(section.file()).parent_path() / section.text("file");
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  throw section.error("file", text::concat(text::quote(path.string()), " does not exist"),
                      "make it in Python with torch._inductor.aoti_compile_and_package");
}

}  // namespace

CompiledPackage::CompiledPackage(const Section& section) : code_(package_of(section)) {
  if (code_.notes().contains("weights"))
    throw section.error("file", "the package has no weights of its own",
                        "compile it with torch._inductor.aoti_compile_and_package, or use hortator::load_compiled()");
}

}  // namespace hortator::simulation
