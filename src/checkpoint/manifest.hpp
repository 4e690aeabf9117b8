#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/layout.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::checkpoint {

/// All that a checkpoint says of itself. It is written last, and its checksum is its own: a folder with a manifest that
/// reads well was completed. Names are full paths, those of rank r's own under "ranks/<r>/".
struct Manifest {
  struct File {
    std::string name = "";
    std::int64_t bytes = 0;
    std::uint32_t structure = 0;  ///< checksum of all that lies between the tensors' bytes, in the file's order
  };
  struct Dataset {
    formats::TensorSpec spec = {};
    std::vector<Piece> pieces = {};
    std::vector<std::uint32_t> blocks = {};  ///< checksums, one for each block_bytes of the whole tensor
  };

  std::int64_t step = 0;     ///< the number of the checkpoint in its project
  std::int64_t updates = 0;  ///< how often the optimizers had stepped
  std::int64_t world_size = 0;
  std::map<std::string, std::int64_t> mesh = {};     ///< how the ranks were arranged: {"data": 4}
  std::map<std::string, std::string> metadata = {};  ///< the program's own words
  std::string created = "";                          ///< when, in UTC
  std::vector<File> files = {};
  std::map<std::string, Dataset> datasets = {};
  StateDict values = {};  ///< numbers and texts

  std::int64_t tensor_bytes() const;
};

std::string to_json(const Manifest& manifest);

/// Throws FileError with the reason for what is no whole manifest, or speaks of files that could not be ours.
Manifest parse_manifest(std::string_view json);

/// The bytes of the manifest in `folder`.
std::string manifest_text(const std::filesystem::path& folder);
/// The same, parsed. Errors name the file.
Manifest parse_manifest(const std::filesystem::path& folder, std::string_view json);
/// Of the checkpoint in `folder`.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace hortator::checkpoint
