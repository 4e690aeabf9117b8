// What outlives a run with divided experts: checkpoints, exports, and the user's own module and optimizer.
#include "unit/accelerator/experts/experts_course.hpp"
#include "unit/accelerator/state/stored_tensors.hpp"

using namespace hortator;
using test::check_equal;
using test::check_near;
using test::divided_by;
using test::divisions;
using test::tensors_in;
using test::train;
using test::train_alone;

TEST_CASE("checkpoints hold whole experts and moments, and any number of ranks resumes from them") {
  const State state;
  const test::Folder folder(state, "experts_checkpoints");
  const auto alone = folder.path() / "alone";
  train_alone({.steps = 3, .save = alone});
  const auto expected = tensors_in(alone);
  const auto next = train_alone({.first = 3, .steps = 3, .load = alone});
  for (const int experts : divisions()) {
    INFO("experts " << experts);
    const auto name = std::to_string(experts);
    const auto divided = folder.path() / name, again = folder.path() / (name + "-again");
    train({.options = divided_by(experts), .steps = 3, .save = divided});
    const auto found = tensors_in(divided);
    REQUIRE(found.size() == expected.size());
    for (const auto& [tensor, values] : expected) {
      INFO(tensor);
      REQUIRE(found.at(tensor).sizes() == values.sizes());
      CHECK(at::allclose(found.at(tensor), values, 1e-4, 1e-5));
    }
    // One rank reads what divided experts wrote, and writes the same bytes, and vice versa; so do other divisions.
    train_alone({.steps = 0, .load = divided, .save = again});
    check_equal(tensors_in(again), found);
    const auto back = folder.path() / (name + "-back");
    train({.options = divided_by(experts), .steps = 0, .load = alone, .save = back});
    check_equal(tensors_in(back), expected);
    for (const int others : divisions()) {
      const auto other = folder.path() / (name + "-by-" + std::to_string(others));
      train({.options = divided_by(others), .steps = 0, .load = divided, .save = other});
      check_equal(tensors_in(other), found);
    }
    check_near(train({.options = divided_by(experts), .first = 3, .steps = 3, .load = alone}).losses, next.losses);
  }
}

TEST_CASE("an optimizer that has stepped divided experts continues with whole ones after free_memory") {
  const auto expected = train_alone({.is_mixtral = false, .steps = 6});
  for (const int experts : divisions()) {
    INFO("experts " << experts);
    test::ExpertNet net;
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    std::vector<double> losses;
    for (const auto& options : {divided_by(experts), AcceleratorOptions()}) {
      Accelerator accelerator(options);
      const test::ExpertRun run{.is_mixtral = false, .first = static_cast<std::int64_t>(losses.size()), .steps = 3};
      const auto found = test::train_with(accelerator, run, net, sgd).losses;
      losses.insert(losses.end(), found.begin(), found.end());
      accelerator.free_memory();
    }
    check_near(losses, expected.losses);
  }
}

TEST_CASE("exports of divided experts are whole, and a module has whole ones when its Accelerator has ended") {
  const State state;
  const test::Folder folder(state, "experts_export");
  for (const int experts : divisions()) {
    const auto saved = folder.path() / ("model-" + std::to_string(experts));
    auto net = test::mixtral(), whole = test::mixtral();
    const auto parameters = whole->named_parameters();
    const test::ExpertBatch batch(0, 0, 1);
    {
      Accelerator accelerator(divided_by(experts));
      auto model = accelerator.prepare(*net);
      const auto dict = accelerator.get_state_dict(model);
      for (const auto& item : parameters)
        if (accelerator.is_main_process()) CHECK(at::equal(dict.get<at::Tensor>(item.key()), item.value()));
      accelerator.save_model(model, saved);
      if (accelerator.is_main_process()) models::save_config(*net, saved);
      accelerator.wait_for_everyone();
      const auto loaded = models::from_pretrained(saved);
      for (const auto& item : loaded->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
      const auto before = model(models::ModelInputs{.input_ids = batch.ids}).logits;
      CHECK(at::allclose(before, whole->forward({.input_ids = batch.ids}).logits, 1e-4, 1e-5));
      accelerator.load_checkpoint_in_model(model, saved);
      CHECK(at::equal(model(models::ModelInputs{.input_ids = batch.ids}).logits, before));
      accelerator.wait_for_everyone();
    }
    for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
    CHECK(at::equal(net->forward({.input_ids = batch.ids}).logits, whole->forward({.input_ids = batch.ids}).logits));
  }
}
