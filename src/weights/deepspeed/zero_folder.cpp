#include "weights/deepspeed/zero_folder.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;
using formats::FileError;

constexpr std::string_view model_end = "_model_states.pt";
constexpr std::string_view optimizer_end = "_optim_states.pt";
constexpr auto each_has_a_part = "each rank's file has a part of every tensor";

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

void add_file(NumberedFiles& files, const fs::path& file) {
  const auto name = file.filename().string();
  const auto [first, is_new] = files.emplace(number_after(name, "zero_pp_rank_").value_or(0), file);
  if (is_new) return;
  throw FileError({.what = text::concat("The folder ", file.parent_path(), " has two files of rank ", first->first,
                                        ": ", first->second.filename().string(), " and ", name),
                   .why = "they are of two saves, and it is not known which files belong together",
                   .hint = "move the files of the older save away"});
}

/// The name in the file `latest`; empty if there is none.
std::string latest_name(const fs::path& folder) {
  constexpr std::uint64_t max_bytes = 4096;  // a larger one is not DeepSpeed's
  const auto file = folder / "latest";
  if (!fs::is_regular_file(file) || fs::file_size(file) > max_bytes) return "";
  const auto content = formats::read_text(file, max_bytes);
  return content.substr(0, content.find('\n'));
}

/// Files without a rank in their names are of rank 0.
std::vector<fs::path> in_order(const NumberedFiles& files, const fs::path& folder) {
  std::vector<fs::path> ordered;
  for (const auto& [rank, file] : files) {
    if (rank != ordered.size()) {
      throw FileError({.what = text::concat("The file of rank ", ordered.size(), " is missing in ", folder,
                                            ": the next is ", file.filename().string()),
                       .why = each_has_a_part,
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
  const auto name = latest_name(folder);
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
    add_file(is_model ? models : optimizers, entry.path());
  }
  return {.folder = folder, .models = in_order(models, folder), .optimizers = in_order(optimizers, folder)};
}

void refuse_folder(const ZeroFolder& folder, const std::string& why) {
  throw FileError({.what = text::concat("The folder ", folder.folder, " does not fit together: ", why),
                   .why = each_has_a_part,
                   .hint = "the files are of different saves, or some are missing: copy the folder again"});
}

}  // namespace hortator::weights
