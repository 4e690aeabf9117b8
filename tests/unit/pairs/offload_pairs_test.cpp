// Parameters and moments in files beside other models, several optimizers, rollbacks and skipped steps, compared with
// those in memory.
#include <hortator/bigmodel/offload.hpp>
#include <limits>
#include <optional>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

namespace {

/// Where parameters and moments are.
enum class Room { memory, moments_in_files, all_in_files, paged_module };

AcceleratorOptions options_in(Room room, int stage, const std::filesystem::path& folder) {
  AcceleratorOptions options{.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}};
  if (room == Room::moments_in_files || room == Room::all_in_files) {
    options.zero.offload_optimizer = folder;
    options.zero.resident_bytes = 1 << 10;
  }
  if (room == Room::all_in_files) options.zero.offload_parameters = folder;
  return options;
}

/// A model that is trained in a room.
struct Trained {
  Trained(Accelerator& accelerator, Room room, const std::filesystem::path& folder) {
    if (room == Room::paged_module)
      offload.emplace(disk_offload(net, folder, {.resident_bytes = 1 << 10, .page_bytes = 1 << 10}));
    model.emplace(accelerator.prepare(net));
    optimizer.emplace(accelerator.prepare(*plain));
  }

  Shardable net;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  std::optional<Offload> offload;
  std::optional<Model<Shardable>> model;
  std::optional<Optimizer> optimizer;
};

std::vector<at::Tensor> weights_of(Accelerator& accelerator, const std::vector<const Trained*>& models) {
  accelerator.wait_for_everyone();
  std::vector<at::Tensor> all;
  for (const auto* one : models) {
    for (auto& copy : copies_of(*one->net)) all.push_back(copy);
  }
  accelerator.wait_for_everyone();
  return all;
}

std::vector<at::Tensor> two_models_course(Room room, int stage, const std::filesystem::path& folder) {
  Accelerator accelerator(options_in(room, stage, folder));
  Trained maker(accelerator, room, folder), critic(accelerator, room, folder);
  for (int i = 0; i < 3; ++i) {
    const auto made = (*maker.model)(batch(accelerator, i));
    accelerator.backward((*critic.model)(at::cat({made, made.narrow(1, 0, 2)}, 1)).square().mean());
    accelerator.clip_grad_norm_(maker.model->parameters(), 0.1);
    maker.optimizer->step();
    maker.optimizer->zero_grad();
    critic.optimizer->zero_grad();
    accelerator.backward((*critic.model)(batch(accelerator, i + 5)).square().mean());
    critic.optimizer->step();
    critic.optimizer->zero_grad();
  }
  return weights_of(accelerator, {&maker, &critic});
}

/// Every other parameter has the other optimizer, so that both have parts of each array.
std::vector<at::Tensor> two_optimizers_course(Room room, int stage, const std::filesystem::path& folder) {
  Accelerator accelerator(options_in(room, stage, folder));
  Shardable net;
  std::vector<at::Tensor> halves[2];
  for (const auto& parameter : test::distinct(*net)) halves[halves[0].size() > halves[1].size()].push_back(parameter);
  torch::optim::AdamW first(halves[0], 1e-2), second(halves[1], 3e-2);
  auto model = accelerator.prepare(net);
  auto [optimizer, other] = accelerator.prepare(first, second);
  for (int i = 0; i < 4; ++i) {
    accelerator.backward(model(batch(accelerator, i)).square().mean());
    optimizer.step();
    if (i != 1) other.step();
    optimizer.zero_grad();
    other.zero_grad();
  }
  accelerator.wait_for_everyone();
  auto copies = copies_of(*net);
  accelerator.wait_for_everyone();
  return copies;
}

/// Trains with these batches. An update with a negative one is bad.
std::vector<at::Tensor> protected_course(Room room, int stage, const std::filesystem::path& folder,
                                         const std::vector<int>& batches) {
  auto options = options_in(room, stage, folder);
  options.protection = {.on_nonfinite = OnNonfinite::rollback, .snapshot_every = 2};
  Accelerator accelerator(options);
  Trained one(accelerator, room, folder);
  for (const int number : batches) {
    const auto loss = (*one.model)(batch(accelerator, number)).square().mean();
    accelerator.backward(number < 0 ? loss * std::numeric_limits<double>::quiet_NaN() : loss);
    one.optimizer->step();
    CHECK(one.optimizer->step_was_skipped() == (number < 0));
    one.optimizer->zero_grad();
  }
  return weights_of(accelerator, {&one});
}

/// Both bad updates return to the copy of before the third one.
void check_rollback(Room room, int stage, const std::filesystem::path& folder) {
  CHECK(are_equal(protected_course(room, stage, folder, {0, 1, 2, -1, 4, -1, 6, 7}),
                  protected_course(Room::memory, stage, folder, {0, 1, 6, 7})));
}

std::vector<at::Tensor> overflow_course(Room room, int stage, bool late, const std::filesystem::path& folder) {
  auto options = options_in(room, stage, folder);
  options.mixed_precision = Precision::fp16;
  options.grad_scaler = {.init_scale = 64, .late_verdict = late};
  Accelerator accelerator(options);
  Trained one(accelerator, room, folder);
  std::vector<at::Tensor> trace;
  for (int i = 0; i < 4; ++i) {
    const auto before = weights_of(accelerator, {&one});
    const double factor = i == 2 ? std::numeric_limits<double>::infinity() : 1;
    accelerator.backward((*one.model)(batch(accelerator, i)).to(at::kFloat).square().mean() * factor);
    one.optimizer->step();
    one.optimizer->zero_grad();
    for (auto& copy : weights_of(accelerator, {&one})) trace.push_back(copy);
    CHECK(are_equal(weights_of(accelerator, {&one}), before) == (i == 2));
  }
  trace.push_back(at::scalar_tensor(accelerator.loss_scale().scale));
  return trace;
}

}  // namespace

TEST_CASE("two models with parameters and moments in files train each other as in memory") {
  const test::Folder folder(State(), "offload_two_models");
  const auto stage_3 = two_models_course(Room::memory, 3, folder.path());
  CHECK(are_equal(two_models_course(Room::all_in_files, 3, folder.path()), stage_3));
  const auto stage_0 = two_models_course(Room::memory, 0, folder.path());
  CHECK(are_equal(two_models_course(Room::paged_module, 0, folder.path()), stage_0));
}

TEST_CASE("two optimizers with moments in files step parameters that share arrays as in memory") {
  const test::Folder folder(State(), "offload_two_optimizers");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const auto expected = two_optimizers_course(Room::memory, stage, folder.path());
    CHECK(are_equal(two_optimizers_course(Room::moments_in_files, stage, folder.path()), expected));
  }
  CHECK(are_equal(two_optimizers_course(Room::all_in_files, 3, folder.path()),
                  two_optimizers_course(Room::memory, 3, folder.path())));
}

TEST_CASE("a rollback restores parameters and moments in files as in memory") {
  const test::Folder folder(State(), "offload_rollback");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    check_rollback(stage == 3 ? Room::all_in_files : Room::moments_in_files, stage, folder.path());
  }
  check_rollback(Room::paged_module, 0, folder.path());
}

TEST_CASE("a step that an overflow skips leaves parameters and moments in files as in memory") {
  const test::Folder folder(State(), "offload_overflow");
  for (const bool late : {false, true}) {
    INFO((late ? "late" : "exact") << " verdicts");
    CHECK(are_equal(overflow_course(Room::paged_module, 0, late, folder.path()),
                    overflow_course(Room::memory, 0, late, folder.path())));
  }
  for (const int stage : {1, 3}) {
    INFO("stage " << stage);
    const auto room = stage == 3 ? Room::all_in_files : Room::moments_in_files;
    CHECK(are_equal(overflow_course(room, stage, false, folder.path()),
                    overflow_course(Room::memory, stage, false, folder.path())));
  }
}
