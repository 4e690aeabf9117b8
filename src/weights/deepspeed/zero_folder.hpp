#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hortator::weights {

/// The files of a checkpoint that DeepSpeed's ZeRO wrote, in the order of the ranks.
struct ZeroFolder {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> models = {};      ///< ZeRO 1 and 2: one of all ranks
  std::vector<std::filesystem::path> optimizers = {};  ///< each rank's part of the flat arrays
};

/// The folder that holds *_model_states.pt: `folder` itself, or the one in it that DeepSpeed's file `latest` names;
/// nothing if there is none.
std::optional<std::filesystem::path> find_zero_folder(const std::filesystem::path& folder);

/// Lists the files. Throws FileError, naming the file, if that of a rank is missing or there twice, or if ranks hold
/// parts of layers (tensor, pipeline or expert parallel), which are not read. Opens no file.
ZeroFolder list_zero_folder(const std::filesystem::path& folder);

/// Throws FileError: the files do not fit together.
[[noreturn]] void refuse_folder(const ZeroFolder& folder, const std::string& why);

}  // namespace hortator::weights
