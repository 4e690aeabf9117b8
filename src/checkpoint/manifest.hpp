#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/stored_piece.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::checkpoint {

/// The description of a checkpoint. It is written last and carries its own checksum, so a folder with a valid manifest
/// is a complete checkpoint. Names are full paths; those of rank r's own state begin with "ranks/<r>/".
struct Manifest {
  struct File {
    std::string name = "";
    std::int64_t bytes = 0;
    std::uint32_t structure_crc32c = 0;                ///< of all bytes outside the tensors, in file order
    std::optional<std::uint32_t> tensors_crc32c = {};  ///< of all others; older versions have not written it
  };
  struct Dataset {
    formats::TensorSpec spec = {};
    std::vector<StoredPiece> pieces = {};
    std::vector<std::uint32_t> blocks = {};  ///< checksums, one for each block of the whole tensor
  };

  std::int64_t step = 0;     ///< the number of the checkpoint in its project
  std::int64_t updates = 0;  ///< optimizer steps done
  std::int64_t world_size = 0;
  std::map<std::string, std::int64_t> mesh = {};     ///< how the ranks were arranged, such as {"data": 4}
  std::map<std::string, std::string> metadata = {};  ///< set by the program
  std::string created = "";                          ///< time of the save, in UTC
  std::vector<File> files = {};
  std::map<std::string, Dataset> datasets = {};
  StateDict values = {};  ///< numbers and texts

  std::int64_t tensor_bytes() const;
};

std::string to_json(const Manifest& manifest);

/// Throws FileError if `json` is not a complete manifest, or names files that cannot be part of a checkpoint.
Manifest parse_manifest(std::string_view json);

/// Reads the bytes of the manifest in `folder`. Errors name the file.
std::string manifest_text(const std::filesystem::path& folder);
/// Parses the manifest of `folder`, whose bytes are `json`. Errors name the file.
Manifest parse_manifest(const std::filesystem::path& folder, std::string_view json);
/// Reads and parses the manifest of the checkpoint in `folder`. Errors name the file.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace hortator::checkpoint
