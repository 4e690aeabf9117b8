// A disk that fails while data is offloaded: everything stays where it was, or is restored.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "comm/shm/communicator.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/zero/flat_parameters.hpp"
#include "step/moments/moments_on_disk.hpp"
#include "support/catch.hpp"
#include "support/faults/faults.hpp"

using namespace hortator;

namespace {

/// Created by the first rank; exists on the others afterwards.
std::filesystem::path scratch(const mpi::Communicator& comm, const std::string& name) {
  const auto path = std::filesystem::absolute(name);
  if (comm.rank() == 0) std::filesystem::remove_all(path);
  if (comm.rank() == 0) std::filesystem::create_directories(path);
  mpi::barrier(comm);
  return path;
}

void fail_from(const std::filesystem::path& folder, long call) {
  faults::arm(folder.string(), {.kind = faults::Kind::error, .at = call, .error = ENOSPC, .on = true});
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().clone());
  return all;
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i].detach(), b.at(i))) return false;
  }
  return a.size() == b.size();
}

torch::optim::AdamWParamState& state_of(torch::optim::AdamW& adamw, const at::Tensor& parameter) {
  return static_cast<torch::optim::AdamWParamState&>(*adamw.state().at(parameter.unsafeGetTensorImpl()));
}

std::vector<at::Tensor> moments_of(torch::optim::AdamW& adamw, const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> moments;
  for (const auto& parameter : parameters) {
    moments.push_back(state_of(adamw, parameter).exp_avg());
    moments.push_back(state_of(adamw, parameter).exp_avg_sq());
  }
  return moments;
}

}  // namespace

TEST_CASE("if a disk fails while parameters are written to it, all ranks throw and all parameters keep their values") {
  const auto world = mpi::Communicator::world();
  comm::NodeCommunicator communicator(mpi::Communicator::world());
  const auto folder = scratch(world, "faults_parameters");
  constexpr int parameters = 6;
  for (int run = 0; run <= 2 * parameters; ++run) {
    const bool sharded = run > parameters;
    const int when = sharded ? run - parameters : run;
    INFO("when " << when << " have their values, " << (sharded ? "in a file each" : "in one file"));
    std::vector<at::Tensor> tensors;
    std::vector<parallel::FlatParameters::Parameter> named;
    for (int i = 0; i < parameters; ++i) {
      tensors.push_back(at::full({300}, i + 1.0).requires_grad_());
      named.push_back({.name = "p" + std::to_string(i), .tensor = tensors.back()});
    }
    const auto before = copies(tensors);
    int settled = 0;
    const auto fail_alone = [&](const at::Tensor&) {
      if (++settled == when && world.rank() == world.size() - 1) fail_from(folder, 1);
    };
    const auto make = [&] {
      parallel::FlatParameters flat(
          communicator, std::move(named), {.first_bytes = 1, .bytes = 2000}, parallel::Masters::no,
          {.parameters = {.folder = folder}, .sharded = sharded},
          {.all_or_none = [&](const auto& work) { mpi::all_or_none(world, work); }, .settle = fail_alone});
      flat.release();
    };
    if (when == 0) {
      CHECK_NOTHROW(make());
    } else {
      CHECK_THROWS_WITH(make(), ContainsSubstring("write") && ContainsSubstring(folder.string()));
    }
    faults::disarm();
    CHECK(settled >= when);
    CHECK(mpi::equal_on_all(world, static_cast<std::uint64_t>(settled)));  // no rank has continued alone
    CHECK(same(tensors, before));
    for (const auto& tensor : tensors) CHECK(tensor.const_data_ptr() != nullptr);
    mpi::barrier(world);
    CHECK(std::filesystem::is_empty(folder));
    mpi::barrier(world);
  }
}

TEST_CASE("if a disk fails while moments are written to it, none is lost, and a later attempt succeeds") {
  const auto world = mpi::Communicator::world();
  if (world.size() > 1) return;
  const auto folder = scratch(world, "faults_moments");
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 4; ++i) parameters.push_back(at::full({100 + i}, i + 1.0).requires_grad_());
  torch::optim::AdamW adamw(parameters, torch::optim::AdamWOptions(0.1));
  const auto step = [&] {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i].mutable_grad() = at::full_like(parameters[i], static_cast<double>(i) - 1.5);
    adamw.step();
  };
  step();
  const auto expected = copies(moments_of(adamw, parameters));
  std::vector<step::MomentsOnDisk::Owner> owners;
  for (const auto& parameter : parameters) owners.push_back({.parameter = parameter, .group = 0, .name = "p"});
  step::MomentsOnDisk on_disk({.folder = folder, .resident_bytes = 1});
  long failures = 0;
  bool kept = false;
  while (!kept && failures < 100) {
    fail_from(folder, failures + 1);
    try {
      on_disk.keep(adamw, owners);
      kept = true;
    } catch (const Error&) {
      ++failures;
    }
    faults::disarm();
    CHECK(same(moments_of(adamw, parameters), expected));
  }
  CHECK(kept);
  CHECK(failures >= 8);  // each of the moments was written, and something before
  step();
  const auto after = moments_of(adamw, parameters);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(!at::equal(after[i], expected[i]));

  // New ones beside those in the file: a second file, which fails as well.
  auto late = at::ones({50}).requires_grad_();
  adamw.add_param_group(torch::optim::OptimizerParamGroup({late}));
  late.mutable_grad() = at::ones({50});
  step();
  parameters.push_back(late);
  owners.push_back({.parameter = late, .group = 1, .name = "late"});
  const auto both = copies(moments_of(adamw, parameters));
  fail_from(folder, 4);
  CHECK_THROWS_AS(on_disk.keep(adamw, owners), Error);
  faults::disarm();
  CHECK(same(moments_of(adamw, parameters), both));
  on_disk.keep(adamw, owners);
  CHECK(same(moments_of(adamw, parameters), both));
}
