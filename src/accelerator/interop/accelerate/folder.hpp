#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hortator::accelerator {

/// "name.bin", "name_1.bin", "name_2.bin", ...
std::string numbered_file(const std::string& name, std::size_t index, const std::string& extension);

/// The file names in a folder that save_state() of Hugging Face Accelerate wrote. Only lists the folder, reads no file.
class AccelerateFolder {
 public:
  /// Whether the folder is one: it has a model's weights, whole or in pieces, and no Hortator checkpoint.
  static bool is_at(const std::filesystem::path& folder);

  explicit AccelerateFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }

  // The number of saved objects of each type.
  std::size_t models() const;
  std::size_t optimizers() const;
  std::size_t schedules() const { return count("scheduler", ".bin"); }
  std::size_t processes() const;
  std::size_t objects() const;

  /// A file, or a folder of parts: of torch.distributed.checkpoint, or of DeepSpeed.
  std::filesystem::path model(std::size_t index) const;
  /// A file; or a folder of parts, which FSDP's SHARDED_STATE_DICT and DeepSpeed write.
  std::filesystem::path optimizer(std::size_t index) const;
  std::filesystem::path schedule(std::size_t index) const { return numbered("scheduler", index, ".bin"); }
  std::filesystem::path scaler() const { return folder_ / "scaler.pt"; }
  std::filesystem::path random_states(int process) const;
  std::filesystem::path object(std::size_t index) const;
  /// A state that FSDP saved in pieces that cannot be read here, and what to do; nothing if there is none.
  struct Pieces {
    std::string library;
    std::string name;
    std::string way;
  };
  std::optional<Pieces> pieces() const;
  /// The files with the positions of Python's loaders, which cannot be used: sampler.bin, dl_state_dict.bin and so on.
  std::vector<std::string> loaders() const;

 private:
  std::filesystem::path numbered(const std::string& name, std::size_t index, const char* extension) const {
    return folder_ / numbered_file(name, index, extension);
  }
  std::size_t count(const std::string& name, const char* extension) const;
  /// Where DeepSpeed saved a model and its optimizer; nothing if it did not.
  std::optional<std::filesystem::path> zero_folder(std::size_t index) const;

  std::filesystem::path folder_;
};

}  // namespace hortator::accelerator
