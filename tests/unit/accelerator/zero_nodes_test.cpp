// Stage 3 over two nodes, as MPI reports them: no rank has all parameters, and those that operators use are gathered
// from all ranks. With both back ends that work between nodes.
#include <mpi.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "fixtures.hpp"
#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"
#include "zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

namespace {

constexpr std::array<const char*, 2> back_ends = {"node", "mpi"};

/// Selects the communicator and makes MPI report two nodes, for the following Accelerators. Of three ranks the second
/// node has one.
void use_communicator(const char* communicator) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  scale::pretend_nodes_of((ranks + 1) / 2);
  setenv("HORTATOR_COMMUNICATOR", communicator, 1);
}

struct NodesPlan {
  int accumulation = 1;
  double max_norm = 0;
  bool detours = false;
  at::ScalarType type = at::kFloat;
  Precision precision = Precision::no;
};

struct Outcome {
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
  std::vector<double> losses = {};
  std::vector<double> norms = {};
};

Outcome train_over_nodes(const ZeroConfig& zero, const NodesPlan& plan = {}) {
  Accelerator accelerator({.mixed_precision = plan.precision,
                           .gradient_accumulation_steps = plan.accumulation,
                           .ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = plan.detours},
                           .zero = zero});
  CHECK(accelerator.num_nodes() == 2);
  Shardable net(plan.type);
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  Outcome outcome;
  for (int step = 0; step < 5 * plan.accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(batch(accelerator, step, plan.type), !plan.detours || step % 2 == 0);
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    if (plan.max_norm > 0 && accelerator.sync_gradients())
      outcome.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), plan.max_norm).item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  outcome.parameters = copies_of(*net);
  for (const auto& buffer : net->buffers()) outcome.buffers.push_back(buffer.clone());
  accelerator.wait_for_everyone();
  return outcome;
}

void check_same(const Outcome& outcome, const Outcome& expected) {
  CHECK(are_equal(outcome.parameters, expected.parameters));
  CHECK(are_equal(outcome.buffers, expected.buffers));
  CHECK(outcome.losses == expected.losses);
  CHECK(outcome.norms == expected.norms);
}

const std::map<std::string, NodesPlan> plans = {
    {"plain", {}},
    {"accumulated and clipped", {.accumulation = 3, .max_norm = 0.05}},
    {"with parameters that are not used", {.detours = true}},
    {"in bf16, with copies in fp32", {.type = at::kBFloat16}},
    {"computing in bf16", {.precision = Precision::bf16}},
};

/// The error that `act` throws; empty if it throws none.
std::string problem_in(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool has_data(const at::Tensor& tensor) {
  try {
    return tensor.const_data_ptr() != nullptr;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("over nodes stage 3 trains as stage 2, bit for bit, and close to stage 0") {
  use_communicator(back_ends[0]);  // before the nodes are first determined
  const test::Folder folder(State(), "zero_nodes_disk");
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto& [name, plan] : plans) {
      INFO(communicator << ", " << name);
      const auto second = train_over_nodes({.stage = 2}, plan);
      CHECK(!are_equal(second.parameters, copies_of(*Shardable(plan.type))));
      check_same(train_over_nodes({.stage = 3}, plan), second);
      if (name == "plain") {
        check_same(train_over_nodes({.stage = 3, .resident_bytes = 1}, plan), second);
        check_same(train_over_nodes({.stage = 3, .resident_bytes = 1 << 20}, plan), second);
      }
      const auto plain = train_over_nodes({.stage = 0}, plan);
      const bool is_rounded = plan.type != at::kFloat || plan.precision != Precision::no;
      if (!is_rounded) CHECK(are_close(second.parameters, plain.parameters, 1e-5));
    }
    INFO(communicator << ", moments and gradients in a folder");
    check_same(train_over_nodes({.stage = 3, .offload_optimizer = folder.path(), .resident_bytes = 1 << 10}),
               train_over_nodes({.stage = 2}));
    INFO("everything in a folder");
    for (const auto& name : {"plain", "accumulated and clipped", "in bf16, with copies in fp32"}) {
      INFO(name);
      const auto& plan = plans.at(name);
      check_same(train_over_nodes({.stage = 3,
                                   .offload_optimizer = folder.path(),
                                   .offload_parameters = folder.path(),
                                   .resident_bytes = 1 << 10},
                                  plan),
                 train_over_nodes({.stage = 2}, plan));
    }
    INFO("some stay in memory");  // other arrays, and norms are summed in another order
    CHECK(are_close(train_over_nodes({.stage = 3, .keep_resident = {"second", "norm.weight"}}).parameters,
                    train_over_nodes({.stage = 2}).parameters, 1e-5));
  }
}

TEST_CASE("shard groups within a node, and across nodes, train as at stage 2") {
  use_communicator(back_ends[0]);
  const int ranks = State().num_processes();
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (int group = 1; group <= ranks; ++group) {
      if (ranks % group != 0) continue;
      INFO(communicator << ", groups of " << group);
      check_same(train_over_nodes({.stage = 3, .shard_group = group}),
                 train_over_nodes({.stage = 2, .shard_group = group}));
    }
  }
  if (ranks != 4) return;
  use_communicator("node");
  check_same(train_over_nodes(zero_config("HYBRID_SHARD")), train_over_nodes({.stage = 2, .shard_group = 2}));
}

namespace {

/// A model of which operators read parameters in each way: cast by autocast, whole within it, and whole outside of it.
struct ReaderImpl : torch::nn::Module {
  ReaderImpl() {
    at::manual_seed(5);
    embedding = register_module("embedding", torch::nn::Embedding(40, 24));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({24})));
    hidden = register_module("hidden", torch::nn::Linear(24, 24));
    head = register_module("head", std::make_shared<test::Tied>(embedding->weight));
  }
  at::Tensor forward(const at::Tensor& tokens) { return head->forward(at::tanh(hidden(norm(embedding(tokens))))); }
  at::Tensor penalty() const { return hidden->weight.square().sum() * 0.01; }

  torch::nn::Embedding embedding{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear hidden{nullptr};
  std::shared_ptr<test::Tied> head;
};
TORCH_MODULE(Reader);

struct ReaderResult {
  std::vector<double> losses = {};
  std::vector<at::Tensor> parameters = {};
};

ReaderResult train_reader(int stage, Precision precision) {
  Accelerator accelerator(
      {.mixed_precision = precision, .ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = stage, .resident_bytes = 1}});
  Reader net;
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  ReaderResult result;
  for (int step = 0; step < 12; ++step) {
    const auto tokens = (at::arange(10, at::kLong) * (step + 3) + accelerator.process_index()).remainder(40);
    const auto loss = model(tokens).to(at::kFloat).square().mean() + net->penalty();
    result.losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  result.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return result;
}

struct Forward {
  std::vector<double> outputs = {};
  std::int64_t bytes = 0;  ///< in MPI's calls
};

Forward run_forward(const char* casts) {
  setenv("HORTATOR_GATHER_CAST", casts, 1);
  Accelerator accelerator({.mixed_precision = Precision::bf16, .zero = {.stage = 3, .resident_bytes = 1}});
  at::manual_seed(3);
  torch::nn::Sequential net;
  for (int i = 0; i < 4; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(256, 256).bias(false)));
  auto model = accelerator.prepare(net);
  const auto input = at::sin(at::arange(2 * 256, at::kFloat)).view({2, 256});
  Forward forward;
  for (int pass = 0; pass < 3; ++pass) {
    const auto before = scale::traffic().bytes;
    const auto output = model(input);
    forward.bytes += scale::traffic().bytes - before;
    forward.outputs.push_back(output.to(at::kDouble).sum().item<double>());
  }
  accelerator.wait_for_everyone();
  unsetenv("HORTATOR_GATHER_CAST");
  return forward;
}

}  // namespace

TEST_CASE("over nodes, parameters gathered in the type of mixed precision train as whole ones, bit for bit") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto precision : {Precision::no, Precision::bf16}) {
      INFO(communicator << ", mixed precision: " << (precision == Precision::no ? "no" : "bf16"));
      const auto second = train_reader(2, precision);
      const auto third = train_reader(3, precision);
      CHECK(third.losses == second.losses);
      CHECK(are_equal(third.parameters, second.parameters));
    }
  }
}

TEST_CASE("over nodes, training is the same whether parameters are gathered ahead or not") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto& [name, plan] : plans) {
      for (const std::uint64_t resident : {0, 24 << 10}) {
        INFO(communicator << ", " << name << ", resident bytes: " << resident);
        const ZeroConfig zero = {.stage = 3, .resident_bytes = resident};
        setenv("HORTATOR_GATHER_AHEAD", "0", 1);
        const auto in_turn = train_over_nodes(zero, plan);
        unsetenv("HORTATOR_GATHER_AHEAD");
        check_same(train_over_nodes(zero, plan), in_turn);
      }
    }
  }
}

TEST_CASE("over nodes, an error on one rank waits for no other while a gather is under way") {
  use_communicator("node");
  torch::nn::Sequential net;
  for (int i = 0; i < 6; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(64, 64).bias(false)));
  CHECK_THROWS_WITH(
      [&] {
        Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = 3}});
        auto model = accelerator.prepare(net);
        const at::NoGradGuard no_grad;
        model(at::ones({2, 64}));
        at::linear(at::ones({2, 64}), net->at<torch::nn::LinearImpl>(0).weight);  // starts to gather the next one
        throw Error({.what = "of the program's own"});
      }(),
      ContainsSubstring("of the program's own"));
}

TEST_CASE("over nodes, a model that computes in bf16 gathers half the bytes") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    const auto whole = run_forward("0");
    const auto cast = run_forward("1");
    CHECK(cast.outputs == whole.outputs);
    CHECK(2 * cast.bytes >= whole.bytes);
    CHECK(static_cast<double>(2 * cast.bytes) < 1.01 * static_cast<double>(whole.bytes));
  }
}

namespace {

/// Layers of which each rank uses one of its own choice.
struct ChosenImpl : torch::nn::Module {
  ChosenImpl() {
    at::manual_seed(9);
    first = register_module("first", torch::nn::Linear(7, 24));
    experts = register_module("experts", torch::nn::ModuleList());
    for (int i = 0; i < 4; ++i) experts->push_back(torch::nn::Linear(24, 24));
    last = register_module("last", torch::nn::Linear(24, 5));
  }
  at::Tensor forward(const at::Tensor& x, int expert) {
    auto hidden = at::tanh(first(x));
    for (const int one : {expert, expert + 2})
      hidden = at::tanh(experts->at<torch::nn::LinearImpl>(static_cast<std::size_t>(one)).forward(hidden));
    return last(hidden);
  }
  torch::nn::Linear first{nullptr};
  torch::nn::ModuleList experts{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Chosen);

std::vector<at::Tensor> train_chosen(const ZeroConfig& zero) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3, .find_unused_parameters = true}, .zero = zero});
  Chosen net;
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 5; ++step) {
    const int expert = (accelerator.process_index() + step / 2) % 2;
    accelerator.backward(model(batch(accelerator, step), expert).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  auto parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

std::vector<at::Tensor> train_experts(int stage) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = stage}});
  at::manual_seed(9);
  torch::nn::Sequential net(torch::nn::Linear(7, 16), nn::MoE(nn::MoEOptions{.width = 16, .inner = 24, .experts = 4}),
                            torch::nn::Linear(16, 5));
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 5; ++step) {
    accelerator.backward(model(batch(accelerator, step)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  auto parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

}  // namespace

TEST_CASE("over nodes, mixtures of experts train at stage 3 as at stage 2, whichever experts each rank uses") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    CHECK(are_equal(train_experts(3), train_experts(2)));
  }
}

TEST_CASE("over nodes, each rank may use layers of its own choice that stay in memory") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    const auto replicated = train_chosen({.stage = 0});
    CHECK(are_close(train_chosen({.stage = 2}), replicated, 1e-5));
    CHECK(are_close(train_chosen({.stage = 3, .keep_resident = {"experts"}}), replicated, 1e-5));
  }
}

TEST_CASE("between uses a rank has only its own slices") {
  use_communicator("node");
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = 3, .resident_bytes = 1}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  accelerator.backward(model(batch(accelerator, 0)).square().mean());
  optimizer.step();
  for (const auto& parameter : net->parameters()) CHECK(!has_data(parameter));
  const auto& slices = adamw->param_groups()[0].params();
  CHECK(std::count_if(slices.begin(), slices.end(), [](const at::Tensor& slice) {
          return slice.numel() > 0 && !has_data(slice);
        }) == 1);  // the frozen parameter
  model(batch(accelerator, 1));
  for (const auto& parameter : net->parameters()) CHECK(!has_data(parameter));
  accelerator.wait_for_everyone();
}

TEST_CASE("over nodes, ranks that use parameters in different orders all throw, and can continue") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-6, .find_unused_parameters = true}, .zero = {.stage = 3}});
    at::manual_seed(7);
    torch::nn::Sequential net;
    for (int i = 0; i < 4; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(7, 7).bias(false)));
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [prepared, stepper] = accelerator.prepare(net, sgd);
    auto& model = prepared;
    auto& optimizer = stepper;
    const auto layer = [&](int i) { return net->at<torch::nn::LinearImpl>(static_cast<std::size_t>(i)).weight; };
    const auto step = [&] {
      accelerator.backward(model(batch(accelerator, 0)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    };
    step();
    const bool is_last = accelerator.is_last_process();
    const auto last = std::to_string(accelerator.num_processes() - 1);

    // The last rank uses another layer.
    const auto crossed = problem_in([&] { at::linear(batch(accelerator, 0), layer(is_last ? 3 : 2)).sum(); });
    CHECK_THAT(crossed, ContainsSubstring("in different orders") && ContainsSubstring("rank " + last + ": 3.weight") &&
                            ContainsSubstring(": 2.weight"));
    step();

    // Evaluation on one rank, while the others are in a step.
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    const auto on_one_rank = problem_in([&] {
      if (!is_last) return optimizer.step();
      const at::NoGradGuard no_grad;
      model(batch(accelerator, 0));
    });
    CHECK_THAT(on_one_rank, ContainsSubstring("The ranks are in different collectives") &&
                                ContainsSubstring("all_gather") && ContainsSubstring("all_reduce"));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("over nodes, whole parameters can be read, written, exported by name, and saved in files") {
  use_communicator(back_ends[0]);
  const test::Folder folder(State(), "zero_nodes_files");
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = 3}});
    Shardable net;
    const auto expected = net->second->weight.detach().clone();
    auto model = accelerator.prepare(net);
    const auto full = accelerator.get_state_dict(model);
    CHECK(full.empty() != accelerator.is_main_process());
    if (accelerator.is_main_process()) CHECK(at::equal(full.get<at::Tensor>("second.weight"), expected));
    const auto mine = accelerator.get_state_dict(model, {.sharded = true}).get<at::Tensor>("second.weight");
    const auto whole = accelerator.gather_to_main(mine);
    if (accelerator.is_main_process()) CHECK(at::equal(*whole, expected.reshape({-1})));
    {
      const at::NoGradGuard no_grad;
      const auto summoned = accelerator.summon_full_parameters(model);
      net->second->weight.fill_(2);
      if (accelerator.is_main_process()) model(batch(accelerator, 0));  // independent of other ranks
    }
    CHECK((net->second->weight == 2).all().item<bool>());
    accelerator.save_model(model, folder.path() / "safe");
    accelerator.save_model(model, folder.path() / "pickle", {.safe_serialization = false});
    CHECK((net->first->weight != 0).any().item<bool>());  // still sharded, still the same
    for (const auto* name : {"safe", "pickle"}) {
      Shardable other;
      accelerator.load_checkpoint_in_model(other, folder.path() / name);
      CHECK(are_equal(copies_of(*other), copies_of(*net)));
      {
        const at::NoGradGuard no_grad;
        const auto summoned = accelerator.summon_full_parameters(model);
        net->second->weight.zero_();
      }
      accelerator.load_checkpoint_in_model(model, folder.path() / name);
      CHECK(are_equal(copies_of(*other), copies_of(*net)));
    }
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("over nodes, checkpoints are written in shards, and resume at any stage") {
  const auto run = [](const test::Folder& folder, const std::string& name, const std::vector<int>& stages,
                      bool asynchronous) {
    std::vector<at::Tensor> parameters;
    for (const int stage : stages) {
      parameters = test::resume({.zero = {.stage = stage},
                                 .project = {.dir = folder.path() / name},
                                 .checkpoint = {.asynchronous = asynchronous}});
    }
    return parameters;
  };
  use_communicator("mpi");
  const test::Folder folder(State(), "zero_nodes_checkpoint");
  const auto expected = run(folder, "second", {2, 2}, false);
  CHECK(are_equal(run(folder, "third", {3, 3}, false), expected));
  CHECK(are_equal(run(folder, "mixed", {3, 2}, true), expected));
  CHECK(are_equal(run(folder, "other way", {2, 3}, true), expected));
}

TEST_CASE(
    "over nodes, free_memory and the Accelerator's destructor give parameters back; an error waits for no other rank") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Shardable net;
    const auto before = copies_of(*net);
    {
      Accelerator accelerator({.zero = {.stage = 3}});
      auto model = accelerator.prepare(net);
      accelerator.free_memory();
      CHECK(has_data(net->first->weight));
      CHECK(are_equal(copies_of(*net), before));
      auto again = accelerator.prepare(net);
    }
    CHECK(are_equal(copies_of(*net), before));
    CHECK_THROWS_WITH(
        [&] {
          Accelerator accelerator({.zero = {.stage = 3}});
          auto model = accelerator.prepare(net);
          throw Error({.what = "of the program's own"});
        }(),
        ContainsSubstring("of the program's own"));
    CHECK_THROWS_WITH(net->first->weight.sum(), ContainsSubstring("has no values") && ContainsSubstring("free_memory"));
  }
}

TEST_CASE("over nodes, a model constructed while it is sharded equals one constructed at once") {
  use_communicator("node");
  const auto expected = [] {
    at::manual_seed(5);
    return copies_of(*torch::nn::Sequential(torch::nn::Linear(30, 40), torch::nn::Linear(40, 5)));
  }();
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = 3}});
  at::manual_seed(accelerator.is_main_process() ? 5 : 6);
  auto net =
      construct_deferred([] { return torch::nn::Sequential(torch::nn::Linear(30, 40), torch::nn::Linear(40, 5)); });
  auto model = accelerator.prepare(net);
  CHECK(are_equal(copies_of(*net), expected));
  accelerator.wait_for_everyone();
}
