#include <ATen/ops/empty.h>

#include <algorithm>

#include "bench/files/disk.hpp"
#include "bench/measurements.hpp"
#include "core/text/text.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t default_model_bytes = std::int64_t{2} << 30;
constexpr std::int64_t layers_of_model = 64;
constexpr std::int64_t shards = 8;

/// Weights of the given total size.
struct Layers : torch::nn::Module {
  explicit Layers(std::int64_t bytes) {
    const auto elements = std::max<std::int64_t>(bytes / (4 * layers_of_model), 1);
    for (std::int64_t i = 0; i < layers_of_model; ++i)
      register_buffer(text::concat("layer", i), at::empty({elements}).fill_(static_cast<double>(i)));
  }
};

class WeightsComparison {
 public:
  WeightsComparison(Accelerator& accelerator, std::int64_t bytes, const Plan& plan)
      : accelerator_(accelerator),
        comm_(accelerator.world().comm()),
        blocks_(plan.blocks),
        module_(bytes),
        tensors_(module_.buffers()),
        options_({.max_shard_size = std::to_string(bytes_of(tensors_) / shards)}),
        scratch_(comm_, plan.folder) {}

  Result save() {
    return compare("save_model", "pwrite+fsync",
                   {.ours = [&] { accelerator_.save_model(module_, scratch_ / "ours", options_); },
                    .reference = [&] { write_raw(comm_, scratch_ / "raw", tensors_); },
                    .line_up = [&] { scratch_.make_empty(); }});
  }

  /// Loads with a cold page cache.
  Result load() {
    accelerator_.save_model(module_, scratch_ / "ours", options_);
    write_raw(comm_, scratch_ / "raw", tensors_);
    return compare("load_model", "cold read",
                   {.ours = [&] { accelerator_.load_checkpoint_in_model(module_, scratch_ / "ours"); },
                    .reference = [&] { read_raw(scratch_ / "raw", tensors_); },
                    .line_up =
                        [&] {
                          forget_cached(comm_, {scratch_ / "raw", scratch_ / "ours"});
                        }});
  }

 private:
  Result compare(const std::string& name, const std::string& reference, const Sides& sides) {
    const auto timing = time_disk(comm_, sides, blocks_);
    const auto bytes = bytes_of(tensors_);
    return {.name = name,
            .params = {{"bytes", bytes}, {"ranks", comm_.size()}, {"files", shards}},
            .reference = reference,
            .timing = timing,
            .algorithm_bytes_per_s = static_cast<double>(bytes) / timing.ours.median_s,
            .bus_bytes_per_s = static_cast<double>(bytes) / timing.reference.median_s};
  }

  Accelerator& accelerator_;
  const mpi::Communicator& comm_;
  int blocks_;
  Layers module_;
  std::vector<at::Tensor> tensors_;
  SaveModelOptions options_;
  Scratch scratch_;
};

}  // namespace

std::vector<Result> weights(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_known("--case", selection.cases, {"from_pretrained", "load_model", "save_model"});
  std::vector<Result> results;
  for (const auto bytes : selection.sizes.empty() ? std::vector{default_model_bytes} : selection.sizes) {
    if (selection.wants("save_model") || selection.wants("load_model")) {
      WeightsComparison comparison(accelerator, bytes, plan);
      if (selection.wants("save_model")) results.push_back(comparison.save());
      if (selection.wants("load_model")) results.push_back(comparison.load());
    }
    if (selection.wants("from_pretrained")) results.push_back(load_pretrained(accelerator.world().comm(), bytes, plan));
  }
  return results;
}

}  // namespace hortator::bench
