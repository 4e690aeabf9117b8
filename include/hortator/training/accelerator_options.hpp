#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <hortator/checkpoint.hpp>
#include <hortator/parallel/data_parallel.hpp>
#include <hortator/parallel/mesh.hpp>
#include <hortator/parallel/zero.hpp>
#include <hortator/schedule.hpp>
#include <hortator/tracker.hpp>
#include <hortator/training/accumulation.hpp>
#include <hortator/training/autocast.hpp>
#include <hortator/training/grad_scaler.hpp>
#include <hortator/training/precision.hpp>
#include <hortator/training/protection.hpp>
#include <hortator/training/stragglers.hpp>
#include <optional>
#include <vector>

/// Options of an Accelerator and of its calls.
namespace hortator {

/// The operation of Accelerator::reduce.
enum class Reduce { sum, mean, max, min, product };

/// How batches are distributed to ranks; Hugging Face Accelerate's DataLoaderConfiguration.
struct DataOptions {
  bool split_batches = false;  ///< batch_size is the total of all ranks, not of each rank
  bool even_batches = true;  ///< fills the last batches with the first samples, so that all ranks have the same number
  /// One rank of each node reads the batches of all its ranks and passes them on through shared memory. Their loops
  /// begin and end together, whatever even_batches is. By default only for streams whose batches are
  /// hortator::Serializable and are moved to the device.
  std::optional<bool> dispatch_batches = {};
  std::optional<std::uint64_t> seed = {};  ///< of the shuffled order; by default that of set_seed()
  /// With LoaderOptions::pin_memory off: copies to the device of batches that are already page-locked do not block.
  bool non_blocking = false;
};

/// Where a run writes its files; Accelerate's ProjectConfiguration.
struct ProjectOptions {
  std::filesystem::path dir = {};  ///< folder of the run's files; default: runs/<program>
  /// Writes checkpoints/checkpoint_0, _1, ... instead of replacing one checkpoint.
  bool automatic_checkpoint_naming = false;
  std::int64_t iteration = 0;  ///< the first number; existing numbers are never used again
  /// Keeps only this number of newest checkpoints. Removes an older one after a newer one is durable.
  std::optional<std::int64_t> total_limit = {};
  /// Each node keeps whole checkpoints of its own, where nodes share no file system: their ranks write them together,
  /// and load this node's. save_model() writes the whole model on each node, too. Folders may differ between nodes. Not
  /// with checkpoint.asynchronous, .incremental, MPI-IO and state hooks.
  bool save_on_each_node = false;
  std::optional<std::int64_t> keep_every = {};  ///< also keeps checkpoints whose number is a multiple of it
  std::filesystem::path logging_dir = {};       ///< folder of the trackers' files; default: logs/ in dir
};

/// The operators of one step, written so that `hortator compare-runs` can compare two runs. Each rank records the name,
/// shapes, hashes and norms of what its operators read and compute, which makes the step take about 1.6 times as long;
/// no other step takes longer.
struct RecordOptions {
  std::filesystem::path operators = {};  ///< the folder; empty: nothing is recorded
  std::int64_t step = 1;                 ///< the number of the update that ends the step, from 1
};

/// How a run is trained, and where it writes its files. Environment variables, which `hortator launch` sets, can supply
/// some options that are not set here.
struct AcceleratorOptions {
  /// By default HORTATOR_MIXED_PRECISION, else ACCELERATE_MIXED_PRECISION, else none. Must be equal on all ranks.
  std::optional<Precision> mixed_precision = {};
  MixedPrecisionPolicy mixed_precision_policy = {};
  std::int64_t gradient_accumulation_steps = 1;  ///< see accumulate(); HORTATOR_GRADIENT_ACCUMULATION_STEPS wins
  GradientAccumulationOptions gradient_accumulation = {};
  GradScalerOptions grad_scaler = {};  ///< with Precision::fp16
  AutocastOptions autocast = {};       ///< of prepared models, and of autocast() without an argument
  /// What to do about updates with a loss or gradient that is not finite. Not with reproducible, capture, LocalSGD,
  /// join_uneven_inputs and grad_scaler.late_verdict.
  ProtectionOptions protection = {};
  StragglerOptions stragglers = {};
  /// On CUDA devices, for the whole process: matrix products and convolutions in fp32 round their factors to 10 bits of
  /// mantissa, and run several times faster. (In PyTorch it is on for convolutions by default.)
  bool tf32 = false;
  bool cpu = false;              ///< use the CPU even if there are GPUs; also set by HORTATOR_CPU=1
  bool device_placement = true;  ///< prepare() moves models and loaders move batches to device()
  DataOptions data = {};
  DistributedDataParallelOptions ddp = {};
  ZeroConfig zero = {};
  ParallelConfig parallel = {};
  /// Makes a run bitwise equal on any number of ranks that divides virtual_shards by a power of two. Each step of all
  /// ranks has virtual_shards batches of batch_size, and each iteration of a loop computes one of them. Optimizers do
  /// nothing until a rank has computed all its shards. Gradients are summed along one tree; random numbers depend on
  /// (seed, step, shard); BatchNorm's statistics are those of the shard. Uses one thread for each rank. Gradients are
  /// ready at clip_grad_norm_() or step(). ZeRO's stages give the same bits as stage 0; each rank keeps whole gradients
  /// until the update at all of them. Along parallel.pipeline a loop gets the shards of a step as one batch, and
  /// pipeline_step() computes each as a micro-batch, with the bits of one rank whatever the schedule. Not with
  /// data.even_batches off or data.dispatch_batches on.
  bool reproducible = false;
  int virtual_shards = 8;
  ScheduleStep schedule_step = ScheduleStep::per_process;
  /// false: a schedule advances by one step for each call, whether or not its optimizer has stepped.
  bool step_scheduler_with_optimizer = true;
  /// AdamW, Adam and SGD use ATen's multi-tensor kernels, which are several times faster and equal torch::optim's steps
  /// within rounding. false: uses their own step().
  bool fused_optimizer = true;
  std::vector<LogWith> log_with = {"jsonl"};  ///< where log() writes its numbers; see LogWith
  ProjectOptions project = {};
  CheckpointOptions checkpoint = {};
  MemoryCheckpointOptions memory_checkpoint = {};
  LocalCheckpointOptions local_checkpoint = {};
  RecordOptions record = {};  ///< HORTATOR_RECORD_OPERATORS and HORTATOR_RECORD_STEP fill in what is not set
  /// The communicator to use instead of MPI_COMM_WORLD, as a Fortran handle (MPI_Comm_c2f).
  std::optional<int> communicator = {};
  /// The time after which a collective that has not completed ends the job; see StateOptions.
  std::optional<std::chrono::milliseconds> collective_timeout = {};
};

/// Options of Accelerator::prepare_model().
struct PrepareModelOptions {
  std::optional<bool> device_placement = {};  ///< overrides AcceleratorOptions::device_placement
  bool evaluation_mode = false;               ///< the model is not trained: its gradients and buffers are never sent
};

/// Options of Accelerator::prepare_data_loader().
struct PrepareDataLoaderOptions {
  std::optional<bool> device_placement = {};  ///< overrides AcceleratorOptions::device_placement
};

/// Options of Accelerator::clip_grad_norm_().
struct ClipOptions {
  bool error_if_nonfinite = false;  ///< throws on all ranks if the norm is not finite; waits for the device
};

/// Options of Accelerator::pad_across_processes().
struct PadOptions {
  std::int64_t dim = 0;    ///< the dimension whose sizes differ
  double pad_index = 0;    ///< the padding value, which the tensor's type must be able to hold
  bool pad_first = false;  ///< pads at the beginning instead of the end
};

}  // namespace hortator
