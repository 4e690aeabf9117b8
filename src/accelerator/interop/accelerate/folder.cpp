#include "accelerator/interop/accelerate/folder.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "core/text/text.hpp"
#include "weights/deepspeed/zero_folder.hpp"
#include "weights/distributed_weights.hpp"

namespace hortator::accelerator {

namespace fs = std::filesystem;

namespace {

/// The number of existing files path_of(0), path_of(1), ... up to the first gap.
template <typename PathOf>
std::size_t count_from_0(const PathOf& path_of) {
  std::size_t index = 0;
  while (fs::exists(path_of(index))) ++index;
  return index;
}

bool has_parts(const fs::path& folder) { return fs::exists(folder / weights::DistributedWeights::metadata_file); }

}  // namespace

std::string numbered_file(const std::string& name, std::size_t index, const std::string& extension) {
  return index == 0 ? name + extension : text::concat(name, "_", index, extension);
}

bool AccelerateFolder::is_at(const fs::path& folder) {
  return fs::is_directory(folder) && !fs::exists(folder / checkpoint::manifest_file) &&
         (AccelerateFolder(folder).models() > 0 || AccelerateFolder(folder).pieces());
}

std::size_t AccelerateFolder::models() const {
  return count_from_0([&](std::size_t index) { return model(index); });
}
std::size_t AccelerateFolder::processes() const {
  return count_from_0([&](std::size_t index) { return random_states(static_cast<int>(index)); });
}
std::size_t AccelerateFolder::objects() const {
  return count_from_0([&](std::size_t index) { return object(index); });
}
std::size_t AccelerateFolder::count(const std::string& name, const char* extension) const {
  return count_from_0([&](std::size_t index) { return numbered(name, index, extension); });
}

std::size_t AccelerateFolder::optimizers() const {
  return count_from_0([&](std::size_t index) { return optimizer(index); });
}

fs::path AccelerateFolder::optimizer(std::size_t index) const {
  auto file = numbered("optimizer", index, ".bin");
  auto parts = folder_ / text::concat("optimizer_", index);
  if (fs::exists(file)) return file;
  return has_parts(parts) ? parts : zero_folder(index).value_or(file);
}

std::optional<fs::path> AccelerateFolder::zero_folder(std::size_t index) const {
  const auto found = weights::find_zero_folder(numbered("pytorch_model", index, ""));
  return found || index > 0 ? found : weights::find_zero_folder(folder_);
}

fs::path AccelerateFolder::model(std::size_t index) const {
  auto safe = numbered("model", index, ".safetensors");
  if (fs::exists(safe)) return safe;
  auto parts = folder_ / text::concat("pytorch_model_fsdp_", index);
  if (has_parts(parts)) return parts;
  auto gathered = numbered("pytorch_model_fsdp", index, ".bin");
  if (fs::exists(gathered)) return gathered;
  return zero_folder(index).value_or(numbered("pytorch_model", index, ".bin"));
}

std::optional<AccelerateFolder::Pieces> AccelerateFolder::pieces() const {
  for (const auto& entry : fs::directory_iterator(folder_)) {
    auto name = entry.path().filename().string();
    const bool is_fsdps = name.starts_with("pytorch_model_fsdp_") || name.starts_with("optimizer_");
    if (is_fsdps && entry.is_directory() && !has_parts(entry.path())) {
      return Pieces{.library = "FSDP",
                    .name = std::move(name),
                    .way =
                        "its file .metadata is missing: the save was killed before it ended, or a copy left out hidden "
                        "files; copy the folder again, or take an older save"};
    }
    if (name.starts_with("pytorch_model_fsdp") && name.find("rank") != std::string::npos) {
      return Pieces{.library = "FSDP",
                    .name = std::move(name),
                    .way = "load them with Python and save with FSDP's FULL_STATE_DICT, which load_state reads"};
    }
  }
  return {};
}

fs::path AccelerateFolder::random_states(int process) const {
  return folder_ / text::concat("random_states_", process, ".pkl");
}

fs::path AccelerateFolder::object(std::size_t index) const {
  return folder_ / text::concat("custom_checkpoint_", index, ".pkl");
}

std::vector<std::string> AccelerateFolder::loaders() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("sampler") || name.starts_with("dl_state_dict")) found.push_back(name);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace hortator::accelerator
