#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace hortator {

/// How the bytes of a checkpoint are written to its files.
enum class CheckpointWriter {
  direct,  ///< every rank writes its part without HDF5; all ranks survive a disk error on one of them
  mpio,    ///< every rank writes through parallel HDF5 with MPI-IO, for file systems that need it
};

/// How checkpoints are written. The options do not change the datasets in a checkpoint, and any run can read any
/// checkpoint.
struct CheckpointOptions {
  CheckpointWriter writer = CheckpointWriter::direct;
  /// The number of nodes whose ranks write one file together. By default all ranks write one file on up to four nodes,
  /// and each node writes its own file on more.
  std::optional<int> nodes_per_file = {};
  /// save_state() returns when the state is copied and writes it in the background. The next save and
  /// wait_for_checkpoint() wait for it and throw its errors. Not with CheckpointWriter::mpio.
  bool asynchronous = false;
  /// Called on the main process with the folder of each checkpoint of save_state() that is complete on all ranks and
  /// has its name: before save_state() returns or, of an asynchronous save, in the first backward(), should_stop(),
  /// save_state() or wait_for_checkpoint() after that. What it throws is printed as a warning and does not end the run.
  /// It must call no collective function.
  std::function<void(const std::filesystem::path& folder)> on_complete = {};
  /// Parameters that are not trained, such as the base model of adapters, are written once, into files of their own
  /// (frozen.h5). Later checkpoints hold hard links to them as long as their bytes are the same, also in a run that
  /// resumes on other ranks. Each save reads these parameters to compare them. Not with CheckpointWriter::mpio.
  bool incremental = false;
  /// should_stop() also calls save_state() when that many optimizer steps were made since the last save, or that time
  /// has passed by rank 0's clock, whichever comes first; 0: never. HORTATOR_PROJECT_CHECKPOINT ("200", "1h") replaces
  /// both.
  std::int64_t every_steps = 0;
  std::chrono::milliseconds every = {};
};

/// Checkpoints in the memory of the nodes, from which `hortator launch --max-restarts N` resumes a run after a failure.
/// They are taken in should_stop(), which the program must call after each step, and load_state() without a folder
/// finds them. The two newest are kept, until the launcher ends.
struct MemoryCheckpointOptions {
  /// Optimizer steps between two of them, and the time between them by rank 0's clock: the one that comes first counts,
  /// and 0 never does. HORTATOR_MEMORY_CHECKPOINT ("10", "30s") replaces both.
  std::int64_t every_steps = 0;
  std::chrono::milliseconds every = {};
  /// The number of other nodes that hold a copy of each node's part, so that as many neighbours may fail.
  int partner = 1;
  /// The memory of a node that they may use, for two of them and copies for partners; default: half of what is free.
  std::optional<std::int64_t> max_bytes = {};
};

/// Checkpoints on the nodes' own disks, which resume a run after a failure as those in memory do, also in a later
/// launch on the same nodes. The two newest are kept until the run that has taken them finishes.
struct LocalCheckpointOptions {
  std::int64_t every_steps = 0;  ///< as in MemoryCheckpointOptions; HORTATOR_LOCAL_CHECKPOINT replaces both
  std::chrono::milliseconds every = {};
  std::filesystem::path folder = {};           ///< on each node's own disk; default: SLURM_TMPDIR, TMPDIR, or /tmp
  int partner = 1;                             ///< the number of other nodes that hold a copy of each node's part
  std::optional<std::int64_t> max_bytes = {};  ///< of a node, for two of them and copies; default: what the disk has
};

/// Options of Accelerator::save_state.
struct SaveStateOptions {
  /// Information about the checkpoint for people and tools, such as {"loss", "0.31"}, in UTF-8. Rank 0's metadata is
  /// stored in the manifest. `hortator checkpoint show` prints it; load_state() ignores it.
  std::map<std::string, std::string> metadata = {};
  /// Leaves frozen parameters out, such as the base model of adapters. load_state() then leaves those of the program as
  /// they are: load them first. Buffers and everything else are saved.
  bool only_trainable = false;
};

/// Options of Accelerator::save.
struct SaveFileOptions {
  bool on_each_node = false;  ///< a process of each node writes, where nodes share no file system
};

/// Options of Accelerator::load_state(). From a folder of Hugging Face Accelerate the Python run continues here, with
/// the same objects prepared in the same order: models, optimizers, schedules, the scaler, registered objects and
/// PyTorch's random numbers are loaded; for the rest (loader positions, random numbers of Python and NumPy) a warning
/// is logged.
struct LoadOptions {
  /// false: load what matches by name, shape and type; warn about everything else and leave it unchanged.
  bool strict = true;
  /// Compare every block that is read with its checksum.
  bool verify = true;
};

}  // namespace hortator
