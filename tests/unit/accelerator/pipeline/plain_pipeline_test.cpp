// Pipelines of modules that are as they were written: nothing in them names layers.
#include <ATen/ops/cat.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <hortator/lora.hpp>
#include <hortator/training/recompute.hpp>

#include "accelerator/training/training.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "unit/accelerator/pipeline/pipeline_course.hpp"

using namespace hortator;
using namespace hortator::test::pipelines;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Attention with a residual, as people write it.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(double dropout) : drop(register_module("drop", torch::nn::Dropout(dropout))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask) {
    const auto parts = qkv(norm(x)).view({x.size(0), x.size(1), 3, 2, width / 2}).permute({2, 0, 3, 1, 4});
    const auto seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], mask);
    auto sum = drop(out(seen.transpose(1, 2).reshape_as(x)));
    sum += x;
    return sum;
  }
  torch::nn::LayerNorm norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(width, width));
  torch::nn::Dropout drop;
};
TORCH_MODULE(Block);

/// A language model whose head is the embedding; the first hidden state is added again at the end, and positions, masks
/// and casts are made in forward.
struct TiedImpl : torch::nn::Module, HasPipelineLayers {
  explicit TiedImpl(double dropout = 0) {
    for (int i = 0; i < 6; ++i) blocks->push_back(Block(dropout));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const auto places = at::arange(ids.size(1), ids.options());
    const auto mask = (places.unsqueeze(0) <= places.unsqueeze(1)) & ids.ge(0).unsqueeze(1).unsqueeze(1);
    auto x = embed(ids) + positions(places);
    const auto first = at::relu(x);
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x, mask);
    const auto scale = at::full({}, 0.5, x.options());
    return at::linear(x * scale + first, embed->weight);
  }
  std::vector<at::Tensor> used_after_layers() const override { return {embed->weight}; }

  torch::nn::Embedding embed = register_module("embed", torch::nn::Embedding(vocabulary, width));
  torch::nn::Embedding positions = register_module("positions", torch::nn::Embedding(length, width));
  torch::nn::ModuleList blocks = register_module("blocks", torch::nn::ModuleList());
};
TORCH_MODULE(Tied);

/// Convolutions with batch norms and a connection from the first layer to the last.
struct ConvolutionsImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& ids) {
    const auto image = ids.to(at::kFloat).div(vocabulary).view({-1, 1, 1, length});
    const auto a = norm_a(in(image)).relu_();
    auto b = norm_b(middle(a));
    b.relu_();
    const auto joined = at::cat({a, b}, 1);
    return head(joined.permute({0, 2, 3, 1}).squeeze(1));
  }
  torch::nn::Conv2d in =
      register_module("in", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, {1, 3}).padding({0, 1}).bias(false)));
  torch::nn::BatchNorm2d norm_a = register_module("norm_a", torch::nn::BatchNorm2d(6));
  torch::nn::Conv2d middle =
      register_module("middle", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 6, {1, 3}).padding({0, 1}).bias(false)));
  torch::nn::BatchNorm2d norm_b = register_module("norm_b", torch::nn::BatchNorm2d(6));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(12, vocabulary));
};
TORCH_MODULE(Convolutions);

/// One training of a module that `make` makes; one rank's with other options.
template <typename Make>
Course train_plain(const Make& make, const AcceleratorOptions& options, std::int64_t micro_batches) {
  Accelerator accelerator(options);
  set_seed(11);
  auto net = make();
  torch::optim::AdamW adam(net->parameters(), smooth_adamw());
  auto [model, optimizer] = accelerator.prepare(net, adam);
  const auto& data = accelerator::Training::of(accelerator).data();
  Course course;
  for (int step = 0; step < 4; ++step) {
    const auto loss = accelerator.pipeline_step(model, batch_of(step, data.index(), data.size()),
                                                [](auto& model, Words& part) {
                                                  return at::cross_entropy_loss(model(part.ids).flatten(0, 1),
                                                                                part.targets.flatten());
                                                },
                                                {.micro_batches = micro_batches});
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
    course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 0.5).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  course.weights = accelerator.get_state_dict(model);
  return course;
}

template <typename Make>
Course plain_course_of_one(const Make& make, AcceleratorOptions options, std::int64_t micro_batches) {
  const test::FirstRanks first(1);
  options.parallel = {};
  options.communicator = first.handle();
  return first.is_in() ? train_plain(make, options, micro_batches) : Course();
}

/// What a step along a pipeline of all ranks throws on this one.
template <typename Make>
std::string refusal_of(const Make& make) {
  Accelerator accelerator({.parallel = stages(ranks())});
  set_seed(11);
  auto net = make();
  auto model = accelerator.prepare(net);
  try {
    accelerator.pipeline_step(model, batch_of(0), [](auto& model, Words& part) {
      return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
    });
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("modules that name no layers train along a pipeline as on one rank, with every schedule", "[pipeline]") {
  const auto check = [](const auto& make, const AcceleratorOptions& options, double tolerance) {
    const auto expected = plain_course_of_one(make, options, 4);
    for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                                PipelineSchedule::zero_bubble}) {
      INFO("schedule " << static_cast<int>(schedule));
      auto along = options;
      along.parallel = stages(ranks(), schedule);
      if (schedule == PipelineSchedule::interleaved && ranks() == 3) continue;  // 4 micro-batches
      check_near(train_plain(make, along, 4), expected, tolerance);
    }
  };
  SECTION("a tied embedding, attention, a first state that is used last") {
    check([] { return Tied(); }, {}, 1e-5);
  }
  SECTION("dropout") {
    check([] { return Tied(0.3); }, {}, 1e-5);
  }
  SECTION("16 bits") {
    check([] { return Tied(); }, {.mixed_precision = Precision::bf16}, 2e-2);
  }
}

TEST_CASE("adapters of a plain module train along a pipeline as on one rank", "[pipeline]") {
  const auto make = [] {
    Tied net;
    lora(*net, {.rank = 2, .targets = {"qkv", "out"}});
    return net;
  };
  const auto expected = plain_course_of_one(make, {}, 4);
  check_near(train_plain(make, {.parallel = stages(ranks())}, 4), expected);
}

TEST_CASE("replicas of a pipeline of a plain module average their gradients, with ZeRO 1 as well", "[pipeline]") {
  if (ranks() != 4) return;
  const auto make = [] { return Tied(); };
  const auto expected = plain_course_of_one(make, {}, 4);
  for (const int stage : {0, 1}) {
    INFO("ZeRO " << stage);
    check_near(train_plain(make, {.zero = {.stage = stage}, .parallel = {.pipeline = 2}}, 4), expected);
  }
}

TEST_CASE("batch norms and what is done in place and connections over stages are those of one rank", "[pipeline]") {
  if (ranks() == 4) return;  // too few parts with a matrix
  const auto make = [] { return Convolutions(); };
  auto along = AcceleratorOptions{.parallel = stages(ranks())};
  check_near(train_plain(make, along, 4), plain_course_of_one(make, {}, 4));
}

TEST_CASE("a rank has the parameters of its stage of a plain module only", "[pipeline]") {
  if (ranks() == 1) return;
  Accelerator accelerator({.parallel = stages(ranks())});
  Tied net;
  auto model = accelerator.prepare(net);
  std::int64_t here = 0, of_blocks = 0;
  for (const auto& item : net->named_parameters()) {
    if (!item.key().starts_with("blocks")) continue;
    ++of_blocks;
    here += parallel::is_of_other_stage(item.value()) ? 0 : 1;
  }
  CHECK(here <= of_blocks / ranks() + of_blocks / 6);
  CHECK(here > 0);
}

TEST_CASE("pipeline_forward() of a plain module gives all ranks its outputs", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks())});
  set_seed(3);
  Tied net;
  net->eval();
  auto model = accelerator.prepare(net);
  const auto batch = batch_of(1);
  const auto outputs =
      accelerator.pipeline_forward(model, batch, [](auto& model, Words& part) { return model(part.ids); });
  CHECK(same_everywhere(outputs));
  const auto whole = accelerator.summon_full_parameters(model);
  const at::NoGradGuard no_grad;
  CHECK(is_close(outputs, model(batch.ids)));
}

TEST_CASE("forward of a plain module that cannot be divided is refused, and what to do is said", "[pipeline]") {
  if (ranks() != 2) return;
  struct Layers : torch::nn::Module {
    torch::nn::Embedding embed = register_module("embed", torch::nn::Embedding(vocabulary, width));
    torch::nn::Linear a = register_module("a", torch::nn::Linear(width, width));
    torch::nn::Linear b = register_module("b", torch::nn::Linear(width, vocabulary));
  };
  struct Backwards : Layers {
    at::Tensor forward(const at::Tensor& ids) {
      const auto last = b(at::ones({1, width}));
      return b(a(embed(ids))) + last;
    }
  };
  struct Deciding : Layers {
    at::Tensor forward(const at::Tensor& ids) {
      const auto x = a(embed(ids));
      return x.sum().item<double>() > 0 ? b(x) : b(-x);
    }
  };
  struct Writing : Layers {
    at::Tensor forward(const at::Tensor& ids) {
      auto x = at::zeros({ids.size(0), ids.size(1), width});
      x.copy_(a(embed(ids)));
      return b(x);
    }
  };
  struct WritingViews : Layers {
    at::Tensor forward(const at::Tensor& ids) {
      const auto x = a(embed(ids));
      const auto row = x.select(1, 0);
      const auto y = b(x);
      return y + row.zero_().sum();
    }
  };
  struct Skipping : Layers {
    at::Tensor forward(const at::Tensor& ids) { return at::linear(embed(ids), at::ones({vocabulary, width})); }
  };
  struct Recomputing : Layers {
    at::Tensor forward(const at::Tensor& ids) { return b(recompute(a, embed(ids))); }
  };
  CHECK_THAT(refusal_of([] { return std::make_shared<Backwards>(); }), ContainsSubstring("'embed.weight' of stage 0"));
  CHECK_THAT(refusal_of([] { return std::make_shared<Deciding>(); }),
             ContainsSubstring("was called on a result of another stage"));
  CHECK_THAT(refusal_of([] { return std::make_shared<Writing>(); }), ContainsSubstring("wrote a result of one stage"));
  CHECK_THAT(refusal_of([] { return std::make_shared<WritingViews>(); }),
             ContainsSubstring("wrote to memory that a stage of the pipeline gets twice"));
  CHECK_THAT(refusal_of([] { return std::make_shared<Skipping>(); }),
             ContainsSubstring("has read no parameter of stage 1"));
  CHECK_THAT(refusal_of([] { return std::make_shared<Recomputing>(); }), ContainsSubstring("recompute"));
}

TEST_CASE("a micro-batch that takes another way is refused on all ranks, and the next step is right", "[pipeline]") {
  if (ranks() == 1) return;
  struct Turning : TiedImpl {
    at::Tensor forward(const at::Tensor& ids) {
      const auto logits = TiedImpl::forward(is_turning && ids[0][0].item<std::int64_t>() % 2 == 1 ? ids + 0 : ids);
      return logits;
    }
    bool is_turning = true;
  };
  Accelerator accelerator({.parallel = stages(ranks())});
  set_seed(11);
  auto net = std::make_shared<Turning>();
  auto model = accelerator.prepare(net);
  const auto step = [&] {
    return accelerator.pipeline_step(model, batch_of(0),
                                     [](auto& model, Words& part) {
                                       return at::cross_entropy_loss(model(part.ids).flatten(0, 1),
                                                                     part.targets.flatten());
                                     },
                                     {.micro_batches = 16});
  };
  CHECK_THROWS_WITH(step(), ContainsSubstring("another way"));
  net->is_turning = false;
  model.zero_grad();
  const auto loss = step().item<double>();
  const auto expected = plain_course_of_one([] { return Tied(); }, {}, 16);
  if (!expected.losses.empty()) CHECK(std::abs(loss - expected.losses.front()) < 1e-5);
}
