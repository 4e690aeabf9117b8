#pragma once

#include <cstdint>
#include <hortator/nn/pipeline.hpp>
#include <memory>

namespace hortator::bench {

constexpr std::int64_t block_width = 256;

/// Layers of a decoder, [rows, tokens, block_width] to the same, which can be stages of a pipeline. Seeds the
/// generator.
std::shared_ptr<PipelineModule> make_blocks(std::int64_t count);

}  // namespace hortator::bench
