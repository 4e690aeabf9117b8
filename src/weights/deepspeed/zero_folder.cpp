#include "weights/deepspeed/zero_folder.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;
using formats::FileError;

constexpr std::string_view model_end = "_model_states.pt";
constexpr std::string_view optimizer_end = "_optim_states.pt";

/// The number behind a text within a name; nothing if it is not there.
std::optional<std::size_t> number_after(std::string_view name, std::string_view text) {
  const auto at = name.find(text);
  if (at == std::string_view::npos) return {};
  std::size_t number = 0;
  const auto* begin = name.data() + at + text.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), number);
  return error == std::errc() && end != begin ? std::optional(number) : std::nullopt;
}

bool holds_model_states(const fs::path& folder) {
  std::error_code error;
  return std::ranges::any_of(fs::directory_iterator(folder, error), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().ends_with(model_end);
  });
}

void require_data_parallel(const fs::path& file) {
  const auto name = file.filename().string();
  const bool has_layers = name.starts_with("layer_") || name.find("expert_") != std::string::npos;
  const bool has_experts = name.starts_with("expp_");
  if (!has_layers && !has_experts && number_after(name, "mp_rank_").value_or(0) == 0) return;
  throw FileError({.what = text::concat("The folder ", file.parent_path(), " cannot be read: ", name,
                                        " holds parts of layers, of experts or of a pipeline"),
                   .why = "only tensors that ZeRO has cut are put together here",
                   .hint = "convert it with DeepSpeed's ds_to_universal.py, or save the whole model from Python"});
}

using NumberedFiles = std::map<std::size_t, fs::path>;

/// Files without a rank in their names are of rank 0.
std::vector<fs::path> in_order(const NumberedFiles& files, const fs::path& folder) {
  std::vector<fs::path> ordered;
  for (const auto& [rank, file] : files) {
    if (rank != ordered.size()) {
      throw FileError({.what = text::concat("The file of rank ", ordered.size(), " is missing in ", folder,
                                            ": the next is ", file.filename().string()),
                       .why = "each rank's file has a part of every tensor",
                       .hint = "copy the whole folder again; on nodes with disks of their own, collect all files"});
    }
    ordered.push_back(file);
  }
  return ordered;
}

}  // namespace

std::optional<fs::path> find_zero_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) return {};
  if (holds_model_states(folder)) return folder;
  std::string name;
  if (!std::getline(std::ifstream(folder / "latest"), name)) return {};
  const bool is_inside = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
  if (!is_inside || !fs::is_directory(folder / name) || !holds_model_states(folder / name)) return {};
  return folder / name;
}

ZeroFolder list_zero_folder(const fs::path& folder) {
  NumberedFiles models, optimizers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    const bool is_model = name.ends_with(model_end);
    if (!is_model && !name.ends_with(optimizer_end)) continue;
    require_data_parallel(entry.path());
    (is_model ? models : optimizers).emplace(number_after(name, "zero_pp_rank_").value_or(0), entry.path());
  }
  return {.folder = folder, .models = in_order(models, folder), .optimizers = in_order(optimizers, folder)};
}

}  // namespace hortator::weights
