// A checkpoint of any number of ranks and ZeRO stage resumes at any other, bit for bit: parameters,
// their fp32 copies, moments, buffers and the next batches. Several nodes write several files.
#include <mpi.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>

#include "accelerator/training/training.hpp"
#include "checkpoint/manifest.hpp"
#include "step/optimizer/optimizer_core.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::FirstRanks;
using test::Rows;
using test::Shardable;
namespace fs = std::filesystem;

namespace {

constexpr std::array sizes = {1, 2, 3, 4, 7};
constexpr std::int64_t rows_per_step = 84;  // divisible by each of the sizes
constexpr std::size_t batches_compared = 2;

/// The stages and their variants: moments in a folder, everything in a folder, replicas of shards.
constexpr int variant_count = 7;
ZeroConfig config_of(int number, int ranks, const fs::path& pages) {
  if (number == 4) return {.stage = 2, .offload_optimizer = pages};
  if (number == 5) return {.stage = 3, .offload_optimizer = pages, .offload_parameters = pages};
  if (number == 6) return {.stage = 3, .shard_group = ranks % 2 == 0 ? ranks / 2 : 1};
  return {.stage = number};
}

struct Setup {
  std::size_t size = 0;  ///< in `sizes`
  int variant = 0;

  int ranks() const { return sizes[size]; }
  std::string text() const { return std::to_string(ranks()) + " ranks, variant " + std::to_string(variant); }
};

std::vector<Setup> all_setups() {
  std::vector<Setup> setups;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    for (int variant = 0; variant < variant_count; ++variant) setups.push_back({size, variant});
  }
  return setups;
}

/// A range of a tensor's elements, in one dimension.
struct Held {
  std::string name;
  core::Range elements;
  at::Tensor values;
};

/// All tensors of a state, whole and in one dimension, and the next batches.
struct Truth {
  std::map<std::string, at::Tensor> tensors;
  std::vector<at::Tensor> batches;
};

auto prepare(Accelerator& accelerator, Shardable& net, torch::optim::Optimizer& adamw) {
  return accelerator.prepare(net, adamw,
                             data_loader(Rows{6 * rows_per_step, 7}, {.batch_size = rows_per_step, .shuffle = true}));
}
using Prepared = decltype(prepare(std::declval<Accelerator&>(), std::declval<Shardable&>(),
                                  std::declval<torch::optim::Optimizer&>()));

/// A model in training, with its state for comparison.
class Training {
 public:
  Training(const AcceleratorOptions& options, at::ScalarType type)
      : accelerator_(options),
        type_(type),
        net_(type),
        adamw_(test::make_adamw(net_)),
        prepared_(prepare(accelerator_, net_, *adamw_)) {}

  Accelerator& accelerator() { return accelerator_; }

  /// Trains `steps` steps and calls `then` within the loop; returns the following batches.
  std::vector<at::Tensor> train(int steps, const std::function<void()>& then = {}) {
    auto& [model, optimizer, loader] = prepared_;
    std::vector<at::Tensor> next;
    for (auto& batch : loader) {
      if (--steps < 0) next.push_back(batch.data.clone());
      if (next.size() == batches_compared) break;
      if (steps < 0) continue;
      accelerator_.backward(model(batch.data.to(type_)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      if (steps == 0 && then) then();
    }
    return next;
  }

  std::vector<at::Tensor> next_batches() {
    std::vector<at::Tensor> batches;
    for (auto& batch : std::get<2>(prepared_)) {
      batches.push_back(accelerator_.gather(batch.data));
      if (batches.size() == batches_compared) break;
    }
    return batches;
  }

  /// The elements of all tensors that this rank holds. @collective
  std::vector<Held> held() {
    std::vector<Held> all;
    step::ParameterNames names;
    for (const auto& item : net_->named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), item.key());
      add_whole(all, item.key(), item.value());
    }
    for (const auto& item : net_->named_buffers()) add_whole(all, item.key(), item.value());
    const auto* shards = std::get<1>(prepared_).core().shards();
    if (shards == nullptr) {
      for (const auto& parameter : adamw_->param_groups()[0].params())
        add_moments(all, names.at(parameter.unsafeGetTensorImpl()), parameter, {0, parameter.numel()});
      return all;
    }
    for (const auto& part : shards->groups()[0]) {
      const auto& name = names.at(part.parameter.unsafeGetTensorImpl());
      const auto elements =
          part.flat != nullptr ? part.flat->owned(part.number) : core::Range{0, part.parameter.numel()};
      add_moments(all, name, part.slice, elements);
      if (part.flat != nullptr && part.flat->has_master(part.number))
        all.push_back({name + "/master", elements, copy_of(part.slice)});
    }
    return all;
  }

 private:
  static at::Tensor copy_of(const at::Tensor& tensor) { return tensor.detach().clone().reshape({-1}); }

  static void add_whole(std::vector<Held>& all, const std::string& name, const at::Tensor& tensor) {
    all.push_back({name, {0, tensor.numel()}, copy_of(tensor)});
  }

  void add_moments(std::vector<Held>& all, const std::string& name, const at::Tensor& stepped, core::Range elements) {
    const auto found = adamw_->state().find(stepped.unsafeGetTensorImpl());
    if (found == adamw_->state().end()) return;
    const auto& state = static_cast<const torch::optim::AdamWParamState&>(*found->second);
    all.push_back({name + "/exp_avg", elements, copy_of(state.exp_avg())});
    all.push_back({name + "/exp_avg_sq", elements, copy_of(state.exp_avg_sq())});
    all.push_back({name + "/step", {0, 1}, at::full({1}, state.step(), at::kLong)});
  }

  Accelerator accelerator_;
  at::ScalarType type_;
  Shardable net_;
  std::unique_ptr<torch::optim::Optimizer> adamw_;
  Prepared prepared_;
};

AcceleratorOptions options_of(const fs::path& folder, const ZeroConfig& zero, int communicator, std::uint64_t seed) {
  return {.data = {.split_batches = true, .seed = seed},
          .ddp = {.bucket_cap_mb = 3e-3},
          .zero = zero,
          .log_with = {},
          .project = {.dir = folder},
          .checkpoint = {.nodes_per_file = 1},
          .communicator = communicator};
}

/// Trains on each rank separately, with the same result, and saves. In 16 bits at a stage that has fp32 copies.
Truth first_checkpoint(const fs::path& folder, at::ScalarType type) {
  const ZeroConfig zero = {.stage = type == at::kFloat ? 0 : 1};
  Training training(options_of(folder, zero, MPI_Comm_c2f(MPI_COMM_SELF), 5), type);
  Truth truth;
  truth.batches = training.train(3, [&] {
    training.accelerator().save_state(folder / "first");
    for (auto& held : training.held()) truth.tensors.emplace(held.name, held.values);
  });
  return truth;
}

/// The state that a checkpoint of this variant holds: at stage 0 moments have the parameters' type, and there are no
/// fp32 copies.
Truth saved_by(const Truth& truth, int variant, at::ScalarType type) {
  if (variant != 0 || type == at::kFloat) return truth;
  auto left = truth;
  for (auto& [name, tensor] : left.tensors) {
    if (name.ends_with("/master")) tensor = truth.tensors.at(name.substr(0, name.rfind('/'))).to(at::kFloat);
    if (tensor.is_floating_point() && !name.ends_with("/master")) tensor = tensor.to(type).to(tensor.scalar_type());
  }
  return left;
}

/// Checks this rank's tensors, but not the batches. @collective
void check_tensors(Training& training, const Truth& truth) {
  std::set<std::string> seen;
  for (const auto& [name, elements, values] : training.held()) {
    seen.insert(name);
    const auto expected = truth.tensors.at(name).narrow(0, elements.begin, elements.size());
    if (!at::equal(values, expected.to(values.scalar_type()))) FAIL_CHECK(name << " differs");
  }
  for (const auto& [name, tensor] : truth.tensors) {
    if (!name.ends_with("/master") && !seen.contains(name)) FAIL_CHECK(name << " is missing");
  }
}

/// @collective
void check_all(Training& training, const Truth& truth) {
  check_tensors(training, truth);
  CHECK(test::are_equal(training.next_batches(), truth.batches));
}

int nodes_of(int ranks) {
  const auto* ranks_per_node = std::getenv("HORTATOR_TEST_RANKS_A_NODE");
  const int per_node = ranks_per_node != nullptr ? std::atoi(ranks_per_node) : ranks;
  return (ranks + per_node - 1) / per_node;
}

/// Whether `to` loads the checkpoint that `from` saved.
using Choice = std::function<bool(const Setup& from, const Setup& to)>;

class Matrix {
 public:
  explicit Matrix(at::ScalarType type)
      : type_(type), folder_(world_, "elastic"), truth_(first_checkpoint(own_folder(), type)) {
    fs::create_directories(folder_.path() / "pages");
    world_.wait_for_everyone();
  }

  /// Resumes from the first checkpoint with the setup `from`, and saves. @collective
  void save(const Setup& from) {
    INFO("saved by " << from.text());
    const FirstRanks part(from.ranks());
    if (!part.is_in()) return;
    Training training(options(from, part), type_);
    training.accelerator().load_state(folder_.path() / "0" / "first");
    check_tensors(training, truth_);
    training.accelerator().save_state(path_of(from));
    check_all(training, truth_);
    CHECK(checkpoint::read_manifest(path_of(from)).files.size() == static_cast<std::size_t>(nodes_of(from.ranks())));
  }

  /// Resumes from each of the given checkpoints. @collective
  void load(const Setup& to, const std::vector<Setup>& froms) {
    const FirstRanks part(to.ranks());
    if (!part.is_in() || froms.empty()) return;
    Training training(options(to, part), type_);
    for (const auto& from : froms) {
      INFO("saved by " << from.text() << ", loaded by " << to.text());
      training.accelerator().load_state(path_of(from));
      check_all(training, saved_by(truth_, from.variant, type_));
      training.train(1);  // so that the next load starts from another state
    }
  }

 private:
  fs::path own_folder() const { return folder_.path() / std::to_string(world_.process_index()); }
  fs::path path_of(const Setup& setup) const {
    return folder_.path() / (std::to_string(setup.ranks()) + "_" + std::to_string(setup.variant));
  }
  AcceleratorOptions options(const Setup& setup, const FirstRanks& part) const {
    return options_of(folder_.path(), config_of(setup.variant, setup.ranks(), folder_.path() / "pages"), part.handle(),
                      6);
  }

  State world_;
  at::ScalarType type_;
  test::Folder folder_;
  Truth truth_;
};

void run_matrix(at::ScalarType type, const Choice& chosen) {
  Matrix matrix(type);
  const auto setups = all_setups();
  for (const auto& from : setups) matrix.save(from);
  for (const auto& to : setups) {
    std::vector<Setup> froms;
    std::copy_if(setups.begin(), setups.end(), std::back_inserter(froms),
                 [&](const Setup& from) { return chosen(from, to); });
    matrix.load(to, froms);
  }
}

/// Chooses every pair of numbers of ranks, and every pair of variants, once or twice.
bool covers_pairs(const Setup& from, const Setup& to) {
  const auto a = static_cast<std::size_t>(from.variant);
  const auto b = static_cast<std::size_t>(to.variant);
  return from.size == (a + 2 * b) % sizes.size() && to.size == (2 * a + b) % sizes.size();
}

}  // namespace

TEST_CASE("runs resume from {1,2,3,4,7} ranks on {1,2,3,4,7}, and from any ZeRO variant in any other") {
  std::set<std::pair<std::size_t, std::size_t>> ranks;
  std::set<std::pair<int, int>> stages;
  for (const auto& from : all_setups()) {
    for (const auto& to : all_setups()) {
      if (!covers_pairs(from, to)) continue;
      ranks.emplace(from.size, to.size);
      stages.emplace(from.variant, to.variant);
    }
  }
  CHECK(ranks.size() == sizes.size() * sizes.size());
  CHECK(stages.size() == std::size_t{variant_count} * variant_count);
  for (const auto type : {at::kFloat, at::kBFloat16}) run_matrix(type, covers_pairs);
}

TEST_CASE("runs resume from any number of ranks and ZeRO variant in any other combination", "[.whole]") {
  for (const auto type : {at::kFloat, at::kBFloat16})
    run_matrix(type, [](const Setup& /*from*/, const Setup& /*to*/) { return true; });
}
