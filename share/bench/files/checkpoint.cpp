#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/files/disk.hpp"
#include "bench/measurements.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/background_save.hpp"
#include "checkpoint/write/save.hpp"
#include "core/text/text.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t default_checkpoint_bytes = std::int64_t{1} << 30;

/// A model with `layers` parameters and the two moments of Adam, of the given total size.
checkpoint::Snapshot state_of(std::int64_t bytes, std::int64_t layers, c10::Device device) {
  checkpoint::Snapshot snapshot;
  const auto elements = std::max<std::int64_t>(bytes / (3 * layers * 4), 1);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto tensor = [&](double kind) { return at::full({elements}, static_cast<double>(i) + kind, device); };
    snapshot.common.put(text::concat("models/0/layer", i), tensor(0));
    snapshot.common.put(text::concat("optimizers/0/state/layer", i, "/exp_avg"), tensor(0.25));
    snapshot.common.put(text::concat("optimizers/0/state/layer", i, "/exp_avg_sq"), tensor(0.5));
  }
  return snapshot;
}

/// Many small parameters.
checkpoint::Snapshot many_parameters(std::int64_t count, std::int64_t bytes) {
  checkpoint::Snapshot snapshot;
  for (std::int64_t i = 0; i < count; ++i)
    snapshot.common.put(text::concat("models/0/layer", i), at::full({bytes / 4}, static_cast<double>(i)));
  return snapshot;
}

std::vector<at::Tensor> tensors_of(const StateDict& state) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, value] : state.values()) tensors.push_back(std::get<at::Tensor>(value));
  return tensors;
}

/// Host memory for raw files.
std::vector<at::Tensor> on_host(std::vector<at::Tensor> tensors) {
  for (auto& tensor : tensors) tensor = tensor.to(at::kCPU);
  return tensors;
}

class CheckpointComparison {
 public:
  CheckpointComparison(const mpi::Communicator& comm, c10::Device device, const Plan& plan)
      : comm_(comm), device_(device), blocks_(plan.blocks), scratch_(comm, plan.folder) {}

  void save(const std::string& name, const checkpoint::Snapshot& snapshot) {
    const auto raw = on_host(tensors_of(snapshot.common));
    add(name, "pwrite+fsync", snapshot.common,
        {.ours = [&] { checkpoint::save(comm_, scratch_ / "ours", snapshot); },
         .reference = [&] { write_raw(comm_, scratch_ / "raw", raw); },
         .line_up = [&] { scratch_.make_empty(); }});
  }

  void stall(const checkpoint::Snapshot& snapshot) {
    checkpoint::BackgroundSave background;
    const auto bytes = static_cast<std::size_t>(bytes_of(tensors_of(snapshot.common)) / comm_.size());
    const auto elements = static_cast<std::int64_t>(bytes);
    const auto from = at::full({elements}, 1, at::TensorOptions(device_).dtype(at::kByte));
    const auto to = at::empty({elements}, at::TensorOptions(at::kByte).pinned_memory(!device_.is_cpu())).fill_(2);
    const auto copy = [&] {
      if (device_.is_cpu()) {
        std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), bytes);
      } else {
        to.copy_(from);
      }
    };
    add("stall", device_.is_cpu() ? "memcpy of the shard" : "copy of the shard into page-locked memory",
        snapshot.common,
        {.ours = [&] { background.start(comm_, scratch_ / "ours", snapshot, {}); },
         .reference = copy,
         .line_up = [&] { background.wait(comm_); }});
    background.wait(comm_);
  }

  void load(const checkpoint::Snapshot& snapshot) {
    checkpoint::save(comm_, scratch_ / "ours", snapshot);
    const auto raw = on_host(tensors_of(snapshot.common));
    write_raw(comm_, scratch_ / "raw", raw);
    add("load", "cold read", snapshot.common,
        {.ours = [&] { load_ours(snapshot.common); },
         .reference = [&] { read_raw(scratch_ / "raw", raw); },
         .line_up =
             [&] {
               forget_cached(comm_, {scratch_ / "raw", scratch_ / "ours"});
             }});
  }

  std::vector<Result> results() && { return std::move(results_); }

 private:
  void load_ours(const StateDict& state) const {
    const checkpoint::Reader reader(comm_, scratch_ / "ours");
    for (const auto& [name, value] : state.values()) reader.read_into(name, std::get<at::Tensor>(value));
  }

  void add(const std::string& name, const std::string& reference, const StateDict& state, const Sides& sides) {
    const auto timing = time_disk(comm_, sides, blocks_);
    const auto bytes = bytes_of(tensors_of(state));
    const auto datasets = static_cast<double>(state.values().size());
    const auto extra_us = 1e6 * (timing.ours.median_s - timing.reference.median_s) / datasets;
    results_.push_back({.name = name,
                        .params = {{"bytes", bytes},
                                   {"device", device_.str()},
                                   {"ranks", comm_.size()},
                                   {"datasets", state.values().size()},
                                   {"extra_us_per_dataset", std::round(10 * extra_us) / 10}},
                        .reference = reference,
                        .timing = timing,
                        .algorithm_bytes_per_s = static_cast<double>(bytes) / timing.ours.median_s,
                        .bus_bytes_per_s = static_cast<double>(bytes) / timing.reference.median_s});
  }

  const mpi::Communicator& comm_;
  c10::Device device_;
  int blocks_;
  Scratch scratch_;
  std::vector<Result> results_;
};

}  // namespace

std::vector<Result> checkpoint(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  constexpr std::int64_t layers = 64;
  constexpr std::int64_t many = 10'000;
  check_known("--case", selection.cases, {"save", "stall", "load", "many"});
  CheckpointComparison comparison(accelerator.world().comm(), accelerator.device(), plan);
  for (const auto bytes : selection.sizes.empty() ? std::vector{default_checkpoint_bytes} : selection.sizes) {
    const auto state = state_of(bytes, layers, accelerator.device());
    if (selection.wants("save")) comparison.save("save", state);
    if (selection.wants("stall")) comparison.stall(state);
    if (selection.wants("load")) comparison.load(state);
  }
  if (selection.wants("many")) comparison.save("many", many_parameters(many, 4096));
  return std::move(comparison).results();
}

}  // namespace hortator::bench
