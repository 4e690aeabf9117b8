#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <hortator/export.hpp>
#include <utility>
#include <vector>

namespace hortator::models {

/// The keys and values of the tokens that a causal model has seen, for each layer. If a model is divided among
/// ranks, each rank has those of its heads. For inference: call the model under at::NoGradGuard.
class HORTATOR_API KeyValueCache {
 public:
  /// A cache that grows, or one for at most `capacity` tokens, whose memory is allocated by the first call.
  explicit KeyValueCache(std::int64_t capacity = 0) : capacity_(capacity) {}

  /// The number of tokens in the cache. Along a pipeline a rank has only its own layers.
  std::int64_t time() const { return layers_.empty() ? 0 : layers_.back().time; }

  /// Appends keys and values [batch, heads, time, width] of a layer. Returns all of the layer, in the cache's memory.
  std::pair<at::Tensor, at::Tensor> append(std::size_t layer, const at::Tensor& keys, const at::Tensor& values);

  /// Replaces the batch by these of its rows: a row may be dropped or repeated.
  void select(const at::Tensor& rows);

  /// Adds the rows of another cache below these. All end at the same token: before a shorter row there is padding,
  /// which an attention mask has to exclude. Not for a cache with a capacity.
  void append_rows(const KeyValueCache& other);
  /// Removes the first tokens of all rows.
  void forget(std::int64_t tokens);
  void clear() { layers_.clear(); }

 private:
  struct Layer {
    at::Tensor keys, values;  ///< [batch, heads, room, width]
    std::int64_t time = 0;
  };
  void make_room(Layer& layer, const at::Tensor& keys, const at::Tensor& values) const;

  std::int64_t capacity_;
  std::vector<Layer> layers_;
};

}  // namespace hortator::models
