// LocalSGD of groups of ranks that share ZeRO's shards, compared with the same training by hand.
#include <ATen/ops/stack.h>
#include <torch/nn/utils/clip_grad.h>

#include <hortator/error.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <numeric>

#include "unit/accelerator/zero/two_nodes.hpp"

using namespace hortator;
using namespace hortator::test;

namespace {

constexpr double outer_rate = 0.6, outer_momentum = 0.8;

struct Course {
  int stage = 1;
  double max_norm = 0;
  int accumulation = 1;
  bool outer = false;
  bool ignores = false;    ///< some parameters are not sharded, and others may be unused
  bool in_folder = false;  ///< parameters (at stage 3) and moments are offloaded
  int every = 2;
  std::vector<int> steps = {};  ///< of each group; of all others the last
  int steps_of(int group) const {
    return steps[std::min<std::size_t>(static_cast<std::size_t>(group), steps.size() - 1)];
  }
};

int ranks_of_mpi() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

struct Mesh {
  int world = ranks_of_mpi();
  int shard = world == 4 ? 2 : 1;
  int groups = world / shard;
};

AcceleratorOptions options_of(const Course& course) {
  const Mesh mesh;
  AcceleratorOptions options{.gradient_accumulation_steps = course.accumulation, .ddp = {.bucket_cap_mb = 3e-3}};
  options.zero.stage = course.stage;
  if (course.stage > 0) options.parallel.replicate = mesh.groups;
  if (course.ignores) options.zero.ignore = {"norm", "scale"};
  options.ddp.find_unused_parameters = course.ignores;
  if (course.in_folder) options.zero.offload_optimizer = std::filesystem::absolute("folder_group_moments").string();
  if (course.in_folder && course.stage == 3)
    options.zero.offload_parameters = std::filesystem::absolute("folder_group_weights").string();
  return options;
}

at::Tensor batch_of(int rank, int micro_step) {
  const Mesh mesh;
  return at::sin(at::arange(6 * 7, at::kFloat).view({6, 7}) * 0.37 +
                 static_cast<double>(micro_step * mesh.world + rank));
}

/// A replica that one rank trains by hand, with the batches of several ranks.
struct Replica {
  Shardable net;
  std::unique_ptr<torch::optim::Optimizer> adamw = make_adamw(net);
  int taken = 0;

  void step(const Course& course, int first, int ranks, int step) {
    for (int micro = 0; micro < course.accumulation; ++micro) {
      for (int rank = first; rank < first + ranks; ++rank) {
        const auto loss = net->forward(batch_of(rank, step * course.accumulation + micro)).square().mean();
        (loss / (ranks * course.accumulation)).backward();
      }
    }
    if (course.max_norm > 0) torch::nn::utils::clip_grad_norm_(distinct(*net), course.max_norm);
    adamw->step();
    adamw->zero_grad();
    ++taken;
  }
};

/// Each replica gets the mean of all, or the outer step from it.
void average(std::vector<Replica>& replicas, std::vector<at::Tensor>& begun, torch::optim::Optimizer* outer) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    std::vector<at::Tensor> all;
    for (const auto& replica : replicas) all.push_back(replica.net->parameters()[i].detach());
    const auto mean = at::stack(all).mean(0);
    begun[i].mutable_grad() = begun[i] - mean;
    if (outer == nullptr) begun[i].copy_(mean);
  }
  if (outer != nullptr) outer->step();
  for (auto& replica : replicas) {
    for (std::size_t i = 0; i < begun.size(); ++i) replica.net->parameters()[i].copy_(begun[i]);
  }
}

constexpr int steps_of_all = 2;  ///< after the scope

std::vector<at::Tensor> by_hand(const Course& course) {
  const Mesh mesh;
  const int groups = course.stage > 0 ? mesh.groups : mesh.world, shard = mesh.world / groups;
  std::vector<Replica> replicas(static_cast<std::size_t>(groups));
  auto begun = copies_of(*replicas.front().net);
  const auto rates = torch::optim::SGDOptions(outer_rate).momentum(outer_momentum).nesterov(true);
  torch::optim::SGD outer(begun, rates);
  for (bool is_any_left = true; is_any_left;) {
    is_any_left = false;
    for (int group = 0; group < groups; ++group) {
      auto& replica = replicas[static_cast<std::size_t>(group)];
      const int count = std::min(course.every, course.steps_of(group) - replica.taken);
      for (int i = 0; i < count; ++i) replica.step(course, group * shard, shard, replica.taken);
      is_any_left |= count == course.every;
    }
    average(replicas, begun, course.outer ? &outer : nullptr);
  }
  auto& most = *std::max_element(replicas.begin(), replicas.end(),
                                 [](const auto& a, const auto& b) { return a.taken < b.taken; });
  for (int i = 0; i < steps_of_all; ++i) most.step(course, 0, mesh.world, 100 + i);
  return copies_of(*most.net);
}

/// A training of groups, with the calls and bytes of MPI between two averages, and of the last average within the
/// scope.
struct Groups {
  explicit Groups(const Course& course) : course(course), accelerator(options_of(course)) {}

  void step(int number) {
    for (int micro = 0; micro < course.accumulation; ++micro) {
      const auto scope = accelerator.accumulate(model);
      const auto x = batch_of(static_cast<int>(accelerator.process_index()), number * course.accumulation + micro);
      accelerator.backward(model(x).square().mean());
      if (course.max_norm > 0 && accelerator.sync_gradients())
        accelerator.clip_grad_norm_(distinct(*net), course.max_norm);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  std::vector<at::Tensor> train() {
    const Mesh mesh;
    const int shard = course.stage > 0 ? mesh.shard : 1;
    std::optional<OuterOptimizer> outer;
    if (course.outer)
      outer.emplace(accelerator, model, OuterOptimizerOptions{.learning_rate = outer_rate, .momentum = outer_momentum});
    {
      LocalSGD local_sgd(accelerator, model, {.steps = course.every, .outer = outer ? &*outer : nullptr});
      const int mine = course.steps_of(static_cast<int>(accelerator.process_index()) / shard);
      for (int number = 0; number < mine; ++number) {
        const auto before = scale::traffic();
        step(number);
        if (number > 0) calls_of_steps += scale::traffic().calls - before.calls;  // in the first, ranks agree on orders
        const auto between = scale::traffic();
        local_sgd.step();
        bytes_of_average = scale::traffic().bytes - between.bytes;
      }
    }
    for (int i = 0; i < steps_of_all; ++i) step(100 + i);
    return copies_of(*net);
  }

  Course course;
  std::int64_t calls_of_steps = 0, bytes_of_average = 0;
  Accelerator accelerator;
  Shardable net;
  std::unique_ptr<torch::optim::Optimizer> adamw = make_adamw(net);
  Model<Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*adamw);
};

std::vector<at::Tensor> by_groups(const Course& course) {
  Groups groups(course);
  auto weights = groups.train();
  for (const auto& weight : weights) CHECK(same_on_all_ranks(groups.accelerator, weight));
  groups.accelerator.wait_for_everyone();
  return weights;
}

void check_course(const Course& course) {
  INFO("stage " << course.stage << ", clipped " << course.max_norm << ", micro-steps " << course.accumulation
                << ", outer " << course.outer << ", in a folder " << course.in_folder);
  CHECK(are_close(by_groups(course), by_hand(course), 1e-6));
}

}  // namespace

TEST_CASE("groups of ranks that share shards train as runs of their own that are averaged") {
  for (const auto* back_end : back_ends) {
    use_communicator(back_end);
    INFO(back_end);
    for (const int stage : {0, 1, 2, 3}) {
      check_course({.stage = stage, .steps = {6}});
      check_course({.stage = stage, .max_norm = 0.05, .accumulation = 2, .steps = {4}});
    }
  }
}

TEST_CASE("the outer step of groups is one of SGD with Nesterov's momentum on the slices of each rank") {
  use_communicator("node");
  for (const int stage : {0, 1, 2, 3}) check_course({.stage = stage, .outer = true, .steps = {6}});
}

TEST_CASE("groups may take different numbers of steps") {
  use_communicator("node");
  for (const int stage : {1, 2, 3}) {
    check_course({.stage = stage, .steps = {3, 7, 5}});
    check_course({.stage = stage, .outer = true, .steps = {5, 2}});
  }
}

TEST_CASE("groups average parameters in zero.ignore as a whole") {
  use_communicator("node");
  for (const int stage : {1, 2, 3}) {
    check_course({.stage = stage, .ignores = true, .steps = {4, 3}});
    check_course({.stage = stage, .outer = true, .ignores = true, .steps = {4}});
  }
}

TEST_CASE("groups whose moments and parameters are in files are averaged as those in memory") {
  const State state;
  use_communicator("node");
  const Folder moments(state, "group_moments"), weights(state, "group_weights");
  for (const int stage : {1, 3}) {
    check_course({.stage = stage, .in_folder = true, .steps = {4, 6}});
    check_course({.stage = stage, .outer = true, .in_folder = true, .steps = {4}});
  }
}

TEST_CASE("groups average the copies in fp32 of parameters in bf16") {
  use_communicator("node");
  std::vector<at::Tensor> first;
  for (const int stage : {1, 2, 3}) {
    Accelerator accelerator(options_of({.stage = stage}));
    Shardable net(at::kBFloat16);
    auto adamw = make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    {
      LocalSGD local_sgd(accelerator, model, {.steps = 2});
      for (int step = 0; step < 4; ++step) {
        accelerator.backward(model(batch(accelerator, step, at::kBFloat16)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
        local_sgd.step();
      }
    }
    CHECK(adamw->param_groups().front().params().front().scalar_type() == at::kFloat);
    auto weights = copies_of(*net);
    for (const auto& weight : weights) CHECK(same_on_all_ranks(accelerator, weight));
    if (first.empty()) first = weights;
    CHECK(are_close(weights, first, 1e-2));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("between averages nothing travels between groups, and an average is of a rank's slices only") {
  use_communicator("node");  // groups lie within nodes, where ranks use shared memory, and MPI only between them
  const Mesh mesh;
  if (mesh.world != 4) return;
  for (const int stage : {1, 2, 3}) {
    for (const bool outer : {false, true}) {
      INFO("stage " << stage << ", outer " << outer);
      Groups groups({.stage = stage, .outer = outer, .steps = {4}});
      groups.train();
      CHECK(groups.calls_of_steps == 0);
      if (outer) continue;  // its rows are padded to whole chunks
      std::int64_t bytes = 0;
      for (const auto& parameter : distinct(*groups.net)) bytes += static_cast<std::int64_t>(parameter.nbytes());
      // Half of them, which count as sent and as received.
      CHECK(static_cast<double>(groups.bytes_of_average) < 1.2 * static_cast<double>(bytes));
      CHECK(static_cast<double>(groups.bytes_of_average) > 0.8 * static_cast<double>(bytes));
    }
  }
}
