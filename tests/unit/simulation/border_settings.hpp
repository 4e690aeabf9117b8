#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace hortator::test {

/// Models and buffers of the tests of the C interface. Some cannot be made.
inline constexpr auto border_settings = R"(
models:
  line: {type: mlp, layers: [3, 2], optimizer: {type: sgd, lr: 0.1}}
  frozen: {type: mlp, layers: [3, 2]}
  wrong_type: {type: mpl}
  wrong_optimizer: {type: mlp, layers: [3, 2], optimizer: rmsprob}
  wrong_key: {type: mlp, layers: [3, 2], optimizer: {type: adam, learning_rate: 1}}
  missing_file: {type: torchscript, file: nowhere.pt}
  wrong_normal: {type: mlp, layers: [3, 2], flatten: true, normalize: true}
  wrong_clip: {type: mlp, layers: [3, 2], optimizer: sgd, clip_grad_norm: -3}
  normal: {type: mlp, layers: [3, 2], normalize: true, optimizer: sgd}
buffers:
  samples: {type: ring, capacity: 4, batch_size: 2}
  counted: {type: ring, capacity: 4, batch_size: 2, statistics: true}
  urgent: {type: priority, capacity: 4, batch_size: 2}
)";

/// Numbers from -1 to 1.
inline std::vector<float> numbers(std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = std::sin(static_cast<float>(i));
  return all;
}

}  // namespace hortator::test
