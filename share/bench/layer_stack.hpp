#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "paging/pager.hpp"

namespace hortator::bench {

/// Linear layers, in memory and in a file in `folder`. The same layers are used to time other frameworks.
class LayerStack {
 public:
  static constexpr std::int64_t width = 2048;
  static constexpr std::int64_t batch = 16;
  static constexpr std::int64_t layer_bytes = (width + 1) * width * 4;
  static constexpr std::int64_t usual_bytes = 48 * layer_bytes;
  static constexpr std::size_t piece_bytes = std::size_t{8} << 20;  ///< size of a read

  static torch::nn::Sequential make_layers(std::int64_t count);

  /// As many layers as fit into `bytes`, at least two.
  LayerStack(const std::filesystem::path& folder, std::int64_t bytes);
  ~LayerStack();
  LayerStack(const LayerStack&) = delete;
  LayerStack& operator=(const LayerStack&) = delete;

  std::int64_t layers() const { return layers_; }
  std::int64_t bytes() const { return layers_ * layer_bytes; }
  const torch::nn::Sequential& in_memory() const { return in_memory_; }
  const at::Tensor& input() const { return input_; }
  void check(const at::Tensor& actual) const;  ///< throws unless it equals the result of the layers in memory

  void forward_in_memory();
  void forward_from_disk();
  void forward_half_from_disk();  ///< half of the layers stay in memory
  void read_file();               ///< reads all of it once, in pieces
  void drop_cache();              ///< drops the file from the page cache

  std::size_t take_peak_frame_bytes();  ///< of the last forward pass from disk

 private:
  struct Paged {
    torch::nn::Sequential net;
    std::unique_ptr<paging::Pager> pager = {};
  };
  Paged page(std::size_t budget_bytes) const;
  void forward(Paged& paged);

  std::int64_t layers_;
  std::filesystem::path path_;
  at::Tensor input_;
  at::Tensor expected_;
  torch::nn::Sequential in_memory_;
  Paged all_;
  Paged half_;
  std::vector<std::byte> piece_;
  std::size_t peak_ = 0;
};

}  // namespace hortator::bench
