#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/key_value_cache.hpp>

#include "core/text/text.hpp"

namespace hortator::models {
namespace {

constexpr std::int64_t first_room = 64;

// The sizes of keys for that many rows and tokens. Heads that are divided among ranks stay divided.
at::Tensor sizes_for(const at::Tensor& keys, std::int64_t rows, std::int64_t tokens) {
  return keys.narrow(0, 0, 1).narrow(2, 0, 1).expand({rows, -1, tokens, -1});
}

at::Tensor in_room(const at::Tensor& kept, const at::Tensor& added, std::int64_t time, std::int64_t room) {
  auto larger = at::empty_like(sizes_for(added, added.size(0), room), at::MemoryFormat::Contiguous);
  if (time > 0) larger.narrow(2, 0, time).copy_(kept.narrow(2, 0, time));
  return larger;
}

}  // namespace

std::pair<at::Tensor, at::Tensor> KeyValueCache::append(std::size_t layer, const at::Tensor& keys,
                                                        const at::Tensor& values) {
  if (c10::GradMode::is_enabled() && keys.requires_grad()) {
    throw UsageError({.what = "A model with a cache was called where gradients are computed",
                      .why = "the cache keeps values, not the operators that made them",
                      .hint = "use at::NoGradGuard, or leave out the cache"});
  }
  if (layers_.size() <= layer) layers_.resize(layer + 1);
  auto& one = layers_[layer];
  make_room(one, keys, values);
  const auto added = keys.size(2);
  one.keys.narrow(2, one.time, added).copy_(keys);
  one.values.narrow(2, one.time, added).copy_(values);
  one.time += added;
  return {one.keys.narrow(2, 0, one.time), one.values.narrow(2, 0, one.time)};
}

void KeyValueCache::make_room(Layer& layer, const at::Tensor& keys, const at::Tensor& values) const {
  const auto room = layer.keys.defined() ? layer.keys.size(2) : 0;
  const auto needed = layer.time + keys.size(2);
  if (needed <= room) return;
  if (capacity_ > 0 && needed > capacity_) {
    throw UsageError(
        {.what = text::concat("The cache has room for ", capacity_, " tokens, and ", needed, " are needed"),
         .hint = "construct it for more tokens, or without a capacity"});
  }
  const auto larger = capacity_ > 0 ? capacity_ : std::max({first_room, needed, 2 * room});
  layer.keys = in_room(layer.keys, keys, layer.time, larger);
  layer.values = in_room(layer.values, values, layer.time, larger);
}

void KeyValueCache::select(const at::Tensor& rows) {
  for (auto& layer : layers_) {
    if (!layer.keys.defined()) continue;
    layer.keys = layer.keys.index_select(0, rows);
    layer.values = layer.values.index_select(0, rows);
  }
}

void KeyValueCache::append_rows(const KeyValueCache& other) {
  if (capacity_ > 0) {
    throw UsageError({.what = "Rows were added to a cache with a capacity",
                      .why = "its memory is for one batch",
                      .hint = "construct it without a capacity"});
  }
  const auto longest = std::max(time(), other.time());
  const auto together = [&](const at::Tensor& above, std::int64_t time, const at::Tensor& below, std::int64_t added) {
    const auto rows = above.size(0) + below.size(0);
    auto all = at::zeros_like(sizes_for(above, rows, longest + first_room), at::MemoryFormat::Contiguous);
    all.narrow(0, 0, above.size(0)).narrow(2, longest - time, time).copy_(above.narrow(2, 0, time));
    all.narrow(0, above.size(0), below.size(0)).narrow(2, longest - added, added).copy_(below.narrow(2, 0, added));
    return all;
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& layer = layers_[i];
    if (!layer.keys.defined()) continue;
    const auto& more = other.layers_.at(i);
    layer.keys = together(layer.keys, layer.time, more.keys, more.time);
    layer.values = together(layer.values, layer.time, more.values, more.time);
    layer.time = longest;
  }
}

void KeyValueCache::forget(std::int64_t tokens) {
  for (auto& layer : layers_) {
    if (!layer.keys.defined()) continue;
    const auto kept = [&](const at::Tensor& x) { return x.narrow(2, tokens, x.size(2) - tokens).clone(); };
    layer.keys = kept(layer.keys);
    layer.values = kept(layer.values);
    layer.time -= tokens;
  }
}

}  // namespace hortator::models
