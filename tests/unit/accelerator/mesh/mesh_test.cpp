// Which ranks do what together: all of them, or those of a group of the mesh.
#include <torch/nn/modules/linear.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/structures/gathering.hpp"
#include "accelerator/training/bindings.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/manifest.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/counting_data.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using accelerator::Training;
using parallel::Axis;

namespace {

using Batch = std::vector<std::int64_t>;

using test::Numbers;
using test::Stream;

/// A stream whose ranks each read a part: every ranks-th number.
struct Parts {
  std::int64_t count = 0;
  int ranks = 1;
  int rank = 0;
  std::int64_t at = 0;
  void shard(int all, int me) {
    ranks = all;
    rank = me;
  }
  void reset() { at = rank; }
  std::optional<std::int64_t> next() {
    const auto number = std::exchange(at, at + ranks);
    return number < count ? std::optional(number) : std::nullopt;
  }
};

/// All samples that this rank gets in an epoch of `loader`, without those that fill up a batch.
Batch samples_of_epoch(Training& training, DataLoader<at::Tensor> loader) {
  static_cast<LoaderBase&>(loader).bind(accelerator::loader_binding(training, loader, true));
  Batch samples;
  for (const auto& batch : loader) {
    const auto* first = batch.const_data_ptr<std::int64_t>();
    samples.insert(samples.end(), first, first + loader.new_samples(training.data().index()));
  }
  return samples;
}

/// Whether ranks 2 i and 2 i + 1 got the same samples, and all pairs together each sample once.
void check_pairs_share(const Training& training, const Batch& mine, std::int64_t count) {
  const auto* bytes = reinterpret_cast<const char*>(mine.data());
  const auto all = mpi::all_gather(training.host(), std::string_view(bytes, mine.size() * sizeof mine[0]));
  std::set<std::int64_t> seen;
  std::size_t total = 0;
  for (std::size_t rank = 0; rank < all.size(); rank += 2) {
    CHECK(all[rank] == all[rank + 1]);
    Batch samples(all[rank].size() / sizeof mine[0]);
    std::memcpy(samples.data(), all[rank].data(), all[rank].size());
    seen.insert(samples.begin(), samples.end());
    total += samples.size();
  }
  CHECK(static_cast<std::int64_t>(seen.size()) == count);
  CHECK(static_cast<std::int64_t>(total) == count);
}

}  // namespace

TEST_CASE("a data-parallel run works over the communicators of all ranks and makes none of its own") {
  const Accelerator accelerator;
  auto& channels = Training::of(accelerator).channels;
  const auto& data = channels.mesh().data();
  CHECK(&data.on_device == &channels.device_communicator());
  CHECK(&data.on_cpu == &channels.communicator_of({}));
  CHECK(&data.host == &channels.host());
  CHECK(channels.mesh().shape().size(Axis::replicate) == accelerator.num_processes());
}

TEST_CASE("ZeRO's groups are the axis shard, its replicas the axis replicate, and checkpoints record both") {
  const int ranks = State().num_processes();
  for (int group = 1; group <= ranks; ++group) {
    if (ranks % group != 0) continue;
    INFO("groups of " << group);
    const test::Folder folder(State(), "mesh");
    Accelerator accelerator({.zero = {.stage = 2, .shard_group = group}, .project = {.dir = folder.path()}});
    auto& channels = Training::of(accelerator).channels;
    const auto& sharding = channels.zero()->sharding();
    CHECK(channels.mesh().shape().size(Axis::shard) == group);
    CHECK(channels.mesh().data().size() == ranks);
    CHECK(sharding.ranks.group.size() == group);
    CHECK(sharding.ranks.group.rank() == accelerator.process_index() % group);
    CHECK((sharding.ranks.replicas == nullptr ? 1 : sharding.ranks.replicas->size()) == ranks / group);
    CHECK(sharding.ranks.first_rank == accelerator.process_index() / group * group);
    test::Net net;
    auto model = accelerator.prepare(net);
    using Mesh = std::map<std::string, std::int64_t>;
    const bool has_groups = group > 1 && group < ranks;
    CHECK(checkpoint::read_manifest(accelerator.save_state()).mesh ==
          (has_groups ? Mesh{{"replicate", ranks / group}, {"shard", group}} : Mesh{{"data", ranks}}));
  }
}

TEST_CASE("both ranks of a tensor group get the same batches, from loaders of every kind") {
  const State state;
  if (state.num_processes() % 2 != 0) return;
  constexpr std::int64_t count = 15;  // the last batch is short or filled up
  for (const auto dispatches : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    INFO("dispatch_batches " << dispatches.value_or(false) << (dispatches ? "" : ", by default"));
    Training training(AcceleratorOptions{.data = {.dispatch_batches = dispatches}, .parallel = {.tensor = 2}},
                      state.world());
    const auto check = [&](DataLoader<at::Tensor> loader) {
      check_pairs_share(training, samples_of_epoch(training, std::move(loader)), count);
    };
    check(data_loader(Numbers{count}, {.batch_size = 2, .shuffle = true}));
    check(data_loader(Stream{count}, {.batch_size = 2}));
    check(data_loader(Parts{count}, {.batch_size = 2}));
  }
}

TEST_CASE("weights, gradients, losses and metrics are those of the ranks that have the same part of the model") {
  const State state;
  const int ranks = state.num_processes();
  if (ranks % 2 != 0) return;
  Training training(AcceleratorOptions{.parallel = {.tensor = 2, .plan = {{.pattern = "*"}}}}, state.world());
  const int first = state.process_index() % 2;  // of this rank's data group
  std::vector<double> group;
  for (int rank = first; rank < ranks; rank += 2) group.push_back(rank + 1);
  const double mean = first + 1 + (static_cast<double>(group.size()) - 1);

  torch::nn::Linear net(1, 1);
  {
    const at::NoGradGuard no_grad;
    net->weight.fill_(state.process_index());
  }
  training.prepared.add_model(step::ModelCore::prepare(*net, "model 0", training.control.session(),
                                                       accelerator::model_binding(training, "model 0")));
  CHECK(net->weight.item<double>() == 0);  // all ranks begin with one model

  training.backward(net(at::full({1, 1}, state.process_index() + 1.0)).sum(), {}, /*retain_graph=*/false);
  CHECK(net->weight.grad().item<double>() == mean);
  const auto loss = at::full({}, state.process_index() + 1.0);
  CHECK(training.mean_loss(loss).item<double>() == mean);
  const auto gathered = accelerator::gather(training.data(), loss);
  CHECK(at::equal(gathered.reshape({-1}), at::tensor(group, at::kFloat)));
}

TEST_CASE("votes travel with gradients only where all ranks average them") {
  const State state;
  Training all(AcceleratorOptions{}, state.world());
  CHECK(accelerator::model_binding(all, "model").votes != nullptr);
  if (state.num_processes() % 2 != 0) return;
  Training pairs(AcceleratorOptions{.parallel = {.tensor = 2}}, state.world());
  CHECK(accelerator::model_binding(pairs, "model").votes == nullptr);
}
