// A simulation whose arrays lie on the device, and whose work runs on a stream of its own: the C interface follows that
// stream, and is followed by it, whenever work runs.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <hortator/hortator.h>
#include <mpi.h>

#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "machine/device/stream.hpp"
#include "sim_fixture.hpp"

using namespace hortator;

namespace {

hortator_array on_device(const at::Tensor& tensor, const machine::Stream* stream) {
  return {.data = tensor.mutable_data_ptr(),
          .shape = tensor.sizes().data(),
          .stride = tensor.strides().data(),
          .rank = static_cast<std::int32_t>(tensor.dim()),
          .type = HORTATOR_F32,
          .memory = HORTATOR_DEVICE,
          .stream = stream == nullptr ? nullptr : stream->native()};
}

hortator_array on_host(const at::Tensor& tensor) {
  auto array = on_device(tensor, nullptr);
  array.memory = HORTATOR_HOST;
  return array;
}

hortator_run* begin(bool on_cpu, const char* on_nonfinite = "skip") {
  std::ofstream("device.yaml")
      << "cpu: " << (on_cpu ? "true" : "false")
      << "\nseed: 1\nrun_dir: run_device\ntrackers: []\non_nonfinite: " << on_nonfinite
      << "\n"
         "models: {net: {type: mlp, layers: [3, 8, 2], activation: tanh, optimizer: {type: sgd, lr: 0.1}}}\n"
         "buffers: {samples: {type: ring, capacity: 8, batch_size: 2}}\n";
  hortator_run* run = nullptr;
  REQUIRE(hortator_begin(MPI_Comm_c2f(MPI_COMM_SELF), "device.yaml", &run) == HORTATOR_OK);
  return run;
}

/// The outputs of a solver that changes its field on its stream before each of five training steps, and reads the
/// model's output there.
at::Tensor outputs_of(bool on_cpu, bool has_own_stream) {
  auto* run = begin(on_cpu);
  hortator_model* model = nullptr;
  hortator_buffer* buffer = nullptr;
  hortator_batch* batch = nullptr;
  REQUIRE(hortator_model_create(run, "net", &model) == HORTATOR_OK);
  REQUIRE(hortator_buffer_create(run, "samples", &buffer) == HORTATOR_OK);
  REQUIRE(hortator_batch_create(run, &batch) == HORTATOR_OK);
  const auto device = on_cpu ? c10::Device(c10::kCPU) : sim::device(0);
  std::optional<machine::Stream> stream;
  if (has_own_stream) stream.emplace(device);
  auto field = at::linspace(0, 1, 12, at::kFloat).view({4, 3}).to(device);
  auto target = at::linspace(1, 0, 8, at::kFloat).view({4, 2}).to(device);
  auto output = at::zeros({4, 4}, at::kFloat).to(device).slice(1, 0, 4, 2);  // strided
  auto sum = at::zeros({4, 2}, at::kFloat).to(device);
  const auto array_of = [&](const at::Tensor& tensor) {
    return on_cpu ? on_host(tensor) : on_device(tensor, stream ? &*stream : nullptr);
  };
  const auto gradient = at::zeros({4, 3}, at::kFloat).to(device);
  const hortator_array arrays[] = {array_of(field), array_of(target), array_of(output)};
  const auto gradient_array = array_of(gradient);
  for (const auto role : {HORTATOR_INPUT, HORTATOR_TARGET, HORTATOR_OUTPUT})
    REQUIRE(hortator_batch_add(batch, role, &arrays[role]) == HORTATOR_OK);
  if (stream) stream->follow_current();
  for (int step = 0; step < 5; ++step) {
    {
      std::optional<c10::StreamGuard> on;
      if (stream) on.emplace(stream->get());
      field.mul_(1.25);
      target.add_(0.5);
    }
    CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    CHECK(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
    CHECK(hortator_infer(model, batch) == HORTATOR_OK);
    CHECK(hortator_adjoint(model, batch, &arrays[HORTATOR_TARGET], &gradient_array) == HORTATOR_OK);
    std::optional<c10::StreamGuard> on;
    if (stream) on.emplace(stream->get());
    sum.add_(output).add_(gradient.slice(1, 0, 2));
    output.zero_();
  }
  CHECK(hortator_buffer_train(buffer, model, 2, nullptr) == HORTATOR_OK);
  CHECK(hortator_infer(model, batch) == HORTATOR_OK);
  if (stream) stream->mark().hold_current_stream();
  const auto result = at::cat({sum.cpu(), output.cpu()});
  hortator_batch_free(batch);
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  return result;
}

}  // namespace

TEST_CASE("calls follow the caller's stream and are followed by it", "[sim]") {
  const auto expected = outputs_of(true, false);
  const bool has_own_stream = GENERATE(false, true);
  const auto policy = GENERATE(sim::Policy::eager, sim::Policy::late, sim::Policy::random);
  CAPTURE(has_own_stream);
  for (std::uint64_t seed = 1; seed <= (policy == sim::Policy::random ? 10 : 1); ++seed) {
    sim::set_policy(policy, seed);
    CHECK(at::equal(outputs_of(false, has_own_stream), expected));
    CHECK(sim::take_findings().empty());
  }
  sim::set_policy(sim::Policy::eager);
}

TEST_CASE("a training step on arrays of the device does not wait for it, unless it looks for NaN", "[sim]") {
  sim::set_policy(sim::Policy::late);
  const bool looks = GENERATE(false, true);
  auto* run = begin(false, looks ? "skip" : "proceed");
  hortator_model* model = nullptr;
  hortator_batch* batch = nullptr;
  REQUIRE(hortator_model_create(run, "net", &model) == HORTATOR_OK);
  REQUIRE(hortator_batch_create(run, &batch) == HORTATOR_OK);
  const machine::Stream stream(sim::device(0));
  const auto field = at::ones({4, 3}, at::TensorOptions().device(sim::device(0)));
  const auto target = at::ones({4, 2}, at::TensorOptions().device(sim::device(0)));
  const auto input_array = on_device(field, &stream);
  const auto target_array = on_device(target, &stream);
  REQUIRE(hortator_batch_add(batch, HORTATOR_INPUT, &input_array) == HORTATOR_OK);
  REQUIRE(hortator_batch_add(batch, HORTATOR_TARGET, &target_array) == HORTATOR_OK);
  for (int step = 0; step < 3; ++step) CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  const auto before = sim::counts().host_waits;
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  CHECK((sim::counts().host_waits > before) == looks);
  CHECK(sim::counts().host_waits <= before + 3);
  hortator_batch_free(batch);
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  sim::set_policy(sim::Policy::eager);
}

TEST_CASE("NaN in an array of the device leaves the training step out", "[sim]") {
  sim::set_policy(sim::Policy::late);
  auto* run = begin(false);
  hortator_model* model = nullptr;
  hortator_batch* batch = nullptr;
  REQUIRE(hortator_model_create(run, "net", &model) == HORTATOR_OK);
  REQUIRE(hortator_batch_create(run, &batch) == HORTATOR_OK);
  const auto field = at::ones({4, 3}, at::TensorOptions().device(sim::device(0)));
  auto target = at::ones({4, 2}, at::TensorOptions().device(sim::device(0)));
  const auto input_array = on_device(field, nullptr);
  const auto target_array = on_device(target, nullptr);
  REQUIRE(hortator_batch_add(batch, HORTATOR_INPUT, &input_array) == HORTATOR_OK);
  REQUIRE(hortator_batch_add(batch, HORTATOR_TARGET, &target_array) == HORTATOR_OK);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  target.fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_NOTHING);
  target.fill_(1);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  hortator_batch_free(batch);
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  sim::set_policy(sim::Policy::eager);
}

TEST_CASE("an array of the device on one rank is not kept on any", "[ranks]") {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::ofstream("keep.yaml") << "seed: 1\nrun_dir: run_keep\ntrackers: []\n";
  MPI_Barrier(MPI_COMM_WORLD);
  hortator_run* run = nullptr;
  REQUIRE(hortator_begin(MPI_Comm_c2f(MPI_COMM_WORLD), "keep.yaml", &run) == HORTATOR_OK);
  const auto field = at::ones({4}, at::TensorOptions().device(sim::device(0)));
  const auto copy = at::ones({4});
  const auto array = rank + 1 == ranks ? on_device(field, nullptr) : on_host(copy);
  CHECK(hortator_keep(run, "field", &array, HORTATOR_EACH) == HORTATOR_USAGE);
  CHECK_THAT(hortator_last_error(), ContainsSubstring("hortator_keep got the device array 'field'") &&
                                        ContainsSubstring("keep a copy in the host's memory"));
  const auto right = on_host(copy);
  CHECK(hortator_keep(run, "field", &right, HORTATOR_EACH) == HORTATOR_OK);  // the name is still free
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
}

TEST_CASE("an array on the device is refused in a run on CPUs", "[sim]") {
  auto* run = begin(true);
  hortator_batch* batch = nullptr;
  REQUIRE(hortator_batch_create(run, &batch) == HORTATOR_OK);
  const auto field = at::ones({4, 3}, at::TensorOptions().device(sim::device(0)));
  auto array = on_device(field, nullptr);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, &array) == HORTATOR_USAGE);
  CHECK(std::string(hortator_last_error()).find("the run computes on CPUs") != std::string::npos);
  array.memory = static_cast<hortator_memory>(7);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, &array) == HORTATOR_USAGE);
  hortator_batch_free(batch);
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
}
