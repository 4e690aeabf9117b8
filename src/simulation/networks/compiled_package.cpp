#include "simulation/networks/compiled_package.hpp"

#include <dlfcn.h>
#include <link.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

/// Loads libtorch.so from the folder of the LibTorch that runs: packages name it, and do not know where it is.
void load_libtorch() {
  void* const loaded = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  const link_map* map = nullptr;
  if (dlinfo(loaded, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
    const auto file = std::filesystem::path(map->l_name).parent_path() / "libtorch.so";
    dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);  // if it is missing, the package's own error says so
  }
  dlclose(loaded);
}

}  // namespace

// Compiled code reads whatever memory it gets: it compares its inputs with what it was compiled for only if this
// variable asks for it when it is called first.
CompiledPackage::CompiledPackage(const Section& section) {
  setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 0);
  const auto path = std::filesystem::path(section.file()).parent_path() / section.text("file");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw section.error("file", text::concat(text::quote(path.string()), " does not exist"),
                        "make it in Python with torch._inductor.aoti_compile_and_package");
  load_libtorch();
  try {
    package_ = std::make_unique<torch::inductor::AOTIModelPackageLoader>(path.string());
  } catch (const std::exception& error) {
    throw section.error("file",
                        text::concat(text::quote(path.string()), " cannot be loaded: ", text::first_line(error.what())),
                        "compile the package for this machine with the version of PyTorch that LibTorch has");
  }
}

CompiledPackage::~CompiledPackage() = default;

Network::Tensors CompiledPackage::forward(const Tensors& inputs) {
  Tensors contiguous;
  for (const auto& input : inputs) contiguous.push_back(input.contiguous());
  try {
    return package_->run(contiguous);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError({.what = text::concat("The compiled package refuses its inputs: ", text::first_line(error.what())),
                      .hint = "bind arrays of the shapes and types that it was compiled for"});
  }
}

}  // namespace hortator::simulation
