#include <hortator/hortator.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/weights/weights_model.hpp"

using namespace hortator;
using test::filled;
using test::WeightsNet;

TEST_CASE("an element's bytes are those that Accelerate counts") {
  CHECK(dtype_byte_size(at::kFloat) == 4);
  CHECK(dtype_byte_size(at::kBFloat16) == 2);
  CHECK(dtype_byte_size(at::kFloat8_e4m3fn) == 1);
  CHECK(dtype_byte_size(at::kLong) == 8);
  CHECK(dtype_byte_size(at::kBool) == 0.125);
}

TEST_CASE("tied parameters are found by all their names") {
  CHECK(find_tied_parameters(*filled()) == std::vector<std::vector<std::string>>{{"embed.weight", "head.weight"}});
  CHECK(find_tied_parameters(*filled(/*tied=*/false)).empty());
}

TEST_CASE("one tensor of a module gets another device, type or value, and what is tied to it as well") {
  auto net = filled();
  const auto weight = net->embed->weight.detach().clone();
  set_module_tensor_to_device(*net, "head.weight", at::kCPU, {.dtype = at::kBFloat16});
  CHECK(at::equal(net->embed->weight, weight.to(at::kBFloat16)));
  CHECK(find_tied_parameters(*net).size() == 1);
  auto value = at::ones({5});
  set_module_tensor_to_device(*net, "norm.running_mean", at::kCPU, {.value = value});
  value.zero_();
  CHECK(at::equal(net->norm->running_mean, at::ones({5})));
  set_module_tensor_to_device(*net, "hidden.bias", at::kMeta);
  CHECK(is_empty_weight(net->hidden->bias));
  CHECK_THROWS_WITH(set_module_tensor_to_device(*net, "hidden.bias", at::kCPU),
                    ContainsSubstring("'hidden.bias' has no values"));
  set_module_tensor_to_device(*net, "hidden.bias", at::kCPU, {.value = at::full({5}, 2.0)});
  CHECK(at::equal(net->hidden->bias, at::full({5}, 2.0)));
  CHECK(net->hidden->bias.requires_grad());
  CHECK_THROWS_WITH(set_module_tensor_to_device(*net, "hiden.bias", at::kCPU),
                    ContainsSubstring("did you mean 'hidden.bias'?"));
  CHECK_THROWS_WITH(set_module_tensor_to_device(*net, "hidden.bias", at::kCPU, {.value = at::ones({4})}),
                    ContainsSubstring("float32 [4], the module has float32 [5]"));
}

TEST_CASE("a tensor without memory gets a value") {
  auto net = init_empty_weights([] { return WeightsNet(); });
  CHECK_THROWS_WITH(set_module_tensor_to_device(*net, "hidden.weight", at::kCPU), ContainsSubstring("has no values"));
  set_module_tensor_to_device(*net, "hidden.weight", at::kCPU, {.value = at::ones({5, 4})});
  CHECK(at::equal(net->hidden->weight, at::ones({5, 4})));
  CHECK(is_empty_weight(net->hidden->bias));
}
