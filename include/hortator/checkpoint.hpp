#pragma once

#include <map>
#include <optional>
#include <string>

namespace hortator {

/// Which way a checkpoint's bytes go into its files.
enum class CheckpointWriter {
  direct,  ///< every rank writes its part past HDF5: an error of the disk on one rank is survived by all
  mpio,    ///< every rank writes through parallel HDF5 over MPI-IO, for file systems that want it so
};

/// How checkpoints are written. They hold the same datasets whatever is chosen here, and any run reads any of them.
struct CheckpointOptions {
  CheckpointWriter writer = CheckpointWriter::direct;
  /// The ranks of so many nodes write one file together; by default all ranks of up to four nodes, and each node its
  /// own file on more.
  std::optional<int> nodes_per_file = {};
  /// save_state() returns when the state is copied; it is written meanwhile. The next save, and wait_for_checkpoint(),
  /// wait for it and tell what went wrong.
  bool asynchronous = false;
};

/// Of Accelerator::save_state.
struct SaveStateOptions {
  /// What the program wants to have known of this checkpoint, such as {"loss", "0.31"}: in UTF-8, kept in its manifest
  /// as rank 0 has it. `hortator checkpoint show` prints it; load_state() has no use for it.
  std::map<std::string, std::string> metadata = {};
};

/// Of Accelerator::load_state.
struct LoadOptions {
  /// false: what fits is loaded, by name, shape and type; the rest is warned of, and stays what it is.
  bool strict = true;
  /// Every block of bytes that is read is compared with its checksum.
  bool verify = true;
};

}  // namespace hortator
