#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/bigmodel/dispatch.hpp>
#include <optional>
#include <vector>

#include "bench/layer_stack.hpp"

namespace hortator::bench {

/// The layers of a stack in a safetensors file in `folder`: half are dispatched to memory, the others are read from the
/// file when they are used.
class DispatchedHalf {
 public:
  DispatchedHalf(const State& state, const std::filesystem::path& folder, const LayerStack& stack);
  ~DispatchedHalf();
  DispatchedHalf(const DispatchedHalf&) = delete;
  DispatchedHalf& operator=(const DispatchedHalf&) = delete;

  void forward();
  void read_what_is_on_disk();  ///< reads as many bytes of the file once, in pieces
  void drop_cache();            ///< drops the file from the page cache

  DispatchCounters counters() const { return model_->counters(); }
  std::uint64_t limit() const { return limit_; }  ///< of memory

 private:
  const LayerStack& stack_;
  std::filesystem::path path_;
  std::uint64_t limit_;
  std::optional<DispatchedModel<torch::nn::Sequential>> model_;
  std::vector<std::byte> piece_;
};

}  // namespace hortator::bench
