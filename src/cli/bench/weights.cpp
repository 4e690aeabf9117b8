#include <ATen/ops/empty.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "cli/bench/disk.hpp"
#include "cli/bench/measurements.hpp"
#include "runtime/world.hpp"

namespace hortator::cli::bench {
namespace {

constexpr std::int64_t default_model_bytes = std::int64_t{2} << 30;
constexpr std::int64_t layers_of_model = 64;
constexpr std::int64_t shards = 8;

const std::vector<std::string>& weights_cases() {
  static const std::vector<std::string> names = {"load_model", "save_model"};
  return names;
}

/// Weights of so many bytes.
struct Layers : torch::nn::Module {
  explicit Layers(std::int64_t bytes) {
    const auto elements = std::max<std::int64_t>(bytes / (4 * layers_of_model), 1);
    for (std::int64_t i = 0; i < layers_of_model; ++i)
      register_buffer(text::concat("layer", i), at::empty({elements}).fill_(static_cast<double>(i)));
  }
};

class WeightsComparison {
 public:
  WeightsComparison(Accelerator& accelerator, std::int64_t bytes, int blocks)
      : accelerator_(accelerator),
        comm_(accelerator.world().comm()),
        blocks_(blocks),
        module_(bytes),
        tensors_(module_.buffers()),
        options_({.max_shard_size = std::to_string(bytes_of(tensors_) / shards)}),
        scratch_(comm_, "hortator-bench-weights") {}

  Result save() {
    return compare("save_model", "pwrite+fsync",
                   {.ours = [&] { accelerator_.save_model(module_, scratch_ / "ours", options_); },
                    .reference = [&] { write_raw(comm_, scratch_ / "raw", tensors_); },
                    .line_up = [&] { scratch_.make_empty(); }});
  }

  /// From a disk that has to be asked for all of it.
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
  for (const auto& name : selection.cases) {
    if (std::ranges::count(weights_cases(), name) > 0) continue;
    throw UsageError({.what = text::concat("--case ", name, " is nothing that is done with weights"),
                      .hint = text::suggestion(name, weights_cases())});
  }
  const auto wanted = [&](const char* name) {
    return selection.cases.empty() || std::ranges::count(selection.cases, name) > 0;
  };
  std::vector<Result> results;
  for (const auto bytes : selection.sizes.empty() ? std::vector{default_model_bytes} : selection.sizes) {
    WeightsComparison comparison(accelerator, bytes, plan.blocks);
    if (wanted("save_model")) results.push_back(comparison.save());
    if (wanted("load_model")) results.push_back(comparison.load());
  }
  return results;
}

}  // namespace hortator::cli::bench
