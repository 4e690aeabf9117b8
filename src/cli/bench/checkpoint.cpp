#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "checkpoint/background_save.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/save.hpp"
#include "cli/bench/measurements.hpp"
#include "io/raw_file.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::cli::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t default_bytes = std::int64_t{1} << 30;
constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;  // of raw reading and writing

const std::vector<std::string>& known_cases() {
  static const std::vector<std::string> names = {"save", "stall", "load", "many"};
  return names;
}

/// A model of `layers` parameters with the two moments of Adam, of so many bytes together.
checkpoint::Snapshot state_of(std::int64_t bytes, std::int64_t layers) {
  checkpoint::Snapshot snapshot;
  const auto elements = std::max<std::int64_t>(bytes / (3 * layers * 4), 1);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto tensor = [&](double kind) { return at::full({elements}, static_cast<double>(i) + kind); };
    snapshot.common.put(text::concat("models/0/layer", i), tensor(0));
    snapshot.common.put(text::concat("optimizers/0/state/layer", i, "/exp_avg"), tensor(0.25));
    snapshot.common.put(text::concat("optimizers/0/state/layer", i, "/exp_avg_sq"), tensor(0.5));
  }
  return snapshot;
}

/// Parameters alone, each small.
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

std::int64_t bytes_of(const StateDict& state) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors_of(state)) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// A folder of the measurement's own, that all ranks see and that goes at its end.
class Scratch {
 public:
  explicit Scratch(const mpi::Communicator& comm) : comm_(comm), path_(fs::absolute("hortator-bench-checkpoint")) {
    clear();
    if (comm.rank() == 0) fs::create_directories(path_);
    mpi::barrier(comm);
  }
  ~Scratch() {
    try {
      clear();
    } catch (const std::exception&) {  // whoever looks sees what is left
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  void clear() const {
    mpi::barrier(comm_);
    if (comm_.rank() == 0) fs::remove_all(path_);
  }

  const mpi::Communicator& comm_;
  fs::path path_;
};

class Comparison {
 public:
  Comparison(const mpi::Communicator& comm, int blocks) : comm_(comm), blocks_(blocks), scratch_(comm) {}

  void save(const std::string& name, const checkpoint::Snapshot& snapshot) {
    add(name, "pwrite+fsync", snapshot.common,
        {.ours = [&] { checkpoint::save(comm_, scratch_ / "ours", snapshot); },
         .reference = [&] { write_raw(snapshot.common); },
         .line_up = [] {}});
  }

  void stall(const checkpoint::Snapshot& snapshot) {
    checkpoint::BackgroundSave background;
    const auto bytes = static_cast<std::size_t>(bytes_of(snapshot.common) / comm_.size());
    const auto from = at::full({static_cast<std::int64_t>(bytes)}, 1, at::kByte);
    const auto to = at::full({static_cast<std::int64_t>(bytes)}, 2, at::kByte);
    add("stall", "memcpy of the shard", snapshot.common,
        {.ours = [&] { background.start(comm_, scratch_ / "ours", snapshot, {}); },
         .reference = [&] { std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), bytes); },
         .line_up = [&] { background.wait(comm_); }});
    background.wait(comm_);
  }

  void load(const checkpoint::Snapshot& snapshot) {
    checkpoint::save(comm_, scratch_ / "ours", snapshot);
    write_raw(snapshot.common);
    add("load", "cold read", snapshot.common,
        {.ours = [&] { load_ours(snapshot.common); },
         .reference = [&] { read_raw(snapshot.common); },
         .line_up = [&] { forget(); }});
  }

  std::vector<Result> results() && { return std::move(results_); }

 private:
  // The same bytes by the same ranks into one file that replaces the one before.
  void write_raw(const StateDict& state) const {
    const auto path = scratch_ / "raw.new";
    if (comm_.rank() == 0) io::RawFile::create(path).close();
    mpi::barrier(comm_);
    auto file = io::RawFile::open_for_writing(path);
    const auto share = shard::aligned(bytes_of(state), comm_.size(), comm_.rank(), 4096);
    std::int64_t begin = 0;
    for (const auto& tensor : tensors_of(state)) {
      const auto end = begin + static_cast<std::int64_t>(tensor.nbytes());
      const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
      for (auto next = std::max(begin, share.begin); next < std::min(end, share.end); next += piece_bytes) {
        const auto bytes = std::min(piece_bytes, std::min(end, share.end) - next);
        file.write_at(next, data + (next - begin), static_cast<std::size_t>(bytes));
      }
      begin = end;
    }
    file.sync();
    file.close();
    mpi::barrier(comm_);
    if (comm_.rank() == 0) io::rename(path, scratch_ / "raw");
    mpi::barrier(comm_);
  }

  void read_raw(const StateDict& state) const {
    const auto file = io::RawFile::open_for_reading(scratch_ / "raw");
    std::int64_t offset = 0;
    for (const auto& tensor : tensors_of(state)) {
      auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
      const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
      for (std::int64_t done = 0; done < bytes; done += piece_bytes)
        file.read_at(offset + done, data + done, static_cast<std::size_t>(std::min(piece_bytes, bytes - done)));
      offset += bytes;
    }
  }

  void load_ours(const StateDict& state) const {
    const checkpoint::Reader reader(comm_, scratch_ / "ours");
    for (const auto& [name, value] : state.values()) reader.read_into(name, std::get<at::Tensor>(value));
  }

  void forget() const {
    if (comm_.rank() != 0) return;
    io::RawFile::open_for_reading(scratch_ / "raw").forget_cached();
    for (const auto& entry : fs::directory_iterator(scratch_ / "ours"))
      io::RawFile::open_for_reading(entry.path()).forget_cached();
  }

  // As time_in_pairs, but what lines the ranks up is no part of the time: it waits for the disk.
  PairedTiming time(const Sides& sides) const {
    const auto block = [&](const std::function<void()>& step) {
      sides.line_up();
      mpi::barrier(comm_);
      const double begin = seconds_now();
      step();
      mpi::barrier(comm_);
      return seconds_now() - begin;
    };
    block(sides.reference);
    block(sides.ours);
    std::vector<double> ours;
    std::vector<double> reference;
    for (int pair = 0; pair < blocks_; ++pair) {
      if (pair % 2 == 0) ours.push_back(block(sides.ours));
      reference.push_back(block(sides.reference));
      if (pair % 2 == 1) ours.push_back(block(sides.ours));
    }
    return summarize(ours, reference);
  }

  void add(const std::string& name, const std::string& reference, const StateDict& state, const Sides& sides) {
    const auto timing = time(sides);
    const auto bytes = bytes_of(state);
    const auto datasets = static_cast<double>(state.values().size());
    const auto extra_us = 1e6 * (timing.ours.median_s - timing.reference.median_s) / datasets;
    results_.push_back({.name = name,
                        .params = {{"bytes", bytes},
                                   {"ranks", comm_.size()},
                                   {"datasets", state.values().size()},
                                   {"extra_us_per_dataset", std::round(10 * extra_us) / 10}},
                        .reference = reference,
                        .timing = timing,
                        .algorithm_bytes_per_s = static_cast<double>(bytes) / timing.ours.median_s,
                        .bus_bytes_per_s = static_cast<double>(bytes) / timing.reference.median_s});
  }

  const mpi::Communicator& comm_;
  int blocks_;
  Scratch scratch_;
  std::vector<Result> results_;
};

}  // namespace

std::vector<Result> checkpoint(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  constexpr std::int64_t layers = 64;
  constexpr std::int64_t many = 10'000;
  for (const auto& name : selection.cases) {
    if (std::find(known_cases().begin(), known_cases().end(), name) != known_cases().end()) continue;
    throw UsageError({.what = text::concat("--case ", name, " is nothing that a checkpoint does"),
                      .hint = text::suggestion(name, known_cases())});
  }
  const auto wanted = [&](const char* name) {
    return selection.cases.empty() ||
           std::find(selection.cases.begin(), selection.cases.end(), name) != selection.cases.end();
  };
  Comparison comparison(accelerator.world().comm(), plan.blocks);
  for (const auto bytes : selection.sizes.empty() ? std::vector{default_bytes} : selection.sizes) {
    const auto state = state_of(bytes, layers);
    if (wanted("save")) comparison.save("save", state);
    if (wanted("stall")) comparison.stall(state);
    if (wanted("load")) comparison.load(state);
  }
  if (wanted("many")) comparison.save("many", many_parameters(many, 4096));
  return std::move(comparison).results();
}

}  // namespace hortator::cli::bench
