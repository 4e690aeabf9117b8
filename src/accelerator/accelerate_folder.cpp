#include "accelerator/accelerate_folder.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "checkpoint/format.hpp"

namespace hortator::accelerator {

namespace fs = std::filesystem;

namespace {

/// How many there are of those that `path_of` numbers from 0 on without a gap.
template <typename PathOf>
std::size_t count_from_0(const PathOf& path_of) {
  std::size_t index = 0;
  while (fs::exists(path_of(index))) ++index;
  return index;
}

}  // namespace

bool AccelerateFolder::is_at(const fs::path& folder) {
  return fs::is_directory(folder) && !fs::exists(folder / checkpoint::manifest_file) &&
         AccelerateFolder(folder).models() > 0;
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

fs::path AccelerateFolder::model(std::size_t index) const {
  auto safe = numbered("model", index, ".safetensors");
  return fs::exists(safe) ? safe : numbered("pytorch_model", index, ".bin");
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

fs::path AccelerateFolder::numbered(const std::string& name, std::size_t index, const char* extension) const {
  return folder_ / (index == 0 ? name + extension : text::concat(name, "_", index, extension));
}

}  // namespace hortator::accelerator
