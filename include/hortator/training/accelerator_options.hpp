#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <hortator/checkpoint.hpp>
#include <hortator/parallel/data_parallel.hpp>
#include <hortator/parallel/zero.hpp>
#include <hortator/schedule.hpp>
#include <hortator/tracker.hpp>
#include <hortator/training/accumulation.hpp>
#include <hortator/training/grad_scaler.hpp>
#include <hortator/training/precision.hpp>
#include <optional>
#include <vector>

/// What an Accelerator can be asked for, as a whole and in single calls.
namespace hortator {

/// How Accelerator::reduce joins numbers.
enum class Reduce { sum, mean, max, min, product };

/// How batches are dealt to ranks; the reference's DataLoaderConfiguration.
struct DataOptions {
  bool split_batches = false;  ///< batch_size is of all ranks together, not of each
  bool even_batches = true;    ///< the last batches are filled up from the first samples, so that all ranks see as many
  /// One rank of each node reads the batches of all its ranks and hands them out through shared memory; their loops
  /// begin and end together, whatever even_batches says. By default so for streams alone, whose batches are
  /// hortator::Serializable.
  std::optional<bool> dispatch_batches = {};
  std::optional<std::uint64_t> seed = {};  ///< of the shuffled order; by default set_seed's
  /// With LoaderOptions::pin_memory off: nobody waits for the copies to the device of batches that lie in page-locked
  /// memory by themselves.
  bool non_blocking = false;
};

/// The reference's ProjectConfiguration.
struct ProjectOptions {
  std::filesystem::path dir = {};  ///< where the run's files go; default: runs/ and the program's name
  /// Checkpoints are checkpoints/checkpoint_0, _1, ... in place of one checkpoint that is replaced.
  bool automatic_checkpoint_naming = false;
  std::int64_t iteration = 0;  ///< the first number; those that are there already are never used again
  std::optional<std::int64_t> total_limit = {};  ///< so many of the newest stay; older ones go once a newer is durable
  std::optional<std::int64_t> keep_every = {};   ///< numbers that it divides stay beside them
  std::filesystem::path logging_dir = {};        ///< of the trackers' files; default: logs/ in dir
};

/// How a run is trained, and where it leaves what it writes. What is not given here may come from the environment, as
/// `hortator launch` sets it.
struct AcceleratorOptions {
  /// By default HORTATOR_MIXED_PRECISION, ACCELERATE_MIXED_PRECISION, or none. The same on all ranks.
  std::optional<Precision> mixed_precision = {};
  std::int64_t gradient_accumulation_steps = 1;  ///< see accumulate(); HORTATOR_GRADIENT_ACCUMULATION_STEPS outranks it
  GradientAccumulationOptions gradient_accumulation = {};
  GradScalerOptions grad_scaler = {};  ///< with Precision::fp16
  /// On CUDA devices, for the whole process: products and convolutions in fp32 round their factors to 10 bits of
  /// mantissa, for several times the speed. (PyTorch has it on for convolutions by default.)
  bool tf32 = false;
  bool cpu = false;              ///< stay on the CPU, also where there are GPUs; HORTATOR_CPU=1 says it, too
  bool device_placement = true;  ///< prepare() moves models, loaders move batches, to device()
  DataOptions data = {};
  DistributedDataParallelOptions ddp = {};
  ZeroConfig zero = {};
  /// Bitwise the same run on any number of ranks that divides virtual_shards by a power of two: each step of all ranks
  /// is made of that many batches of batch_size, and a loop's body is one of them, whoever runs it. Optimizers rest
  /// until a rank has done its share; gradients are summed along one tree; random numbers belong to (seed, step,
  /// shard); BatchNorm's statistics to the shard. One thread a rank. Gradients are ready at clip_grad_norm_ or at
  /// step().
  bool reproducible = false;
  int virtual_shards = 8;
  ScheduleStep schedule_step = ScheduleStep::per_process;
  /// false: a schedule advances by one step a call, whether or not its optimizer has stepped.
  bool step_scheduler_with_optimizer = true;
  /// AdamW, Adam and SGD step by ATen's multi-tensor kernels: several times faster, equal to torch::optim's within
  /// rounding. false: by their own step().
  bool fused_optimizer = true;
  std::vector<LogWith> log_with = {"jsonl"};  ///< where log() keeps its numbers: see LogWith
  ProjectOptions project = {};
  CheckpointOptions checkpoint = {};
  /// Ranks to work with in place of MPI_COMM_WORLD, as a Fortran handle (MPI_Comm_c2f).
  std::optional<int> communicator = {};
  /// How long a collective may last before the job is ended: see StateOptions.
  std::optional<std::chrono::milliseconds> collective_timeout = {};
};

/// Of Accelerator::prepare_model.
struct PrepareModelOptions {
  std::optional<bool> device_placement = {};  ///< in place of AcceleratorOptions::device_placement
  bool evaluation_mode = false;  ///< it will not learn: its gradients and buffers are never sent to other ranks
};

/// Of Accelerator::prepare_data_loader.
struct PrepareDataLoaderOptions {
  std::optional<bool> device_placement = {};  ///< in place of AcceleratorOptions::device_placement
};

/// Of Accelerator::clip_grad_norm_.
struct ClipOptions {
  bool error_if_nonfinite = false;  ///< a norm that is not finite is an error on all ranks: waits for the device
};

/// Of Accelerator::pad_across_processes.
struct PadOptions {
  std::int64_t dim = 0;    ///< along which sizes differ
  double pad_index = 0;    ///< the number that fills up: one that the tensor's type can hold
  bool pad_first = false;  ///< before what is there, not behind it
};

}  // namespace hortator
