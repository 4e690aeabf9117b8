#include "exported/compiled/compiled_code.hpp"

#include <c10/core/GradMode.h>
#include <dlfcn.h>
#include <link.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "core/text/text.hpp"

namespace hortator::exported {
namespace {

constexpr const char* prefix_of_notes = "hortator_";
constexpr std::string_view note_of_weights = "weights";

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

std::string version_without_build(const std::string& version) { return version.substr(0, version.find('+')); }

void require_version(const std::filesystem::path& path, const std::map<std::string, std::string>& notes) {
  const auto noted = notes.find("torch");
  if (noted == notes.end() || version_without_build(noted->second) == version_without_build(TORCH_VERSION)) return;
  throw UsageError({.what = text::concat("The compiled package ", path, " was made by PyTorch ", noted->second,
                                         ", and this is LibTorch ", TORCH_VERSION),
                    .why = "compiled code calls functions of one version",
                    .hint = "compile it again by the PyTorch of this LibTorch"});
}

bool has_instructions(const std::string& set) {
#ifdef __x86_64__
  if (set == "AVX2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (set == "AVX512") return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (set == "AVX512_VNNI") return __builtin_cpu_supports("avx512vnni");
  return set != "AMX_TILE" && set != "AMX_FP16" && set != "ASIMD" && set != "SVE256";
#else
  return !set.starts_with("AVX") && !set.starts_with("AMX");
#endif
}

/// The instruction sets that AOTInductor has used: "AVX512 AVX512_VNNI".
void require_processor(const std::filesystem::path& path, const std::map<std::string, std::string>& notes) {
  const auto noted = notes.find("isa");
  if (noted == notes.end()) return;
  const auto sets = text::split(noted->second, ' ');
  if (std::ranges::all_of(sets, has_instructions)) return;
  throw UsageError({.what = text::concat("The compiled package ", path, " uses the instructions ", noted->second,
                                         ", which this processor does not have"),
                    .why = "it would end with an illegal instruction",
                    .hint = "compile it on this machine, or with ATEN_CPU_CAPABILITY=default"});
}

/// What compile_for_hortator.py writes: [{"names": ["up.weight"], "shape": [8, 3], "type": "float32",
/// "constant": false}, ...]
std::map<std::string, CompiledWeight> noted_weights(const std::filesystem::path& path, const std::string& note) {
  try {
    std::map<std::string, CompiledWeight> all;
    for (const auto& one : nlohmann::json::parse(note)) {
      const CompiledWeight weight{
          .names = one.at("names").get<std::vector<std::string>>(),
          .spec = formats::TensorSpec{.type = formats::type_named(one.at("type").get<std::string>()).value(),
                                      .shape = one.at("shape").get<std::vector<std::int64_t>>()},
          .is_constant = one.at("constant").get<bool>()};
      for (const auto& name : weight.names) all.emplace(name, weight);
    }
    return all;
  } catch (const std::exception& error) {
    throw UsageError({.what = text::concat("The compiled package ", path,
                                           " does not describe its weights: ", text::first_line(error.what())),
                      .hint = "compile it again by share/python/compile_for_hortator.py"});
  }
}

/// Those that the package has itself.
std::map<std::string, CompiledWeight> own_weights(const torch::inductor::AOTIModelContainerRunner& runner) {
  std::map<std::string, CompiledWeight> all;
  for (const auto& [name, tensor] : runner.extract_constants_map(/*use_inactive=*/false))
    if (tensor.defined() && tensor.is_contiguous())
      all.emplace(name, CompiledWeight{.names = {name}, .spec = formats::spec_of(tensor)});
  return all;
}

}  // namespace

CompiledCode::CompiledCode(std::filesystem::path package) : path_(std::move(package)) {
  // Compiled code reads whatever memory it gets: it compares its inputs with what it was compiled for only if this
  // variable asks for it when it is called first.
  setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 0);
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored))
    throw UsageError({.what = text::concat("There is no compiled package ", path_),
                      .hint = "make it in Python with share/python/compile_for_hortator.py"});
  load_libtorch();
  try {
    using Loader = torch::inductor::AOTIModelPackageLoader;
    for (const auto& [key, value] : Loader::load_metadata_from_package(path_.string(), "model")) {
      if (key.starts_with(prefix_of_notes)) notes_.emplace(key.substr(std::string(prefix_of_notes).size()), value);
      if (key == "AOTI_CPU_ISA") notes_.emplace("isa", value);
    }
    require_version(path_, notes_);
    require_processor(path_, notes_);
    loader_ = std::make_unique<torch::inductor::AOTIModelPackageLoader>(path_.string());
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError(
        {.what = text::concat("The compiled package ", path_, " cannot be loaded: ", text::first_line(error.what())),
         .hint = "compile it for this machine with the version of PyTorch that LibTorch has"});
  }
}

CompiledCode::~CompiledCode() = default;

std::vector<CompiledWeight> CompiledCode::weights() const {
  const auto noted = notes_.find(std::string(note_of_weights));
  auto found = noted != notes_.end() ? noted_weights(path_, noted->second) : own_weights(*loader_->get_runner());
  std::vector<CompiledWeight> all;
  for (const auto& name : loader_->get_constant_fqns()) {
    const auto one = found.find(name);
    all.push_back(one != found.end() ? one->second : CompiledWeight{});
    all.back().name = name;
  }
  return all;
}

void CompiledCode::use(const std::map<std::string, at::Tensor>& weights) {
  std::unordered_map<std::string, at::Tensor> all(weights.begin(), weights.end());
  try {
    loader_->load_constants(all, /*use_inactive=*/false, /*check_full_update=*/true, /*user_managed=*/true);
  } catch (const std::exception& error) {
    throw UsageError({.what = text::concat("The compiled package ", path_,
                                           " does not take its weights: ", text::first_line(error.what())),
                      .hint = "compile it by share/python/compile_for_hortator.py"});
  }
}

std::vector<at::Tensor> CompiledCode::run(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> contiguous;
  try {
    for (const auto& input : inputs) contiguous.push_back(input.contiguous());
    return loader_->run(contiguous);
  } catch (const std::exception& error) {
    throw UsageError(
        {.what = text::concat("The compiled package ", path_, " refuses its inputs: ", text::first_line(error.what())),
         .hint = "pass tensors of the shapes and types that it was compiled for"});
  }
}

}  // namespace hortator::exported
