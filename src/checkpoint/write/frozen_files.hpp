#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"

namespace hortator::checkpoint {

/// The frozen files of a checkpoint, which later checkpoints may share as hard links, and the tensors in them.
struct FrozenFiles {
  std::filesystem::path folder = {};  ///< of the checkpoint
  std::vector<Manifest::File> files = {};
  std::map<std::string, Manifest::Dataset> datasets = {};  ///< their pieces number `files`

  std::vector<std::string> names() const;
};

/// What a checkpoint has in frozen files; nothing if it has none.
std::optional<FrozenFiles> frozen_files_of(const std::filesystem::path& folder, const Manifest& manifest);

/// Adds the files and their tensors to the manifest of another checkpoint, which has links to them.
void add(Manifest& manifest, const FrozenFiles& frozen);

/// Links the files into the folder `to`. Throws FileError, and leaves none there, if one is missing or has another
/// size, or the file system has no hard links.
void link_files(const FrozenFiles& frozen, const std::filesystem::path& to);

}  // namespace hortator::checkpoint
