#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cstdint>
#include <hortator/data.hpp>
#include <string_view>

namespace digits {

constexpr std::int64_t side = 12;

/// Images of the ten digits, shifted and with noise. Each is generated on request: the same index gives the same image.
class Digits {
 public:
  explicit Digits(std::string_view part) : first_(part == "train" ? 0 : 4096), size_(part == "train" ? 4096 : 1024) {}

  std::size_t size() const { return static_cast<std::size_t>(size_); }
  hortator::Example<> get(std::int64_t i) const {
    auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(first_ + i));
    const auto digit = (first_ + i) % 10;
    auto image = at::randn({1, side, side}, random).mul_(0.3);
    const auto shift = at::randint(1, 4, {2}, random, at::kLong);
    const auto across = shift[0].item<std::int64_t>();
    const auto down = shift[1].item<std::int64_t>();
    auto pixels = image.accessor<float, 3>();
    for (std::int64_t row = 0; row < 7; ++row) {
      for (std::int64_t column = 0; column < 5; ++column) {
        if (is_lit(digit, row, column)) pixels[0][row + down][column + across] += 1;
      }
    }
    return {image, at::full({}, digit, at::kLong)};
  }

 private:
  /// A seven-segment digit; bars: top, upper left, upper right, middle, lower left, lower right, bottom.
  static bool is_lit(std::int64_t digit, std::int64_t row, std::int64_t column) {
    static constexpr std::array<std::string_view, 10> bars = {"1110111", "0010010", "1011101", "1011011", "0111010",
                                                              "1101011", "1101111", "1010010", "1111111", "1111011"};
    const auto& lit = bars[static_cast<std::size_t>(digit)];
    const bool upper = row <= 3;
    const bool lower = row >= 3;
    return (row == 0 && lit[0] == '1') || (row == 3 && lit[3] == '1') || (row == 6 && lit[6] == '1') ||
           (column == 0 && ((upper && lit[1] == '1') || (lower && lit[4] == '1'))) ||
           (column == 4 && ((upper && lit[2] == '1') || (lower && lit[5] == '1')));
  }

  std::int64_t first_;
  std::int64_t size_;
};

struct ConvNetImpl : torch::nn::Module {
  torch::nn::Conv2d in = register_module("in", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)));
  torch::nn::Conv2d deep = register_module("deep", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 16, 3).stride(2)));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16 * 5 * 5, 10));
  at::Tensor forward(const at::Tensor& x) { return out(at::relu(deep(at::relu(in(x)))).flatten(1)); }
};
TORCH_MODULE(ConvNet);

}  // namespace digits
