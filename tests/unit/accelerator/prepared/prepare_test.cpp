#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

TEST_CASE("prepare takes objects in any number and order, and returns them in the same order") {
  Accelerator accelerator({.data = {.seed = 1}});
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  Schedule warmup = linear_warmup(adamw, {.warmup_steps = 2, .total_steps = 10});
  auto [schedule, loader, optimizer, model, second] =
      accelerator.prepare(warmup, data_loader(Rows{8}, {.batch_size = 2}), adamw, net, data_loader(Rows{4}));
  STATIC_REQUIRE(std::is_same_v<decltype(schedule), Schedule>);
  STATIC_REQUIRE(std::is_same_v<decltype(optimizer), Optimizer>);
  STATIC_REQUIRE(std::is_same_v<decltype(model), Model<Net>>);
  CHECK(&optimizer.unwrap() == &adamw);
  CHECK(Accelerator::unwrap_model(model).ptr() == net.ptr());
  CHECK(&accelerator.unwrap_optimizer(optimizer) == &adamw);
  CHECK(loader.total_batch_size() == 2 * accelerator.num_processes());
  CHECK(second.is_bound());
}

TEST_CASE("a single object is returned without a tuple; an object that is already prepared is returned unchanged") {
  Accelerator accelerator;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto model = accelerator.prepare(net);
  STATIC_REQUIRE(std::is_same_v<decltype(model), Model<Net>>);
  auto again = accelerator.prepare(model);
  CHECK(&again.core() == &model.core());
  auto from_net = accelerator.prepare(net);
  CHECK(&from_net.core() == &model.core());
  auto optimizer = accelerator.prepare(sgd);
  CHECK(&accelerator.prepare(sgd).core() == &optimizer.core());
  CHECK(&accelerator.prepare(optimizer).core() == &optimizer.core());
}

TEST_CASE("modules can be holders, shared_ptrs and variables") {
  Accelerator accelerator;
  Net holder;
  auto pointer = std::make_shared<test::NetImpl>();
  test::NetImpl object;
  auto [a, b, c] = accelerator.prepare(holder, pointer, object);
  const auto x = at::ones({2, 3});
  CHECK(a(x).sizes() == at::IntArrayRef{2, 1});
  CHECK(b(x).sizes() == at::IntArrayRef{2, 1});
  CHECK(c(x).sizes() == at::IntArrayRef{2, 1});
  CHECK(b.unwrap() == pointer);
  CHECK(c.unwrap() == &object);
}

namespace {

struct TiedByAssignmentImpl : torch::nn::Module {
  TiedByAssignmentImpl() { head->weight = tokens->weight; }
  at::Tensor forward(const at::Tensor& ids) { return head(tokens(ids)); }
  torch::nn::Embedding tokens = register_module("tokens", torch::nn::Embedding(7, 4));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(4, 7).bias(false)));
};
TORCH_MODULE(TiedByAssignment);

}  // namespace

TEST_CASE("a layer whose weight was assigned is refused on any number of ranks") {
  Accelerator accelerator;
  CHECK_THROWS_WITH(accelerator.prepare(TiedByAssignment()),
                    ContainsSubstring("'head' computes with another tensor") &&
                        ContainsSubstring("torch::linear(x, embedding->weight)"));
  TiedByAssignment frozen;
  frozen->head->named_parameters(false)["weight"].set_requires_grad(false);
  CHECK_NOTHROW(accelerator.prepare(frozen));
}

TEST_CASE("all ranks start with rank 0's weights") {
  Accelerator accelerator;
  at::manual_seed(static_cast<std::uint64_t>(accelerator.process_index()) + 1);
  Net net;
  auto model = accelerator.prepare(net);
  const auto all = accelerator.gather(net->hidden->weight.detach().view({1, -1}));
  for (std::int64_t rank = 0; rank < all.size(0); ++rank) CHECK(at::equal(all[rank], all[0]));
}

TEST_CASE("train, eval and parameters are forwarded to the module") {
  Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  model.eval();
  CHECK_FALSE(net->is_training());
  model.train();
  CHECK(net->is_training());
  CHECK(model.parameters().size() == 4);
  CHECK(model->hidden.ptr() == net->hidden.ptr());
}

TEST_CASE(
    "by default a schedule advances by the number of ranks per update, and by one if requested or with split batches") {
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1.0);
  const auto steps_after_one = [&](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    auto schedule = accelerator.prepare(linear_warmup(sgd, {.warmup_steps = 0, .total_steps = 100}));
    schedule.step();
    return schedule.steps();
  };
  const auto world = State().num_processes();
  CHECK(steps_after_one({}) == world);
  CHECK(steps_after_one({.schedule_step = ScheduleStep::per_update}) == 1);
  CHECK(steps_after_one({.data = {.split_batches = true}}) == 1);
}

namespace {

/// Gradient descent that saves nothing.
class Descent : public torch::optim::Optimizer {
 public:
  explicit Descent(std::vector<at::Tensor> parameters)
      : Optimizer(std::move(parameters), std::make_unique<Options>()) {}
  at::Tensor step(LossClosure /*closure*/ = nullptr) override {
    const at::NoGradGuard no_grad;
    for (auto& parameter : param_groups()[0].params()) parameter.sub_(parameter.grad(), 0.1);
    return {};
  }

 private:
  struct Options : torch::optim::OptimizerCloneableOptions<Options> {
    double get_lr() const override { return 0.1; }
    void set_lr(const double /*rate*/) override {}
  };
};

/// The same, on purpose.
class StatelessDescent : public Descent {
 public:
  using Descent::Descent;
  void save(torch::serialize::OutputArchive& /*archive*/) const override {}
  void load(torch::serialize::InputArchive& /*archive*/) override {}
};

}  // namespace

TEST_CASE("prepare warns of an optimizer that cannot be saved, and checkpoints can be saved and loaded") {
  const auto train = [](auto make) {
    Accelerator accelerator;
    const test::Folder folder(accelerator, "unsaved");
    test::Net net;
    auto own = make(net->parameters());
    test::Written lines(STDERR_FILENO);
    auto [model, optimizer] = accelerator.prepare(net, own);
    const auto text = lines.text();
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    accelerator.save_state(folder.path());
    accelerator.load_state(folder.path());
    return text;
  };
  const bool is_main = State().is_main_process();
  const auto warned = train([](auto parameters) { return Descent(parameters); });
  CHECK((warned.find("Descent, which does not override save() and load()") != std::string::npos) == is_main);
  const auto silent = train([](auto parameters) { return StatelessDescent(parameters); });
  CHECK(silent.find("does not override") == std::string::npos);
}
