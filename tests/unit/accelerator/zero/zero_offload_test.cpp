// Parameters and moments that are in a file between uses train as those in memory.
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <filesystem>

#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/disk_use.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

namespace {

// With so few resident bytes that pages are evicted after each use.
ZeroConfig all_on_disk(const std::filesystem::path& folder) {
  return {.stage = 3, .offload_optimizer = folder, .offload_parameters = folder, .resident_bytes = 1 << 10};
}

struct OffloadResult {
  std::vector<at::Tensor> parameters = {};
  std::vector<double> norms = {};
};

OffloadResult train_offloaded(AcceleratorOptions options, at::ScalarType type = at::kFloat, int accumulation = 1) {
  options.ddp.bucket_cap_mb = 3e-3;
  options.gradient_accumulation_steps = accumulation;
  Accelerator accelerator(options);
  Shardable net(type);
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  OffloadResult result;
  for (int step = 0; step < 4 * accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(model(batch(accelerator, step, type)).square().mean());
    if (accelerator.sync_gradients())
      result.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 0.1).item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  result.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return result;
}

struct WithSpare : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return used(x); }

  torch::nn::Linear used = register_module("used", torch::nn::Linear(7, 5));
  at::Tensor spare = register_parameter("spare", at::full({1}, 3.0));
};

bool is_in_memory(const at::Tensor& tensor) {
  try {
    return tensor.const_data_ptr() != nullptr;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("training offloaded to a folder equals training in memory, bit for bit") {
  const test::Folder folder(State(), "zero_offload");
  for (const int accumulation : {1, 2}) {
    const auto expected = train_offloaded({.zero = {.stage = 3}}, at::kFloat, accumulation);
    const auto all = train_offloaded({.zero = all_on_disk(folder.path())}, at::kFloat, accumulation);
    CHECK(are_equal(all.parameters, expected.parameters));
    CHECK(all.norms == expected.norms);
    for (const int stage : {1, 2}) {
      const auto in_memory = train_offloaded({.zero = {.stage = stage}}, at::kFloat, accumulation);
      const auto moments =
          train_offloaded({.zero = {.stage = stage, .offload_optimizer = folder.path(), .resident_bytes = 1 << 10}},
                          at::kFloat, accumulation);
      CHECK(are_equal(moments.parameters, in_memory.parameters));
    }
  }
  CHECK(std::filesystem::is_empty(folder.path()));  // the files have no names
}

TEST_CASE("the ranks' files together hold the parameters once, and over nodes each file holds its rank's part") {
  const State state;
  const test::Folder folder(state, "zero_offload_disk");
  Accelerator accelerator({.zero = {.stage = 3, .offload_parameters = folder.path()}});
  torch::nn::Linear net(torch::nn::LinearOptions(1024, 2048).bias(false));
  auto model = accelerator.prepare(net);
  const auto use = test::disk_use(state.world().comm(), folder.path());
  const auto ranks = static_cast<std::uint64_t>(state.num_processes());
  constexpr std::uint64_t bytes = std::uint64_t{8} << 20;
  constexpr std::uint64_t remainder = 65536;
  INFO(use.mine << " bytes of this rank's " << use.all);
  CHECK(use.all >= bytes);
  CHECK(use.all <= bytes + ranks * remainder);
  if (state.num_nodes() > 1) CHECK(use.mine <= bytes / ranks + remainder);
  accelerator.wait_for_everyone();
}

TEST_CASE("bf16 parameters with fp32 copies, and shard groups, train offloaded as in memory") {
  const test::Folder folder(State(), "zero_offload_masters");
  const auto expected = train_offloaded({.zero = {.stage = 3}}, at::kBFloat16);
  CHECK(
      are_equal(train_offloaded({.zero = all_on_disk(folder.path())}, at::kBFloat16).parameters, expected.parameters));
  const State state;
  for (int group = 1; group <= state.num_processes(); ++group) {
    if (state.num_processes() % group != 0) continue;
    auto zero = all_on_disk(folder.path());
    zero.shard_group = group;
    const auto in_groups = train_offloaded({.zero = {.stage = 3, .shard_group = group}});
    CHECK(are_equal(train_offloaded({.zero = zero}).parameters, in_groups.parameters));
  }
}

TEST_CASE("on CPUs offloading to \"cpu\" does not change the training") {
  const auto expected = train_offloaded({.zero = {.stage = 3}});
  const auto offloaded =
      train_offloaded({.zero = {.stage = 3, .offload_optimizer = "cpu", .offload_parameters = "cpu"}});
  CHECK(are_equal(offloaded.parameters, expected.parameters));
}

TEST_CASE("between steps neither parameters nor moments are in memory, and free_memory puts them back") {
  const test::Folder folder(State(), "zero_offload_memory");
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = all_on_disk(folder.path())});
  Shardable net;
  const auto expected = copies_of(*net);
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  CHECK(are_equal(copies_of(*net), expected));
  accelerator.backward(model(batch(accelerator, 0)).square().mean());
  optimizer.step();
  optimizer.zero_grad();
  std::size_t absent = 0;
  for (const auto& slice : adamw->param_groups()[0].params()) {
    const auto state = adamw->state().find(slice.unsafeGetTensorImpl());
    if (state == adamw->state().end()) continue;  // frozen, or another rank's
    absent += is_in_memory(static_cast<torch::optim::AdamWParamState&>(*state->second).exp_avg()) ? 0 : 1;
  }
  CHECK(absent > 0);
  CHECK(!is_in_memory(net->first->weight));
  const auto trained = copies_of(*net);
  CHECK(!are_equal(trained, expected));
  accelerator.free_memory();
  CHECK(is_in_memory(net->first->weight));
  CHECK(are_equal(copies_of(*net), trained));
  const auto& state = adamw->state().at(net->first->weight.unsafeGetTensorImpl());
  const auto& moment = static_cast<torch::optim::AdamWParamState&>(*state).exp_avg();
  CHECK(moment.sizes() == net->first->weight.sizes());
  CHECK(is_in_memory(moment));
}

TEST_CASE("parameters on disk can be summoned, written, and read by name") {
  const test::Folder folder(State(), "zero_offload_summon");
  Accelerator accelerator({.zero = all_on_disk(folder.path())});
  Shardable net;
  auto model = accelerator.prepare(net);
  {
    const at::NoGradGuard no_grad;
    const auto full = accelerator.summon_full_parameters(model);
    net->second->weight.fill_(2);
  }
  CHECK(at::equal(net->second->weight.detach(), at::full({33, 33}, 2.0F)));
  const auto state = accelerator.get_state_dict(model);
  if (accelerator.is_main_process()) CHECK(state.get<at::Tensor>("second.weight").mean().item<float>() == 2);
  accelerator.wait_for_everyone();
}

TEST_CASE("a checkpoint of offloaded state resumes in memory, and vice versa") {
  const test::Folder folder(State(), "zero_offload_checkpoint");
  const auto run = [&](const std::string& name, const std::vector<ZeroConfig>& configs, bool asynchronous) {
    std::vector<at::Tensor> parameters;
    for (const auto& config : configs) {
      parameters = test::resume(
          {.zero = config, .project = {.dir = folder.path() / name}, .checkpoint = {.asynchronous = asynchronous}});
    }
    return parameters;
  };
  const ZeroConfig memory = {.stage = 3};
  const auto disk = all_on_disk(folder.path());
  const auto expected = run("memory", {memory, memory, memory}, false);
  CHECK(are_equal(run("disk", {disk, memory, disk}, false), expected));
  CHECK(are_equal(run("background", {memory, disk, disk}, true), expected));
}

TEST_CASE("each rank loads its slices of weights into sharded parameters, and updates their fp32 copies") {
  const test::Folder folder(State(), "zero_offload_weights");
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto step_from_file = [&](const ZeroConfig& zero) {
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = zero});
      Shardable net(type);
      auto adamw = test::make_adamw(net);
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      accelerator.load_checkpoint_in_model(model, folder.path() / "weights");
      const auto loaded = copies_of(*net);
      accelerator.backward(model(batch(accelerator, 0, type)).square().mean());
      optimizer.step();
      accelerator.save_model(model, folder.path() / "again");
      auto both = copies_of(*net);
      both.insert(both.end(), loaded.begin(), loaded.end());
      accelerator.wait_for_everyone();
      return both;
    };
    {
      Accelerator accelerator;
      Shardable net(type);
      const at::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.mul_(0.5).add_(0.01);
      accelerator.save_model(net, folder.path() / "weights");
    }
    const auto expected = step_from_file({.stage = 1});
    for (const int stage : {2, 3}) CHECK(are_equal(step_from_file({.stage = stage}), expected));
    CHECK(are_equal(step_from_file(all_on_disk(folder.path() / "scratch")), expected));
  }
}

TEST_CASE("parameters and modules that the user names stay in memory") {
  const test::Folder folder(State(), "zero_offload_resident");
  auto zero = all_on_disk(folder.path());
  const auto expected = train_offloaded({.zero = {.stage = 3}});
  zero.keep_resident = {"second", "norm.weight"};
  // Arrays are cut at other positions, and the norm is summed in another order.
  CHECK(are_close(train_offloaded({.zero = zero}).parameters, expected.parameters, 1e-6));
  Accelerator accelerator({.zero = zero});
  Shardable net;
  auto model = accelerator.prepare(net);
  CHECK(is_in_memory(net->second->bias));
  CHECK(is_in_memory(net->norm->weight));
  CHECK(!is_in_memory(net->norm->bias));
  torch::nn::Linear other(3, 3);
  CHECK_THROWS_WITH(
      accelerator.prepare(other),
      ContainsSubstring("zero.keep_resident: the model has no parameter or module") && ContainsSubstring("second"));
  accelerator.wait_for_everyone();
}

TEST_CASE("with moments on disk, a parameter without gradient is saved and given back alike on all ranks") {
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    const test::Folder folder(State(), "zero_offload_unused");
    Accelerator accelerator({.ddp = {.find_unused_parameters = true},
                             .zero = {.stage = stage, .offload_optimizer = folder.path()},
                             .project = {.dir = folder.path() / "run"}});
    WithSpare net;
    torch::optim::AdamW adamw(net.parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto step = [&, &model = model, &optimizer = optimizer] {
      accelerator.backward(model(at::ones({2, 7})).sum());
      optimizer.step();
      optimizer.zero_grad();
    };
    step();
    accelerator.save_state();
    accelerator.load_state();
    step();
    accelerator.free_memory();  // the optimizer has its own state again: the same number of moments on all ranks
    const auto remembered = static_cast<std::int64_t>(adamw.state().size());
    CHECK(
        at::equal(accelerator.gather(at::full({1}, remembered)), at::full({accelerator.num_processes()}, remembered)));
    CHECK(net.spare.item<float>() == 3);
  }
}

TEST_CASE("unsupported offloading is refused by name") {
  CHECK_THROWS_WITH(Accelerator({.zero = {.offload_optimizer = "somewhere"}}),
                    ContainsSubstring("zero.offload_optimizer") && ContainsSubstring("at stage 0"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2, .offload_parameters = "somewhere"}}),
                    ContainsSubstring("zero.offload_parameters") && ContainsSubstring("at stage 2"));
  const test::Folder folder(State(), "zero_offload_refused");
  Accelerator accelerator({.zero = {.stage = 2, .offload_optimizer = folder.path()}});
  torch::nn::Linear net(3, 3);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  CHECK_THROWS_WITH(accelerator.prepare(sgd), ContainsSubstring("SGD") && ContainsSubstring("first step"));
  torch::nn::Linear offloaded(3, 3);
  auto elsewhere = disk_offload(offloaded, folder.path());
  CHECK_THROWS_WITH(accelerator.prepare(offloaded), ContainsSubstring("is offloaded and cannot be sharded"));
}
