// Loading weights from files of Python's libraries and of Hortator into models.
#include <hortator/hortator.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/weights/weights_model.hpp"
#include "weights/filling.hpp"

using namespace hortator;
using test::filled;
using test::python;
using test::WeightsNet;
namespace fs = std::filesystem;

namespace {

WeightsNet cleared(bool tied = true) {
  WeightsNet net(tied);
  test::clear(*net);
  return net;
}

void check_same(const torch::nn::Module& net, const torch::nn::Module& expected) {
  const auto expected_tensors = test::tensors_of_net(expected);
  for (const auto& [name, tensor] : test::tensors_of_net(net)) {
    INFO(name);
    CHECK(at::equal(tensor, expected_tensors.at(name).to(tensor.scalar_type())));
  }
}

}  // namespace

TEST_CASE("weights that Python wrote are loaded from every kind of file") {
  Accelerator accelerator;
  for (const auto* file_or_folder : {"sharded", "sharded/model.safetensors.index.json", "whole",
                                     "whole/model.safetensors", "pickled", "pickled/pytorch_model.bin"}) {
    INFO(file_or_folder);
    auto independent = cleared();
    load_checkpoint_in_model(independent, python / file_or_folder);
    check_same(*independent, *filled());
    auto collective = cleared();
    accelerator.load_checkpoint_in_model(collective, python / file_or_folder);
    check_same(*collective, *filled());
  }
}

TEST_CASE("a prepared model is loaded in place") {
  Accelerator accelerator;
  auto net = cleared();
  auto model = accelerator.prepare(net);
  accelerator.load_checkpoint_in_model(model, python / "sharded");
  check_same(*net, *filled());
}

TEST_CASE("all types are loaded, and floating-point types are converted to each other") {
  const SafetensorsFile file(python / "all_types.safetensors");
  torch::nn::Module module;
  auto inner = std::make_shared<torch::nn::Module>();
  for (const auto& name : file.names()) {
    const auto point = name.rfind('.');
    (point == std::string::npos ? module : *inner)
        .register_buffer(name.substr(point + 1), at::zeros_like(file.get(name)));
  }
  module.register_module("a", inner);
  load_checkpoint_in_model(module, python / "all_types.safetensors");
  const auto bytes = [](const at::Tensor& tensor) { return tensor.contiguous().view({-1}).view(at::kByte); };
  for (const auto& item : module.named_buffers()) {
    INFO(item.key());
    CHECK(at::equal(bytes(item.value()), bytes(file.get(item.key()))));
  }
  for (const auto to : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const auto* from : {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float16",
                             "bfloat16", "float32", "float64"}) {
      torch::nn::Module one;
      one.register_buffer(from, at::zeros({2, 3}, to));
      load_checkpoint_in_model(one, python / "all_types.safetensors", {.rename = {{"a", ""}}, .strict = false});
      CHECK(at::equal(one.named_buffers()[from], at::arange(6).remainder(4).view({2, 3}).to(to)));
    }
  }
}

TEST_CASE("the model's floating-point tensors are converted to the requested type") {
  auto net = cleared();
  const auto* const before = net->embed->weight.unsafeGetTensorImpl();
  load_checkpoint_in_model(net, python / "whole", {.dtype = at::kBFloat16, .keep_in_fp32_modules = {"norm"}});
  CHECK(net->embed->weight.scalar_type() == at::kBFloat16);
  CHECK(net->embed->weight.unsafeGetTensorImpl() == before);
  CHECK(net->head->parameters()[0].scalar_type() == at::kBFloat16);
  CHECK(net->norm->weight.scalar_type() == at::kFloat);
  CHECK(net->norm->num_batches_tracked.scalar_type() == at::kLong);
  check_same(*net, *filled());
}

TEST_CASE("all mismatches are listed in one error, and nothing is changed") {
  Accelerator accelerator;
  struct Other : torch::nn::Module {
    Other() {
      register_module("embed", torch::nn::Embedding(6, 5));
      register_module("hidden", torch::nn::Linear(4, 5));
      register_module("more", torch::nn::Linear(2, 2));
    }
  } other;
  const auto before = other.named_parameters()["hidden.weight"].clone();
  const auto check = [&](const auto& load) {
    CHECK_THROWS_WITH(load(),
                      ContainsSubstring("missing 'more.weight', float32 [2, 2], 'more.bias'") &&
                          ContainsSubstring("unexpected 'norm.num_batches_tracked'") &&
                          ContainsSubstring("'embed.weight', float32 [6, 5] in the model and float32 [6, 4] in the"));
  };
  check([&] { load_checkpoint_in_model(other, python / "sharded"); });
  check([&] { accelerator.load_checkpoint_in_model(other, python / "sharded"); });
  CHECK(at::equal(other.named_parameters()["hidden.weight"], before));
}

TEST_CASE("an untied model needs both tensors, and a tied one refuses two values for one tensor") {
  Accelerator accelerator;
  test::Folder folder(State(), "tied");
  auto untied = cleared(false);
  CHECK_THROWS_WITH(load_checkpoint_in_model(untied, python / "whole"), ContainsSubstring("missing 'head.weight'"));
  load_checkpoint_in_model(untied, python / "whole", {.strict = false});
  CHECK(at::equal(untied->embed->weight, filled()->embed->weight));
  CHECK(untied->head->parameters()[0][0][0].item<double>() == 77);

  auto both = filled(false);  // its head has its own values
  accelerator.save_model(both, folder.path() / "both");
  auto net = cleared();
  CHECK_THROWS_WITH(load_checkpoint_in_model(net, folder.path() / "both"),
                    ContainsSubstring("other values in 'head.weight'"));
  CHECK_THROWS_WITH(accelerator.load_checkpoint_in_model(net, folder.path() / "both"),
                    ContainsSubstring("other values in 'head.weight'"));
  both->head->parameters()[0].set_data(both->embed->weight.detach().clone());
  accelerator.save_model(both, folder.path() / "both");
  CHECK_NOTHROW(load_checkpoint_in_model(net, folder.path() / "both"));
}

TEST_CASE("a model is loaded from a Hortator checkpoint") {
  test::Folder folder(State(), "from_hdf5");
  Accelerator accelerator;
  auto net = filled();
  auto second = filled(false);
  auto [model, other] = accelerator.prepare(net, second);
  {
    const at::NoGradGuard no_grad;
    second->hidden->bias.fill_(5);
  }
  const auto saved = accelerator.save_state(folder.path());
  auto loaded = cleared();
  load_checkpoint_in_model(loaded, saved);
  check_same(*loaded, *net);
  auto one_more = cleared(false);
  accelerator.load_checkpoint_in_model(one_more, saved, {.dtype = at::kDouble, .model = 1});
  check_same(*one_more, *second);
  CHECK_THROWS_WITH(load_checkpoint_in_model(loaded, saved, {.model = 2}), ContainsSubstring("no model number 2"));
}

TEST_CASE("collective loading, in which ranks send each other what they read, gives the same tensors") {
  Accelerator accelerator;
  test::Folder folder(State(), "together");
  torch::nn::Module module;
  module.register_buffer("long", at::arange(3'000'000).to(at::kFloat));
  module.register_buffer("wide", at::arange(24).to(at::kHalf).view({4, 6}));
  module.register_buffer("none", at::empty({0, 2}));
  accelerator.save_model(module, folder.path());
  const auto source = weights::open_weights(folder.path());
  const auto make = [&] {
    std::vector<weights::Filling> fillings = {{.stored = "long", .tensor = at::zeros({3'000'000}, at::kDouble)},
                                              {.stored = "wide", .tensor = at::zeros({6, 4}, at::kHalf).t()},
                                              {.stored = "none", .tensor = at::empty({0, 2})}};
    return fillings;
  };
  const auto check = [&](const std::vector<weights::Filling>& fillings) {
    for (const auto& one : fillings)
      CHECK(at::equal(one.tensor, module.named_buffers()[one.stored].to(one.tensor.scalar_type())));
  };
  const auto collective = make();
  weights::filling_together(accelerator::Training::of(accelerator).channels.communicator_of({}), *source, collective)();
  check(collective);
  const auto independent = make();
  weights::fill(*source, independent);
  check(independent);
}

// Run by the drill on a real Slurm, because ranks of one node never send each other what they read.
TEST_CASE("between nodes weights are read once and sent", "[.two_nodes]") {
  Accelerator accelerator({.cpu = true});
  REQUIRE(accelerator.num_nodes() == 2);
  REQUIRE(accelerator.num_processes() == 4);
  for (const auto* file_or_folder : {"sharded", "whole", "pickled"}) {
    INFO(file_or_folder);
    auto net = cleared();
    accelerator.load_checkpoint_in_model(net, python / file_or_folder);
    check_same(*net, *filled());
  }
  auto converted = cleared();
  accelerator.load_checkpoint_in_model(converted, python / "sharded", {.dtype = at::kDouble});
  check_same(*converted, *filled());
  auto untied = cleared(false);
  CHECK_THROWS_WITH(accelerator.load_checkpoint_in_model(untied, python / "whole"),
                    ContainsSubstring("missing 'head.weight'"));
}

namespace {

/// A file that one rank cannot read to its end.
class FailingSource : public weights::WeightSource {
 public:
  FailingSource(const weights::WeightSource& whole, bool broken) : whole_(whole), broken_(broken) {}
  const fs::path& path() const override { return whole_.path(); }
  const std::vector<std::string>& names() const override { return whole_.names(); }
  formats::TensorSpec spec(const std::string& name) const override { return whole_.spec(name); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    if (broken_) throw Error({.what = "the disk is gone"});
    whole_.read(name, elements, to);
  }

 private:
  const weights::WeightSource& whole_;
  bool broken_;
};

}  // namespace

TEST_CASE("a read error on one rank does not leave the others waiting") {
  Accelerator accelerator;
  const auto source = weights::open_weights(python / "sharded");
  const bool is_last = accelerator.is_last_process();
  const FailingSource broken(*source, is_last);
  std::vector<weights::Filling> fillings;
  for (const auto& name : source->names()) {
    const auto spec = source->spec(name);
    fillings.push_back({.stored = name, .tensor = at::zeros(spec.shape, spec.type)});
  }
  const auto fill = [&] {
    weights::filling_together(accelerator::Training::of(accelerator).channels.communicator_of({}), broken, fillings)();
  };
  if (is_last) {
    CHECK_THROWS_WITH(fill(), ContainsSubstring("the disk is gone"));
  } else {
    CHECK_NOTHROW(fill());
  }
}
